//! The resources of a benchmark, and their changes one by one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use innkeeper_cluster_tests::manifests::bench;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Kind};
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// The label that the second version of the guest adds to Deployments.
const LABEL: &str = "bench.example.com/version";

/// How much a benchmark does.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Size {
    /// Custom resources.
    #[arg(long, default_value_t = 1000)]
    pub(crate) resources: usize,
    /// Changes, and drifts, whose latency is measured one by one.
    #[arg(long, default_value_t = 200)]
    pub(crate) samples: usize,
}

/// Benches in a namespace, each of which becomes a Deployment and a Service of its name.
pub(crate) struct Workload {
    admin: Admin,
    namespace: String,
    size: Size,
    /// The replicas of the next change: never the same twice.
    next: AtomicUsize,
}

/// A Deployment at the time of a change.
pub(crate) struct DeploymentChange {
    name: String,
    replicas: Value,
    pub(crate) is_labelled: bool,
    pub(crate) at: Instant,
}

impl Workload {
    /// Benches that do not exist yet.
    pub(crate) fn new(admin: Admin, namespace: &str, size: Size) -> Self {
        let next = AtomicUsize::new(1000);
        Self { admin, namespace: namespace.to_owned(), size, next }
    }

    /// Applies all resources, eight at a time.
    pub(crate) async fn apply_all(&self, replicas: u32) -> Result<()> {
        stream::iter(0..self.size.resources)
            .map(|index| async move {
                let name = format!("b{index:05}");
                self.admin.apply(&bench(&self.namespace, &name, replicas)).await
            })
            .buffer_unordered(8)
            .try_collect::<Vec<_>>()
            .await
            .map(drop)
    }

    /// Every Deployment as it changes.
    pub(crate) fn deployments(&self) -> mpsc::UnboundedReceiver<DeploymentChange> {
        let gvk = kube::api::GroupVersionKind::gvk("apps", "v1", "Deployment");
        let resource = kube::api::ApiResource::from_gvk(&gvk);
        let client = self.admin.client().clone();
        let api: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &resource);
        let (sender, receiver) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut objects = watcher(api, watcher::Config::default()).applied_objects().boxed();
            while let Ok(Some(object)) = objects.try_next().await {
                let labels = object.metadata.labels.as_ref();
                let change = DeploymentChange {
                    name: object.metadata.name.clone().unwrap_or_default(),
                    replicas: object.data["spec"]["replicas"].clone(),
                    is_labelled: labels.is_some_and(|labels| labels.contains_key(LABEL)),
                    at: Instant::now(),
                };
                if sender.send(change).is_err() {
                    return;
                }
            }
        });
        receiver
    }

    /// Changes one resource after the other; returns the time until its Deployment had changed.
    pub(crate) async fn change_one_by_one(&self) -> Result<Vec<Duration>> {
        let mut seen = self.deployments();
        let mut times = Vec::new();
        for sample in 0..self.size.samples {
            let name = format!("b{:05}", sample % self.size.resources);
            let replicas = self.next.fetch_add(1, Ordering::Relaxed);
            let patch = json!({"spec": {"replicas": replicas}});
            let started = Instant::now();
            self.admin.merge(Kind::BENCH, &self.namespace, &name, "bench", &patch).await?;
            times.push(wait(&mut seen, &name, |value| *value == replicas).await? - started);
        }
        Ok(times)
    }

    /// Changes one Deployment after the other; returns the time until each was repaired.
    pub(crate) async fn drift_one_by_one(&self) -> Result<Vec<Duration>> {
        let mut seen = self.deployments();
        let mut times = Vec::new();
        for sample in 0..self.size.samples {
            let name = format!("b{:05}", sample % self.size.resources);
            let at = (Kind::DEPLOYMENT, self.namespace.as_str(), name.as_str());
            let wanted = self.admin.must_get(at.0, at.1, at.2).await?["spec"]["replicas"].clone();
            let patch = json!({"spec": {"replicas": 7}});
            let started = Instant::now();
            self.admin.merge(at.0, at.1, at.2, "somebody", &patch).await?;
            wait(&mut seen, &name, |value| *value == 7).await?;
            times.push(wait(&mut seen, &name, |value| *value == wanted).await? - started);
        }
        Ok(times)
    }
}

/// Waits until a Deployment has such replicas.
async fn wait(
    seen: &mut mpsc::UnboundedReceiver<DeploymentChange>,
    name: &str,
    is: impl Fn(&Value) -> bool,
) -> Result<Instant> {
    let found = tokio::time::timeout(SOON, async {
        while let Some(change) = seen.recv().await {
            if change.name == name && is(&change.replicas) {
                return Some(change.at);
            }
        }
        None
    });
    found
        .await
        .with_context(|| format!("Deployment {name} does not follow"))?
        .context("the watch ended")
}
