//! A guest that moves to another version of its primary kind, which the owner reference of each
//! object names.

use std::sync::Arc;

use expect_test::expect;
use innkeeper_contract::Kind;
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::{ObjectKey, ObjectRef};
use serde_json::{Value, json};

use crate::case::{Case, case, case_of};
use crate::updates::{APPLIED, pod, put, ready, rolling};

/// A primary in `quay.io/v1` that desires these objects. What the module applied before names the
/// primary in `quay.io/v1alpha1`.
fn moved(objects: &Value) -> Case {
    let kind = Kind::namespaced("quay.io/v1", "Podroute", "podroutes");
    case_of(ObjectRef::new(Arc::new(kind), ObjectKey::new("web", "first")), "u1", objects)
}

/// Such a primary with a group of the Pods `a` and `b` that desires the image `new`. Both Pods have
/// this image.
fn moved_group(method: &str, image: &str) -> Case {
    let mut case = moved(&json!([pod("a", "new"), pod("b", "new")])).group(&rolling(method));
    for name in ["a", "b"] {
        put(&mut case, name, image, &ready(), APPLIED);
    }
    case
}

#[test]
fn object_whose_owner_changes_its_api_version_alone_is_applied_by_every_method() {
    for method in ["OnDelete", "InPlace", "Recreate", "RollingInPlace", "RollingRecreate"] {
        let case = moved_group(method, "new");
        case.check(&expect![[r"
            apply Pod web/a: the apiVersion of its owner changed
            apply Pod web/b: the apiVersion of its owner changed"]]);
        let update = case.plan().updates.remove(0);
        assert_eq!((update.total, update.updated, update.available), (2, 2, 2), "{method}");
    }
}

#[test]
fn running_host_that_remembers_its_applies_decides_alike() {
    let before = case(&json!([pod("a", "new"), pod("b", "new")]));
    let mut case = moved_group("RollingRecreate", "new");
    for (desired, (object_ref, live)) in before.desired_state.objects.iter().zip(&case.live) {
        let last_applied = LastApplied::new(&desired.body, live, &case.primary.manager).unwrap();
        case.state.applied.insert(object_ref.clone(), last_applied);
    }
    case.check(&expect![[r"
        apply Pod web/a: the apiVersion of its owner changed
        apply Pod web/b: the apiVersion of its owner changed"]]);
}

#[test]
fn object_that_changes_together_with_its_owner_is_updated_in_its_turn() {
    moved_group("RollingRecreate", "old").check(&expect![[r"
        recreate Pod web/a
        skip Pod web/b: outdated, updated in its turn"]]);
}

#[test]
fn owner_of_another_group_is_a_change() {
    let kind = Kind::namespaced("example.com/v1alpha1", "Podroute", "podroutes");
    let objects = json!([pod("a", "new")]);
    let primary = ObjectRef::new(Arc::new(kind), ObjectKey::new("web", "first"));
    let mut case = case_of(primary, "u1", &objects);
    put(&mut case, "a", "new", &ready(), APPLIED);
    case.check(&expect!["apply Pod web/a: changed"]);
}

#[test]
fn drift_next_to_the_move_is_drift() {
    let mut case = moved(&json!([pod("a", "new")])).group(&rolling("OnDelete"));
    case.applied(&json!([pod("a", "new")]), |live| {
        let entry = &mut live["metadata"]["managedFields"][0]["fieldsV1"];
        entry.as_object_mut().unwrap().remove("f:spec");
    });
    // The method repairs no drift.
    case.check(&expect!["skip Pod web/a: outdated, changes when it is deleted"]);
    case.desired_state.objects[0].update_group = None;
    case.check(&expect!["apply Pod web/a: another manager changed .spec.image"]);
}
