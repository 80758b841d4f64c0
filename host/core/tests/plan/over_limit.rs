//! Missing objects of an update group over its limit: which they are, and which of them the host
//! creates as they were.

use innkeeper_core::primary_revision::{groups_over_limit, substitute};
use serde_json::{Value, json};

use crate::case::{Case, case, desired_object};

/// The Pods of the names with an image, in a group.
fn pods(names: &[&str], image: &str, group: &Value) -> Case {
    let objects: Value =
        names.iter().map(|name| desired_object("Pod", name, &json!({ "image": image }))).collect();
    case(&objects).group(group)
}

/// A group of four Pods that is updated from `old` to `new`, with the live Pods of these names and
/// images; those with the image `bad` are new and failed.
fn update(group: &Value, live: &[(&str, &str)]) -> Case {
    let mut case = pods(&["a", "b", "c", "d"], "new", group);
    for (name, image) in live {
        let (image, phase) = if *image == "bad" { ("new", "Failed") } else { (*image, "Running") };
        let object = desired_object("Pod", name, &json!({ "image": image }));
        case.applied(&json!([object]), |live| {
            live["status"] = json!({"phase": phase, "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
        });
    }
    case
}

fn over_limit(case: &Case) -> Vec<String> {
    let progress = case.plan().updates.remove(0);
    progress.over_limit.iter().map(|one| one.key.name().to_owned()).collect()
}

fn rolling(max: u32) -> Value {
    json!({"name": "pods", "method": "RollingRecreate", "maxUnavailable": max})
}

#[test]
fn missing_object_of_a_stopped_group_is_over_the_limit() {
    let stopped = update(&rolling(2), &[("a", "bad"), ("b", "old")]);
    assert_eq!(over_limit(&stopped), ["c", "d"]);
    let mut group = rolling(4);
    group["paused"] = true.into();
    assert_eq!(over_limit(&update(&group, &[("b", "old")])), ["a", "c", "d"]);
}

#[test]
fn missing_objects_take_slots_in_the_order_of_the_document() {
    assert_eq!(over_limit(&update(&rolling(1), &[("d", "old")])), ["b", "c"]);
    assert_eq!(over_limit(&update(&rolling(2), &[("a", "old")])), ["d"]);
    assert_eq!(over_limit(&update(&rolling(3), &[("a", "old")])), Vec::<String>::new());
    let mut terminating = update(&rolling(2), &[("c", "old")]);
    terminating.applied(&json!([desired_object("Pod", "a", &json!({"image": "old"}))]), |live| {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    assert_eq!(over_limit(&terminating), ["d"]);
}

#[test]
fn object_whose_create_a_conflict_holds_back_is_not_over_the_limit() {
    let mut case = update(&rolling(1), &[("b", "old")]);
    assert_eq!(over_limit(&case), ["c", "d"]);
    case.foreign("Pod", "a", &json!([]));
    assert!(over_limit(&case).is_empty());
}

#[test]
fn object_deleted_by_the_update_is_created_as_desired_now() {
    assert!(
        over_limit(&update(&rolling(1), &[("a", "new"), ("c", "old"), ("d", "old")])).is_empty()
    );
}

#[test]
fn group_without_an_update_and_other_methods_have_no_limit() {
    assert!(over_limit(&update(&rolling(1), &[])).is_empty());
    assert!(over_limit(&update(&rolling(1), &[("a", "new")])).is_empty());
    for method in ["OnDelete", "InPlace", "Recreate"] {
        let group = json!({"name": "pods", "method": method, "paused": method != "OnDelete"});
        assert!(over_limit(&update(&group, &[("a", "old")])).is_empty(), "{method}");
    }
}

/// Substitutes by what the guest desires for an earlier revision, and plans again.
fn substituted(case: &mut Case, old: &Case) -> (usize, usize) {
    let plan = case.plan();
    let mut groups =
        groups_over_limit(&plan.updates, &case.desired_state, &case.lookups(), &case.primary);
    let replaced = substitute(&mut case.desired_state, &old.desired_state, &mut groups);
    (replaced, groups.len())
}

fn created(case: &Case) -> Vec<(String, String)> {
    let plan = case.plan();
    let creates = plan.steps.iter().filter(|step| step.to_string().starts_with("create"));
    creates
        .map(|step| {
            let body = &case.desired_state.objects[step.desired_index.unwrap()].body;
            let image = body["spec"]["image"].as_str().unwrap();
            (step.object_ref.key.name().to_owned(), image.to_owned())
        })
        .collect()
}

#[test]
fn missing_objects_over_the_limit_are_created_as_they_were() {
    let group = rolling(1);
    let mut case = update(&group, &[("c", "old")]);
    let old = pods(&["a", "b", "c", "d"], "old", &group);
    assert_eq!(substituted(&mut case, &old), (2, 0));
    let images = [("a", "new"), ("b", "old"), ("d", "old")];
    assert_eq!(created(&case), images.map(|(name, image)| (name.to_owned(), image.to_owned())));
    let positions: Vec<usize> = case.desired_state.objects.iter().map(|one| one.position).collect();
    assert_eq!(positions, [0, 1, 2, 3]);
}

#[test]
fn substitute_needs_a_neighbour_with_its_digest() {
    let group = rolling(1);
    let older = pods(&["a", "b", "c", "d"], "older", &group);
    let mut case = update(&group, &[("c", "old")]);
    assert_eq!(substituted(&mut case, &older), (0, 1), "the neighbour is on another revision");

    let old = pods(&["a", "b", "c", "d"], "old", &group);
    let mut case = update(&group, &[]);
    case.applied(&json!([desired_object("Pod", "c", &json!({"image": "old"}))]), |live| {
        live["metadata"]["managedFields"] = json!([]);
        live["metadata"]["ownerReferences"] = json!([]);
    });
    assert_eq!(substituted(&mut case, &old), (0, 0), "the neighbour is not the primary's");

    let other_group =
        pods(&["a", "b", "c", "d"], "old", &json!({"name": "x", "method": "InPlace"}));
    let mut case = update(&group, &[("c", "old")]);
    assert_eq!(substituted(&mut case, &other_group), (0, 1), "it was in another group");
}

#[test]
fn object_that_the_earlier_revision_lacks_is_created_as_desired_now() {
    let group = rolling(1);
    let mut case = update(&group, &[("a", "bad"), ("c", "old")]);
    let old = pods(&["a", "b", "c"], "old", &group);
    assert_eq!(substituted(&mut case, &old), (1, 0));
    let images = [("b", "old"), ("d", "new")];
    assert_eq!(created(&case), images.map(|(name, image)| (name.to_owned(), image.to_owned())));
}

#[test]
fn object_whose_new_body_the_server_refused_proves_its_revision() {
    let group = json!({"name": "pods", "method": "RollingInPlace", "maxUnavailable": 1});
    let mut case = pods(&["a", "b"], "new", &group);
    case.applied(&json!([desired_object("Pod", "a", &json!({"image": "old"}))]), |_| {});
    case.rejected_as_immutable("spec.image is immutable");
    assert_eq!(over_limit(&case), ["b"]);
    let old = pods(&["a", "b"], "old", &group);
    assert_eq!(substituted(&mut case, &old), (1, 0));
    assert_eq!(created(&case), [("b".to_owned(), "old".to_owned())]);

    let mut never_made = pods(&["a", "b"], "new", &group);
    never_made.rejected_as_immutable("spec.image is immutable");
    assert!(over_limit(&never_made).is_empty());
}

#[test]
fn object_that_is_being_deleted_proves_its_revision() {
    let group = rolling(1);
    let mut case = update(&group, &[("a", "bad")]);
    case.applied(&json!([desired_object("Pod", "c", &json!({"image": "old"}))]), |live| {
        live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    let old = pods(&["a", "b", "c", "d"], "old", &group);
    assert_eq!(substituted(&mut case, &old), (2, 0));
}
