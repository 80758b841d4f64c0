//! The operator: put together, run, stopped.

use std::path::PathBuf;
use std::sync::Arc;

use innkeeper_cluster::events::Events;
use innkeeper_cluster::{Caches, Cluster, KindState};
use innkeeper_modules::Driver;
use innkeeper_sandbox::{CacheFigures, Engine, Limits};
use tokio::sync::{mpsc, watch};

use crate::backoff::Backoff;
use crate::metrics::Metrics;
use crate::modules::cluster_source::ClusterSource;
use crate::modules::directory_source::DirectorySource;
use crate::modules::event::SupervisorEvent;
use crate::modules::source::ModuleSource;
use crate::modules::supervisor::Supervisor;
use crate::queue::{self, Queue};
use crate::shared::{CacheEventHandler, Execution, Shared};
use crate::workers;

/// Primaries that are reconciled at once, if nobody says otherwise. Each holds a request at a
/// time: more only makes the API server queue them.
pub const WORKERS_DEFAULT: usize = 8;

/// Where modules come from.
#[derive(Clone, Debug)]
pub enum ModulesLocation {
    /// Module objects of the API server.
    Cluster,
    /// Manifests of a folder.
    Directory(PathBuf),
}

/// How much is done at once.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Primaries that are reconciled at once.
    pub workers: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { workers: WORKERS_DEFAULT }
    }
}

/// No module takes all workers from the others, and no namespace of a module those of the module.
fn queue_bounds(workers: usize) -> queue::Bounds {
    let per_module = (workers.div_ceil(4) * 3).min(workers.saturating_sub(1)).max(1);
    queue::Bounds {
        running: workers,
        running_per_module: per_module,
        running_per_tenant: per_module.saturating_sub(1).max(1),
    }
}

/// A host of modules. Cheap to clone; [`Operator::run`] runs it.
#[derive(Clone)]
pub struct Operator {
    shared: Arc<Shared>,
    caches: Caches,
    engine: Engine,
    from: ModulesLocation,
    outbox: mpsc::UnboundedSender<SupervisorEvent>,
    inbox: Arc<std::sync::Mutex<Option<mpsc::UnboundedReceiver<SupervisorEvent>>>>,
}

impl Operator {
    /// An operator on a connection, that runs guests in an engine. `instance` tells several
    /// hosts apart in Events: the name of the pod or of the machine.
    ///
    /// Has to be called within a tokio runtime; nothing is sent yet.
    ///
    /// # Errors
    /// If the figures cannot be registered.
    pub fn new(
        cluster: Cluster,
        engine: Engine,
        from: ModulesLocation,
        bounds: Bounds,
        execution: Execution,
        instance: &str,
    ) -> Result<Self, prometheus::Error> {
        let env = cluster.env().clone();
        let workers = bounds.workers.max(1);
        let queue = Queue::new(queue_bounds(workers), Backoff::default());
        let shared = Arc::new(Shared::new(
            cluster,
            engine.permits().clone(),
            execution,
            Metrics::new()?,
            Events::new(env.clone(), instance),
            queue,
        ));
        let (outbox, inbox) = mpsc::unbounded_channel();
        let waker = CacheEventHandler { shared: shared.clone(), supervisor: outbox.clone() };
        let caches = Caches::new(env, Arc::new(waker));
        let inbox = Arc::new(std::sync::Mutex::new(Some(inbox)));
        Ok(Self { shared, caches, engine, from, outbox, inbox })
    }

