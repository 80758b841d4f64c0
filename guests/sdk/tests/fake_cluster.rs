//! What tests with a `FakeCluster` can rely on.

use innkeeper_sdk::ConditionStatus::True;
use innkeeper_sdk::kinds::{ConfigMap, Deployment, PersistentVolumeClaim, Pod, PodTemplate};
use innkeeper_sdk::testing::FakeCluster;
use innkeeper_sdk::{
    Apply, Context, Describe, Desired, Labels, Manifest, Metadata, Observed, Outcome, Policy,
    PrimarySelector, Reconciler, SelectorOperator, ValueRequirement, kind,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// A primary that lists the desired objects.
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
    /// Claims with the policy `orphan`.
    volumes: Vec<String>,
    /// Pods of other controllers that get a label.
    marked: Vec<String>,
    /// Desires one more object in each round.
    unstable: bool,
}

kind!(Primary for List, "example.com/v1", "lists");

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
            .selects(PrimarySelector {
                match_annotation_expressions: vec![ValueRequirement {
                    key: "mode".to_owned(),
                    operator: SelectorOperator::NotIn,
                    values: vec!["off".to_owned()],
                }],
                ..Default::default()
            })
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<List>) -> Outcome {
        let spec = &observed.primary().spec;
        let count = observed.count_owned::<ConfigMap>();
        if observed.is_deleting() {
            // One per round.
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
        if spec.unstable {
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
fn desired_object_is_created_and_observed_in_the_next_round() {
    let mut cluster = cluster(&json!({ "texts": ["a", "b"] }));
    cluster.settle().status("/texts", 2).condition("Ready", True, "AllReady");
    assert!(cluster.has::<ConfigMap>("a") && cluster.has::<ConfigMap>("b"));
}

#[test]
fn new_deployment_is_in_progress_until_the_test_makes_it_ready() {
    let mut cluster = cluster(&json!({ "servers": ["web"] }));
    cluster.settle().condition_says("Ready", "the object was just created");
    cluster.becomes_ready::<Deployment>("web");
    cluster.settle().condition("Ready", True, "AllReady");
    cluster.becomes_unready::<Deployment>("web", "0 of 1 replicas are ready");
    cluster.settle().condition_says("Ready", "0 of 1 replicas are ready");
}

#[test]
fn changed_object_is_reverted_and_keeps_its_status() {
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
fn undesired_object_is_pruned_unless_it_holds_data() {
    let mut cluster = cluster(&json!({ "texts": ["a", "b"], "volumes": ["data"] }));
    cluster.settle();
    cluster.edit(|list| list["spec"] = json!({ "texts": ["b"] }));
    cluster.settle();
    assert!(!cluster.has::<ConfigMap>("a"));
    assert!(cluster.has::<ConfigMap>("b") && cluster.has::<PersistentVolumeClaim>("data"));
}

#[test]
fn merge_changes_existing_objects_and_creates_none() {
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
fn deleted_primary_is_removed_after_finalization_and_orphans_stay() {
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
#[should_panic(expected = "changed objects in each of 10 rounds")]
fn settle_panics_when_the_guest_never_settles() {
    cluster(&json!({ "unstable": true })).settle();
}

#[test]
fn primary_that_the_manifest_does_not_select_is_left_alone() {
    let mut cluster = cluster(&json!({ "texts": ["a"] }));
    cluster.settle();
    cluster.edit(|list| {
        list["metadata"]["annotations"] = json!({ "mode": "off" });
        list["spec"] = json!({ "texts": ["b"] });
    });
    cluster.settle().is_not_selected().desires_objects(0);
    assert!(cluster.has::<ConfigMap>("a") && !cluster.has::<ConfigMap>("b"));

    cluster.edit(|list| list["metadata"]["annotations"] = json!({}));
    cluster.settle().is_complete();
    assert!(!cluster.has::<ConfigMap>("a") && cluster.has::<ConfigMap>("b"));
}

#[test]
fn primary_that_leaves_the_selection_while_it_is_deleted_goes_without_the_guest() {
    let mut cluster = cluster(&json!({ "texts": ["a"] }));
    cluster.settle();
    cluster.delete();
    assert!(cluster.has_primary());
    cluster.edit(|list| list["metadata"]["annotations"] = json!({ "mode": "off" }));
    cluster.settle().is_not_selected();
    assert!(!cluster.has_primary() && !cluster.has::<ConfigMap>("a"));
}
