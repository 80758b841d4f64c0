//! A steady load of requests, every answer of which is checked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// How many failures are kept with their reasons.
const FAILURES_MAX: usize = 10;

/// A steady load: a request begins at each beat, unless all clients wait for answers.
pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
    started: Instant,
}

#[derive(Default)]
struct Shared {
    has_ended: AtomicBool,
    next: AtomicU64,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    times: Vec<Duration>,
    failed: u64,
    failures: Vec<String>,
}

/// What a load has measured.
#[derive(Clone, Debug)]
pub struct LoadFigures {
    /// How many requests were answered, also with failures.
    pub requests: usize,
    /// How many failed or were answered wrongly.
    pub failed: u64,
    /// The first of these, with when and why.
    pub failures: Vec<String>,
    /// How long the load lasted.
    pub time: Duration,
    /// The times of all answers, in order of length.
    times: Vec<Duration>,
}

impl LoadFigures {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "small counts")]
        let requests = self.requests as f64;
        requests / self.time.as_secs_f64()
    }

    /// The time within which a part of the answers came, as 0.99.
    pub fn quantile(&self, part: f64) -> Duration {
        quantile(&self.times, part)
    }
}

/// The time within which a part of these times lies, which are in order; zero if there is none.
pub fn quantile(times: &[Duration], part: f64) -> Duration {
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    let index = times.len() as f64 * part;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let index = (index as usize).min(times.len().saturating_sub(1));
    times.get(index).copied().unwrap_or_default()
}

impl Load {
    /// Begins so many requests a second, of which at most `clients` wait for their answers at the
    /// same time. `ask` gets the number of the request, and says what is wrong with its answer.
    pub fn start<A, F>(rate: u32, clients: usize, ask: A) -> Self
    where
        A: Fn(u64) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Result<(), String>> + Send,
    {
        let (shared, started) = (Arc::<Shared>::default(), Instant::now());
        let beat = Duration::from_secs(1) / rate;
        let client = |_| {
            let (shared, ask) = (Arc::clone(&shared), ask.clone());
            tokio::spawn(async move {
                while !shared.has_ended.load(Ordering::Relaxed) {
                    let number = shared.next.fetch_add(1, Ordering::Relaxed);
                    let beats = u32::try_from(number).unwrap_or(u32::MAX);
                    sleep_until(started + beat * beats).await;
                    let asked = Instant::now();
                    let answer = ask(number).await;
                    shared.note(number, asked - started, asked.elapsed(), answer);
                }
            })
        };
        let clients = (0..clients).map(client).collect();
        Self { shared, clients, started }
    }

    /// How many requests have failed so far, and the first of them.
    pub fn failed(&self) -> (u64, Vec<String>) {
        let record = self.shared.record.lock().unwrap_or_else(PoisonError::into_inner);
        (record.failed, record.failures.clone())
    }

    /// Waits for the answers that are under way; gives the figures.
    pub async fn end(mut self) -> LoadFigures {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        let time = self.started.elapsed();
        for client in self.clients.drain(..) {
            // A panic of `ask` is a failure too.
            if let Err(error) = client.await {
                self.shared.note(0, time, Duration::ZERO, Err(error.to_string()));
            }
        }
        let mut record = self.shared.record.lock().unwrap_or_else(PoisonError::into_inner);
        let Record { mut times, failed, failures } = std::mem::take(&mut *record);
        times.sort();
        LoadFigures { requests: times.len(), failed, failures, time, times }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for client in &self.clients {
            client.abort();
        }
    }
}

impl Shared {
    fn note(&self, number: u64, at: Duration, took: Duration, answer: Result<(), String>) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.times.push(took);
        let Err(why) = answer else { return };
        record.failed += 1;
        if record.failures.len() < FAILURES_MAX {
            let (at, took) = (at.as_secs_f32(), took.as_secs_f32());
            record.failures.push(format!("request {number} at {at:.2} s, {took:.2} s: {why}"));
        }
    }
}
