//! Giving keys to workers, until told to stop.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use innkeeper_cluster::Caches;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::cause::Causes;
use crate::deeds::Deeds;
use crate::queue::{Done, Work};
use crate::reconcile::reconcile;
use crate::shared::Shared;

/// Works on keys until `stop` says so; then finishes what is in flight, and ends.
pub async fn work(shared: Arc<Shared>, caches: Caches, mut stop: watch::Receiver<bool>) {
    let mut tasks = FuturesUnordered::new();
    loop {
        let stopping = *stop.borrow();
        if stopping {
            shared.queue().close();
            if tasks.is_empty() {
                return;
            }
        }
        let (ready, due) = {
            let mut queue = shared.queue();
            let now = shared.elapsed();
            let ready: Vec<(Work, Causes)> = std::iter::from_fn(|| queue.next(now)).collect();
            (ready, queue.next_due(now))
        };
        for (work, causes) in ready {
            let (shared, caches) = (shared.clone(), caches.clone());
            let env = shared.env.clone();
            // All that is said during the work says why it is done.
            let span = tracing::debug_span!("reconcile", trigger = %causes);
            let one = async move { one(&shared, &caches, work).await };
            tasks.push(env.spawn("reconcile", one.instrument(span)));
        }
        let wait = due.filter(|_| !stopping).map(|due| due.saturating_sub(shared.elapsed()));
        tokio::select! {
            biased;
            Some(_) = tasks.next() => {}
            () = shared.bell.notified() => {}
            _ = stop.changed(), if !stopping => {}
            () = shared.env.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

/// Works on one key, and tells the queue how it ended, whatever happens.
async fn one(shared: &Shared, caches: &Caches, work: Work) {
    let module = work.module.clone();
    let started = shared.elapsed();
    let mut ending = Ending::new(shared, work);
    let mut deeds = Deeds::default();
    ending.done = reconcile(shared, caches, &ending.work, &mut deeds).await;
    let result = match ending.done {
        Done::Ok(None) | Done::Forget => "success",
        Done::Ok(Some(_)) => "requeue_after",
        Done::Continue => "requeue",
        Done::Failed | Done::Stuck(_) => "error",
    };
    let took = shared.elapsed().saturating_sub(started);
    shared.metrics.reconciled(&module, result, took);
    tracing::debug!(
        %module,
        primary = %ending.work.key,
        result,
        reason = deeds.problem,
        created = deeds.created,
        changed = deeds.changed,
        deleted = deeds.deleted,
        unchanged = deeds.unchanged,
        status = deeds.status,
        duration_seconds = took.as_secs_f64(),
        "reconciled"
    );
}

/// Tells the queue that a key is done when it is dropped: also if the work panicked, so that a
/// mistake of ours costs a backoff and not the key.
struct Ending<'a> {
    shared: &'a Shared,
    work: Work,
    done: Done,
}

impl<'a> Ending<'a> {
    fn new(shared: &'a Shared, work: Work) -> Self {
        shared.metrics.active.with_label_values(&[&*work.module; 2]).inc();
        Self { shared, work, done: Done::Failed }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.shared.metrics.active.with_label_values(&[&*self.work.module; 2]).dec();
        // 53 bits of randomness as a number in 0..1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let jitter = (self.shared.env.random() >> 11) as f64 / (1_u64 << 53) as f64;
        let now = self.shared.elapsed();
        self.shared.queue().done(&self.work, self.done, now, jitter);
        self.shared.bell.notify_one();
    }
}