    /// Runs until `stop` says so: then what is in flight finishes, and nothing new starts.
    ///
    /// A second call ends at once: an operator runs once.
    pub async fn run(&self, stop: watch::Receiver<bool>) {
        let inbox = self.inbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(inbox) = inbox else { return };
        let env = self.shared.env.clone();
        let (place, kind) = match &self.from {
            ModulesLocation::Cluster => (
                ModuleSource::Cluster(Box::new(ClusterSource::new(self.shared.cluster.clone()))),
                innkeeper_modules::SourceKind::Cluster,
            ),
            ModulesLocation::Directory(path) => (
                ModuleSource::Directory(Box::new(DirectorySource::new(path, env.clone()))),
                innkeeper_modules::SourceKind::Directory,
            ),
        };
        let supervisor = Supervisor::new(
            self.shared.clone(),
            self.caches.clone(),
            self.engine.clone(),
            Driver::new(kind, Limits::default())
                .in_namespace(self.shared.cluster.host().host_namespace()),
            place,
            self.outbox.clone(),
            inbox,
        );
        let supervising = env.spawn("supervise", {
            let (shared, stop) = (self.shared.clone(), stop.clone());
            async move { shared.liveness.watch(supervisor.supervise(stop)).await }
        });
        workers::run_workers(self.shared.clone(), self.caches.clone(), stop).await;
        supervising.await;
        self.close();
    }

    /// Lets go of what serves, when [`Operator::run`] was dropped instead of told to stop.
    pub fn close(&self) {
        // The caches know who listens, who listens knows the modules, and those have views of the
        // caches: without this nothing of it would ever be freed.
        for running in self.shared.modules() {
            self.shared.stop(running.name());
        }
    }

    /// Whether the modules are known and all that serve can read what they declare (or it is
    /// known why not): keys are worked on from then on.
    pub fn is_ready(&self) -> bool {
        self.shared.modules_are_known()
            && self.shared.modules().iter().all(|running| {
                !running.view.states().values().any(|state| matches!(state, KindState::Syncing))
            })
    }

    /// What the supervisor of modules hangs in, for people; `None` if it takes its turns. Then no
    /// module loads, reports or leaves any more, and only another process helps.
    pub fn stalled(&self) -> Option<String> {
        self.shared.liveness.stalled()
    }

    /// The names of the modules that serve.
    pub fn serving(&self) -> Vec<String> {
        self.shared.modules().iter().map(|running| running.name().to_string()).collect()
    }

    /// Whether nothing waits to be done now.
    pub fn is_quiet(&self) -> bool {
        self.shared.queue().is_quiet(self.shared.elapsed())
    }

    /// How many objects Events are remembered about; they are forgotten with the object and the
    /// module.
    pub fn remembered_events(&self) -> usize {
        self.shared.events.remembered_objects()
    }

    /// Figures in Prometheus' text format.
    pub fn metrics(&self) -> String {
        let metrics = &self.shared.metrics;
        for (module, depth) in self.shared.queue().depths() {
            metrics
                .depth
                .with_label_values(&[module, module])
                .set(i64::try_from(depth).unwrap_or(i64::MAX));
        }
        metrics.recorded_read_bytes.reset();
        for (module, bytes) in self.shared.index().bytes() {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            metrics.recorded_read_bytes.with_label_values(&[module]).set(bytes);
        }
        metrics.cache_objects.reset();
        metrics.cache_bytes.reset();
        for size in self.caches.sizes() {
            let resource = size.kind.resource();
            let count = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
            metrics.cache_objects.with_label_values(&[&resource]).add(count(size.objects));
            metrics.cache_bytes.with_label_values(&[&resource]).add(count(size.bytes));
        }
        if let Some(cache) = self.engine.cache() {
            let CacheFigures { hits, misses, refused, stored, evicted } = cache.figures();
            metrics.code_cache.reset();
            for (result, count) in [
                ("hit", hits),
                ("miss", misses),
                ("refused", refused),
                ("stored", stored),
                ("evicted", evicted),
            ] {
                metrics.code_cache.with_label_values(&[result]).inc_by(count);
            }
        }
        metrics.text()
    }
}

#[cfg(test)]
mod tests {
    use super::queue_bounds;

    #[test]
    fn workers_are_left_for_other_modules_and_other_namespaces() {
        let bounds = |workers| {
            let bounds = queue_bounds(workers);
            (bounds.running, bounds.running_per_module, bounds.running_per_tenant)
        };
        assert_eq!(bounds(1), (1, 1, 1));
        assert_eq!(bounds(2), (2, 1, 1));
        assert_eq!(bounds(4), (4, 3, 2));
        assert_eq!(bounds(8), (8, 6, 5));
        assert_eq!(bounds(32), (32, 24, 23));
    }
}
