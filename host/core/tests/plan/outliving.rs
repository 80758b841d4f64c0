//! A primary that goes: what goes with it, what stays, and who takes it up again.

use expect_test::expect;
use innkeeper_core::ownership::RETAINED_FOR_LABEL;
use serde_json::{Value, json};

use crate::world::{World, deployment, desired_object, service, world};

fn kept() -> Value {
    let mut kept = desired_object("ConfigMap", "data", &json!({"size": 1}));
    kept["policy"] = json!(["orphan"]);
    kept
}

/// Everything that this primary has made, and nothing that it wants any more.
fn going(objects: &Value) -> World {
    let mut world = world(&json!([]));
    world.applied(objects, |_| {});
    world.deleting = true;
    world
}

#[test]
fn retained_objects_stay_after_their_primary() {
    let world = going(&json!([deployment(3), kept(), service()]));
    world.check(&expect![[r"
        delete Service web/b
        delete Deployment web/a
        skip ConfigMap web/data: outlives its primary"]]);
    assert_eq!(world.plan().pending_deletion.len(), 2, "what stays is not waited for");
}

#[test]
fn what_is_no_longer_wanted_of_a_primary_that_stays_goes_also_if_it_would_outlive_it() {
    let mut world = going(&json!([kept()]));
    world.deleting = false;
    world.check(&expect!["delete ConfigMap web/data"]);
}

#[test]
fn a_terminating_object_blocks_its_replacement() {
    let mut world = world(&json!([]));
    world.deleting = true;
    world.applied(&json!([deployment(3)]), |value| {
        value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    world.check(&expect![""]);
    assert_eq!(world.plan().pending_deletion.len(), 1);
    world.desired_state.keep.insert(world.live[0].0.reference());
    assert_eq!(world.plan().pending_deletion, [], "what the guest keeps is not");
}

#[test]
fn a_primary_of_the_same_name_takes_up_what_was_kept_for_it() {
    let mut world = world(&json!([kept(), service()]));
    let identity = world.primary.identity();
    let left_behind = |identity: &str| {
        json!({"metadata": {"name": "data", "namespace": "web", "uid": "old", "resourceVersion": "3",
            "labels": {RETAINED_FOR_LABEL: identity},
            "managedFields": [{"manager": "innkeeper/podroute/u0", "operation": "Apply",
                "fieldsV1": {"f:spec": {}}}]}})
    };
    world.put("ConfigMap", &left_behind(&identity));
    world.check(&expect![[r"
        adopt ConfigMap web/data
        create Service web/b"]]);
    let predecessors = world.primary.predecessors(&world.live[0].1);
    assert_eq!(predecessors[0].to_string(), "innkeeper/podroute/u0");

    // What another module keeps for the same primary is not for taking.
    let mut anothers = left_behind(&identity);
    anothers["metadata"]["managedFields"][0]["manager"] = "innkeeper/other/u1".into();
    world.live.clear();
    world.put("ConfigMap", &anothers);
    world.check(&expect![[r"
        skip ConfigMap web/data: it exists and has no controller
        skip Service web/b: not created, since ConfigMap web/data is not this primary's"]]);

    world.live.clear();
    world.put("ConfigMap", &left_behind("of-another"));
    world.check(&expect![[r"
        skip ConfigMap web/data: it exists and has no controller
        skip Service web/b: not created, since ConfigMap web/data is not this primary's"]]);
}
