//! The replica of a stage's operator, which reviews with the records that the operator writes.

use std::time::Duration;

use innkeeper_admission::{AdmissionRequest, Reviewed, Reviewer as _, WebhookRef};
use innkeeper_cluster::Task;
use innkeeper_operator::policies::{Entry, PolicyReviewer};
use innkeeper_operator::{PolicyFollower, ReplicaName, ReplicaPolicies};
use innkeeper_sandbox::{Compile, Engine, Interruption};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::policy_leading::cluster;
use super::stage::Stage;

/// The time that requests of the tests have.
const TIME: Duration = Duration::from_secs(10);

/// A replica that follows the records.
pub(crate) struct Reviewing {
    pub(crate) policies: ReplicaPolicies,
    reviewer: PolicyReviewer,
    stop: watch::Sender<bool>,
    task: Task<()>,
}

impl Reviewing {
    /// Starts to follow the records, and waits until the policy of the stage reviews.
    pub(crate) async fn start(stage: &Stage) -> Self {
        let engine = Engine::builder()
            .compile(Compile::InProcess)
            .interruption(Interruption::Fuel)
            .build()
            .unwrap();
        let cluster = cluster(stage.simulator(), stage.proxy());
        let policies = stage.policies().clone();
        let name = ReplicaName::of("lab");
        let follower = PolicyFollower::new(cluster.clone(), engine, policies.clone(), name);
        let (stop, stopped) = watch::channel(false);
        let task = cluster.env().spawn("follow", follower.follow(stopped));
        let reviewer = PolicyReviewer::new(policies.clone());
        let replica = Self { policies, reviewer, stop, task };
        stage.pass(10).await;
        assert!(replica.id().is_some(), "no policy reviews");
        replica
    }

    /// The id of the record with which the replica reviews.
    pub(crate) fn id(&self) -> Option<String> {
        match self.policies.active().get("scripts", Instant::now())? {
            Entry::Active(policy) => Some(policy.id.clone()),
            Entry::Removed { .. } => None,
        }
    }

    /// Reviews a request.
    pub(crate) async fn review(&self, request: &Value) -> Reviewed {
        let body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": request});
        let body = body.to_string();
        let request = AdmissionRequest::read(body.as_bytes()).unwrap();
        let webhook = WebhookRef { module: "scripts".to_owned(), index: 0 };
        self.reviewer.review(webhook, request, (Instant::now() + TIME).into_std()).await
    }

    /// Ends the replica.
    pub(crate) async fn end(self) {
        let _ = self.stop.send(true);
        assert!(self.task.await.is_some(), "it panicked");
    }
}

/// A request that creates an object of the core group in the namespace `ns`.
pub(crate) fn create(kind: &str, resource: &str, name: &str, data: &Value) -> Value {
    json!({"uid": "u", "operation": "CREATE", "namespace": "ns", "name": name,
        "kind": {"group": "", "version": "v1", "kind": kind},
        "resource": {"group": "", "version": "v1", "resource": resource},
        "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
        "object": {"apiVersion": "v1", "kind": kind,
            "metadata": {"name": name, "namespace": "ns"}, "data": data}})
}
