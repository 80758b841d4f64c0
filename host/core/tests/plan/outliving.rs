//! Deletion of a primary: deleted and retained objects, and their adoption by a new primary.

use expect_test::expect;
use innkeeper_core::ownership::RETAINED_FOR_LABEL;
use serde_json::{Value, json};

use crate::case::{Case, case, deployment, desired_object, service};

fn retained() -> Value {
    let mut retained = desired_object("ConfigMap", "data", &json!({"size": 1}));
    retained["policy"] = json!(["orphan"]);
    retained
}

/// A primary that is being deleted: it has made these objects and desires none.
fn terminating(objects: &Value) -> Case {
    let mut case = case(&json!([]));
    case.applied(objects, |_| {});
    case.deleting = true;
    case
}

#[test]
fn retained_object_stays_when_the_primary_is_deleted() {
    let case = terminating(&json!([deployment(3), retained(), service()]));
    case.check(&expect![[r"
        delete Service web/b
        delete Deployment web/a
        skip ConfigMap web/data: outlives its primary"]]);
    assert_eq!(
        case.plan().pending_deletion.len(),
        2,
        "the host does not wait for retained objects"
    );
}

#[test]
fn undesired_retained_object_is_deleted_while_the_primary_stays() {
    let mut case = terminating(&json!([retained()]));
    case.deleting = false;
    case.check(&expect!["delete ConfigMap web/data"]);
}

#[test]
fn terminating_object_is_pending_unless_the_guest_keeps_it() {
    let mut case = case(&json!([]));
    case.deleting = true;
    case.applied(&json!([deployment(3)]), |value| {
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    case.check(&expect![""]);
    assert_eq!(case.plan().pending_deletion.len(), 1);
    case.desired_state.keep.insert(case.live[0].0.reference());
    assert_eq!(case.plan().pending_deletion, [], "the guest keeps it");
}

#[test]
fn retained_object_is_adopted_by_a_primary_of_the_same_name() {
    let mut case = case(&json!([retained(), service()]));
    let identity = case.primary.identity();
    let left_behind = |identity: &str| {
        json!({"metadata": {"name": "data", "namespace": "web", "uid": "old", "resourceVersion": "3",
            "labels": {RETAINED_FOR_LABEL: identity},
            "managedFields": [{"manager": "innkeeper/podroute/u0", "operation": "Apply",
                "fieldsV1": {"f:spec": {}}}]}})
    };
    case.put("ConfigMap", &left_behind(&identity));
    case.check(&expect![[r"
        adopt ConfigMap web/data
        create Service web/b"]]);
    let predecessors = case.primary.predecessors(&case.live[0].1);
    assert_eq!(predecessors[0].to_string(), "innkeeper/podroute/u0");

    // An object that another module made for the same primary is a conflict.
    let mut of_another_module = left_behind(&identity);
    of_another_module["metadata"]["managedFields"][0]["manager"] = "innkeeper/other/u1".into();
    case.live.clear();
    case.put("ConfigMap", &of_another_module);
    case.check(&expect![[r#"
        skip ConfigMap web/data: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true; until then the host holds back Service web/b
        skip Service web/b: held back, since ConfigMap web/data is not this primary's"#]]);

    case.live.clear();
    case.put("ConfigMap", &left_behind("of-another"));
    case.check(&expect![[r#"
        skip ConfigMap web/data: it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true; until then the host holds back Service web/b
        skip Service web/b: held back, since ConfigMap web/data is not this primary's"#]]);
}
