//! The guest labels on the simulated API server, in virtual time: where a user sees that a
//! decorator, which writes no status of its primaries, cannot apply.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod running;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_lab::{Content, Guests, Lab, Modules, Setup};
use running::{block_on, component};
use serde_json::{Value, json};

const MODULE: &str = "/apis/innkeeper.dev/v1alpha1/modules/labels";
const NAMESPACE: &str = "/api/v1/namespaces/shop";
/// How long the test waits for anything, in virtual time.
const LIMIT: Duration = Duration::from_mins(3);

/// The definition of Modules.
fn definition() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/modules.innkeeper.dev.yaml");
    serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The Module `labels`, as an administrator installs it, which sets the label `team`.
fn module() -> Vec<Value> {
    let may = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let rules = [
        may("", "namespaces", &["get", "list", "watch", "patch"]),
        may("events.k8s.io", "events", &["create", "patch"]),
    ];
    let rbac = "rbac.authorization.k8s.io/v1";
    let code = std::fs::read(component("labels")).unwrap();
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "labels", "namespace": "innkeeper-modules",
                "annotations": {"innkeeper.dev/allowed-modules": "labels"}}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": "labels"}, "rules": rules}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": "labels"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "labels"},
            "subjects": [{"kind": "ServiceAccount", "name": "labels", "namespace": "innkeeper-modules"}]}),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "labels", "namespace": "innkeeper-modules"},
            "binaryData": {"guest.wasm": STANDARD.encode(code)}}),
        json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "labels"},
            "spec": {"source": {"configMap": {"name": "labels"}}, "serviceAccountName": "labels",
                "parameters": {"labels": {"team": "ours"}}}}),
    ]
}

/// Writes the label `team` of the namespace as a manager of its own; `None` gives it up.
async fn set_team(lab: &Lab, team: Option<&str>) {
    let labels = team.map_or_else(|| json!({}), |team| json!({ "team": team }));
    let body = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "shop", "labels": labels}});
    let path = format!("{NAMESPACE}?fieldManager=gitops");
    lab.api().send("PATCH", &path, Content::Apply, &body).await.unwrap();
}

/// Waits until `Healthy` of the Module is true with this reason. Returns its message.
async fn until_healthy(lab: &Lab, reason: &str) -> String {
    let healthy = |module: &Value| {
        let conditions = module["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|one| one["type"] == "Healthy").unwrap_or_default()
    };
    let what = format!("Healthy=True {reason}");
    let holds = lab.until(&what, LIMIT, async |api| {
        let condition = healthy(&api.get(MODULE).await?.unwrap_or_default());
        Ok(condition["status"] == "True" && condition["reason"] == reason)
    });
    let holds = holds.await;
    let module = lab.api().get(MODULE).await.unwrap().unwrap();
    assert!(holds.is_ok(), "{holds:?}: {:#}", module["status"]);
    healthy(&module)["message"].as_str().unwrap().to_owned()
}

#[test]
fn decorator_that_cannot_apply_is_reported_by_the_module_and_an_event_until_it_can() {
    block_on(async {
        // Given a namespace whose label belongs to another manager.
        let mut setup = Setup::new(5);
        setup.modules = Modules::OfCluster;
        setup.objects = vec![definition()];
        setup.objects.extend(module());
        let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
        until_healthy(&lab, "ReconcileSucceeded").await;

        // When the guest desires another value.
        set_team(&lab, Some("theirs")).await;

        // Then the Module counts the namespace, and names it with reason, field and manager.
        let message = until_healthy(&lab, "SomeWritesRefused").await;
        for part in ["1 primary", "shop (FieldConflict: Namespace shop: ", "gitops", "team"] {
            assert!(message.contains(part), "{part}: {message}");
        }

        // And an Event about it names label and manager, and the namespace has no status for it.
        let events = lab.api().list("/apis/events.k8s.io/v1/events").await.unwrap();
        let event = events.iter().find(|one| one["regarding"]["name"] == "shop").unwrap();
        assert_eq!(
            (&event["type"], &event["reason"]),
            (&json!("Warning"), &json!("FieldConflict"))
        );
        let note = event["note"].as_str().unwrap();
        assert!(note.contains("team") && note.contains("gitops"), "{note}");
        let namespace = lab.api().get(NAMESPACE).await.unwrap().unwrap();
        assert_eq!(namespace["metadata"]["labels"]["team"], "theirs");
        assert_eq!(namespace["status"].get("conditions"), None, "{namespace:#}");

        // When the other manager gives the label up, then the guest sets it and all is well.
        set_team(&lab, None).await;
        until_healthy(&lab, "ReconcileSucceeded").await;
        let namespace = lab.api().get(NAMESPACE).await.unwrap().unwrap();
        assert_eq!(namespace["metadata"]["labels"]["team"], "ours");
        assert!(lab.end().await, "the operator ends on request");
    });
}
