//! The loop that takes requests from the queue and reconciles them.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use innkeeper_cluster::Caches;
use tokio::sync::watch;
use tracing::Instrument as _;

use crate::queue::trigger::Triggers;
use crate::queue::{ReconcileRequest, ReconcileResult};
use crate::reconcile::reconcile;
use crate::reconcile::stats::ReconcileStats;
use crate::shared::Shared;

/// Reconciles requests until `stop` is true or its sender is dropped; then finishes the running
/// ones, and returns.
pub async fn run_workers(shared: Arc<Shared>, caches: Caches, mut stop: watch::Receiver<bool>) {
    let mut tasks = FuturesUnordered::new();
    loop {
        let stopping = *stop.borrow() || stop.has_changed().is_err();
        if stopping {
            shared.queue().close();
            if tasks.is_empty() {
                return;
            }
        }
        let (ready, due) = {
            let mut queue = shared.queue();
            let now = shared.elapsed();
            let ready: Vec<(ReconcileRequest, Triggers)> =
                std::iter::from_fn(|| queue.next(now)).collect();
            (ready, queue.next_due(now))
        };
        for (request, triggers) in ready {
            let (shared, caches) = (shared.clone(), caches.clone());
            let env = shared.env.clone();
            // Every log line of the reconcile has its trigger.
            let span = tracing::debug_span!("reconcile", trigger = %triggers);
            let one = async move { run_one(&shared, &caches, request, &triggers).await };
            tasks.push(env.spawn("reconcile", one.instrument(span)));
        }
        let wait = due.filter(|_| !stopping).map(|due| due.saturating_sub(shared.elapsed()));
        tokio::select! {
            biased;
            Some(_) = tasks.next() => {}
            () = shared.notified() => {}
            _ = stop.changed(), if !stopping => {}
            () = shared.env.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
        }
    }
}

/// Reconciles one request and reports the result to the queue, also after a panic.
async fn run_one(shared: &Shared, caches: &Caches, request: ReconcileRequest, triggers: &Triggers) {
    let module = request.module.clone();
    let started = shared.elapsed();
    let mut ending = ResultGuard::new(shared, request);
    let mut stats = ReconcileStats::default();
    ending.done = reconcile(shared, caches, &ending.request, triggers, &mut stats).await;
    let result = match ending.done {
        ReconcileResult::Ok(None) | ReconcileResult::Forget => "success",
        ReconcileResult::Ok(Some(_)) => "requeue_after",
        ReconcileResult::Requeue => "requeue",
        ReconcileResult::Failed | ReconcileResult::AwaitChange(_) => "error",
    };
    let took = shared.elapsed().saturating_sub(started);
    shared.metrics.reconciled(&module, result, took);
    tracing::debug!(
        %module,
        primary = %ending.request.key,
        result,
        reason = stats.problem,
        created = stats.created,
        changed = stats.changed,
        deleted = stats.deleted,
        unchanged = stats.unchanged,
        status = stats.status,
        duration_seconds = took.as_secs_f64(),
        "reconciled"
    );
}

/// Reports the result to the queue when it is dropped: after a panic too, so that a mistake of the
/// host costs a backoff and not the request.
struct ResultGuard<'a> {
    shared: &'a Shared,
    request: ReconcileRequest,
    done: ReconcileResult,
}

impl<'a> ResultGuard<'a> {
    fn new(shared: &'a Shared, request: ReconcileRequest) -> Self {
        shared.metrics.active.with_label_values(&[&*request.module; 2]).inc();
        Self { shared, request, done: ReconcileResult::Failed }
    }
}

impl Drop for ResultGuard<'_> {
    fn drop(&mut self) {
        self.shared.metrics.active.with_label_values(&[&*self.request.module; 2]).dec();
        // 53 bits of randomness as a number in 0..1.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let jitter = (self.shared.env.random() >> 11) as f64 / (1_u64 << 53) as f64;
        self.shared.done(&self.request, self.done, jitter);
    }
}
