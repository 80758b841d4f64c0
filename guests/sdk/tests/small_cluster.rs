//! What a test may rely on that plays a primary's life.

use innkeeper_sdk::ConditionStatus::True;
use innkeeper_sdk::kinds::{ConfigMap, Deployment, PersistentVolumeClaim, Pod, PodTemplate};
use innkeeper_sdk::testing::FakeCluster;
use innkeeper_sdk::{
    Apply, Context, Describe, Desired, Labels, Manifest, Metadata, Observed, Outcome, Policy,
    Primary, Reconciler, Resource,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// A primary that lists what should be.
#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec {
    /// `ConfigMaps`.
    texts: Vec<String>,
    /// Deployments.
    servers: Vec<String>,
    /// Claims that stay when the primary goes.
    volumes: Vec<String>,
    /// Pods of others that are marked.
    marked: Vec<String>,
    /// Wants one more in each round.
    restless: bool,
}

impl Resource for List {
    const API_VERSION: &'static str = "example.com/v1";
    const KIND: &'static str = "List";
    const PLURAL: &'static str = "lists";
}

impl Primary for List {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

struct Guest;

impl Reconciler for Guest {
    type Primary = List;

    fn describe() -> Manifest {
        Describe::reconciler_of::<List>("list", "1.0.0")
            .owns::<ConfigMap>()
            .owns::<Deployment>()
            .owns::<PersistentVolumeClaim>()
            .owns::<Pod>()
            .finalizes("example.com/list")
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<List>) -> Outcome {
        let spec = &observed.primary().spec;
        let count = observed.count_owned::<ConfigMap>();
        if observed.is_deleting() {
            // One after the other.
            let mut left = observed.all_owned::<innkeeper_sdk::read::ConfigMap>();
            left.pop();
            let desired = left.iter().fold(Desired::new(), |desired, one| {
                desired.keep::<ConfigMap>("", &one.object.metadata.name)
            });
            return if count == 0 { desired.finalized() } else { desired }.complete();
        }
        let mut desired = Desired::new();
        for name in &spec.texts {
            desired = desired.object(ConfigMap::new(name).data("text", ""));
        }
        if spec.restless {
            for number in 0..=count {
                desired = desired.object(ConfigMap::new(format!("text-{number}")));
            }
        }
        for name in &spec.servers {
            let template = PodTemplate::new(&Labels::new());
            desired = desired.object(Deployment::new(name, &Labels::new(), template));
        }
        for name in &spec.volumes {
            desired =
                desired.object_with(PersistentVolumeClaim::new(name, "1Gi"), [Policy::Orphan]);
        }
        for name in &spec.marked {
            desired =
                desired.object_with(Pod::of_others(name).label("marked", "yes"), [Policy::Merge]);
        }
        desired.status(&json!({ "texts": count })).ready_condition(observed).complete()
    }
}

fn cluster(spec: &Value) -> FakeCluster<Guest> {
    FakeCluster::with(json!({ "metadata": { "name": "list" }, "spec": spec }))
}

#[test]
fn what_is_desired_is_made_and_seen_in_the_next_round() {
    let mut cluster = cluster(&json!({ "texts": ["a", "b"] }));
    cluster.settle().status("/texts", 2).condition("Ready", True, "AllReady");
    assert!(cluster.has::<ConfigMap>("a") && cluster.has::<ConfigMap>("b"));
}

#[test]
fn a_deployment_is_on_the_way_until_the_test_says_more() {
    let mut cluster = cluster(&json!({ "servers": ["web"] }));
    cluster.settle().condition_says("Ready", "it was just made");
    cluster.becomes_ready::<Deployment>("web");
    cluster.settle().condition("Ready", True, "AllReady");
    cluster.becomes_unready::<Deployment>("web", "0 of 1 replicas are ready");
    cluster.settle().condition_says("Ready", "0 of 1 replicas are ready");
}

#[test]
fn a_change_by_hand_is_set_back_and_a_status_stays() {
    let mut cluster = cluster(&json!({ "texts": ["a"] }));
    cluster.settle();
    cluster.change::<ConfigMap>("a", |object| {
        object["data"]["text"] = json!("drift");
        object["status"] = json!("theirs");
    });
    cluster.settle();
    assert_eq!(cluster.object::<ConfigMap>("a")["data"]["text"], "");
    assert_eq!(cluster.object::<ConfigMap>("a")["status"], "theirs");
}

#[test]
fn what_is_no_longer_desired_goes_unless_it_holds_data() {
    let mut cluster = cluster(&json!({ "texts": ["a", "b"], "volumes": ["data"] }));
    cluster.settle();
    cluster.edit(|list| list["spec"] = json!({ "texts": ["b"] }));
    cluster.settle();
    assert!(!cluster.has::<ConfigMap>("a"));
    assert!(cluster.has::<ConfigMap>("b") && cluster.has::<PersistentVolumeClaim>("data"));
}

#[test]
fn a_merge_changes_what_others_made_and_makes_nothing() {
    let mut cluster = cluster(&json!({ "marked": ["one", "two"] }));
    cluster.add(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "one", "labels": { "app": "web" } },
    }));
    cluster.settle();
    assert_eq!(
        cluster.object::<Pod>("one")["metadata"]["labels"],
        json!({ "app": "web", "marked": "yes" })
    );
    assert!(!cluster.has::<Pod>("two"));
    cluster.remove::<Pod>("one").settle();
}

#[test]
fn a_primary_with_a_finalizer_goes_when_the_guest_says_so_and_leaves_orphans() {
    let mut cluster = cluster(&json!({ "texts": ["a", "b"], "volumes": ["data"] }));
    cluster.settle();
    cluster.delete();
    cluster.round().0.is_not_finalized().keeps::<ConfigMap>("a");
    assert!(cluster.has::<ConfigMap>("a") && !cluster.has::<ConfigMap>("b"));
    cluster.settle().is_finalized();
    assert!(!cluster.has_primary() && !cluster.has::<ConfigMap>("a"));
    assert!(cluster.has::<PersistentVolumeClaim>("data"));
}

#[test]
#[should_panic(expected = "the guest wants something else after each of 10 rounds")]
fn a_guest_that_never_comes_to_rest_fails_the_test() {
    cluster(&json!({ "restless": true })).settle();
}
