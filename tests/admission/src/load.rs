//! Users who send requests, and what the host uses meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use futures::future::try_join_all;
use tokio::task::JoinSet;

use crate::pool::Pool;
use crate::sample::Sample;
use crate::usage::{Usage, reset_peak};

/// The time before a measurement in which users already send requests.
const WARM_UP: Duration = Duration::from_secs(1);

/// What users do.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many users there are.
    pub users: usize,
    /// How long a user waits after an operation, on average (exponentially distributed); zero for
    /// not at all.
    pub think_time: Duration,
    /// The paths to which the posts of one operation go, all at once.
    pub operation: Vec<String>,
    /// Whether an operation is one post, to a path of these by chance.
    pub is_single: bool,
    /// The body of each post.
    pub body: Bytes,
    /// How long the load is measured.
    pub time: Duration,
}

/// What was measured. Without an operation that ended in time, figures of one are NaN or infinite.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The times of the operations.
    pub operations: Sample,
    /// Posts a second.
    pub posts_per_second: f64,
    /// CPU of the host for a post, in microseconds.
    pub cpu_us: f64,
    /// CPU of the host, in cores.
    pub cores: f64,
    /// CPU of this process, which sends the requests, in cores.
    pub load_cores: f64,
    /// The highest resident memory of the host, in MiB.
    pub peak_mib: f64,
}

impl Load {
    /// Lets the users of the pool send requests to the host with this process id.
    ///
    /// # Errors
    /// If a request is not allowed.
    pub async fn run(self, pool: &Arc<Pool>, pid: u32) -> Result<Measured> {
        let load = Arc::new(self);
        let from = Instant::now() + WARM_UP;
        let until = from + load.time;
        let mut users = JoinSet::new();
        for _ in 0..load.users {
            users.spawn(Arc::clone(&load).user(Arc::clone(pool), from, until));
        }
        tokio::time::sleep_until(from.into()).await;
        reset_peak(pid)?;
        let (started, before) = (Instant::now(), (Usage::of(pid)?, own()?));
        tokio::time::sleep_until(until.into()).await;
        let (time, after) = (started.elapsed().as_secs_f64(), (Usage::of(pid)?, own()?));
        let mut operations = Sample::default();
        while let Some(user) = users.join_next().await {
            operations.extend(user??);
        }
        let of_each = if load.is_single { 1 } else { load.operation.len() };
        #[expect(clippy::cast_precision_loss, reason = "a count")]
        let posts = (operations.len() * of_each) as f64;
        let cpu_s = after.0.cpu_s - before.0.cpu_s;
        Ok(Measured {
            operations,
            posts_per_second: posts / time,
            cpu_us: cpu_s / posts * 1e6,
            cores: cpu_s / time,
            load_cores: (after.1.cpu_s - before.1.cpu_s) / time,
            peak_mib: after.0.peak_mib,
        })
    }

    /// The operations of one user that end while they are measured.
    async fn user(
        self: Arc<Self>,
        pool: Arc<Pool>,
        from: Instant,
        until: Instant,
    ) -> Result<Sample> {
        let mut times = Sample::default();
        loop {
            let think_time = self.think_time.mul_f64(-fastrand::f64().max(1e-9).ln());
            // A user who thinks longer than the measurement takes would only hold it up.
            if Instant::now() + think_time > until {
                return Ok(times);
            }
            if !think_time.is_zero() {
                tokio::time::sleep(think_time).await;
            }
            let started = Instant::now();
            if self.is_single {
                let path = fastrand::choice(&self.operation).map_or("", String::as_str);
                pool.post(path, self.body.clone()).await?;
            } else {
                let posts = self.operation.iter().map(|path| pool.post(path, self.body.clone()));
                try_join_all(posts).await?;
            }
            let ended = Instant::now();
            if (from..until).contains(&ended) {
                times.add(ended - started);
            }
        }
    }
}

fn own() -> Result<Usage> {
    Usage::of(std::process::id())
}
