//! Conflicts: which creates each of them holds back.

use std::collections::BTreeSet;

use expect_test::expect;
use innkeeper_core::ObjectRef;
use innkeeper_core::plan::{Action, SkipReason};
use serde_json::{Value, json};

use crate::case::{
    Case, case, cluster_case, deployment, desired_object, named_cluster_case, service,
};

/// A desired ConfigMap of a namespace.
fn config_map(namespace: &str, name: &str) -> Value {
    let mut object = desired_object("ConfigMap", name, &json!({}));
    object["object"]["metadata"]["namespace"] = namespace.into();
    object
}

/// The same, which stands for itself.
fn independent(mut object: Value) -> Value {
    object["policy"] = json!(["independent"]);
    object
}

/// Adds an object of somebody else.
fn foreign(case: &mut Case, kind: &str, namespace: &str, name: &str) {
    case.put(
        kind,
        &json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("theirs-{name}"),
            "resourceVersion": "3", "labels": {"app": "x"}}}),
    );
}

const NOT_ADOPTED: &str = "it exists and has no controller; to let this primary adopt it, annotate the primary with innkeeper.dev/adopt=true";

/// The steps of a plan, with a shorter text of the conflict.
fn steps(case: &Case) -> String {
    let steps = case.plan().steps;
    let lines = steps.iter().map(|step| step.to_string().replace(NOT_ADOPTED, "conflict"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn conflict_holds_back_creates_in_its_namespace_only() {
    let mut case = cluster_case(&json!([
        config_map("a", "settings"),
        config_map("a", "more"),
        config_map("b", "settings"),
        config_map("c", "settings"),
    ]));
    foreign(&mut case, "ConfigMap", "a", "settings");
    expect![[r"
        skip ConfigMap a/more: held back, since ConfigMap a/settings is not this primary's
        skip ConfigMap a/settings: conflict; until then the host holds back ConfigMap a/more
        create ConfigMap b/settings
        create ConfigMap c/settings"]]
    .assert_eq(&steps(&case));
}

#[test]
fn conflict_about_a_namespace_holds_back_the_creates_in_it() {
    let mut case = cluster_case(&json!([
        desired_object("Namespace", "a", &json!({})),
        config_map("a", "settings"),
        desired_object("Namespace", "b", &json!({})),
        config_map("b", "settings"),
    ]));
    foreign(&mut case, "Namespace", "", "a");
    expect![[r"
        skip Namespace a: conflict; until then the host holds back ConfigMap a/settings
        create Namespace b
        skip ConfigMap a/settings: held back, since Namespace a is not this primary's
        create ConfigMap b/settings"]]
    .assert_eq(&steps(&case));
}

#[test]
fn conflict_about_another_cluster_scoped_object_holds_back_all_creates() {
    let mut case = cluster_case(&json!([
        desired_object("ClusterRole", "reader", &json!({})),
        config_map("a", "settings"),
        config_map("b", "settings"),
    ]));
    foreign(&mut case, "ClusterRole", "", "reader");
    expect![[r"
        skip ConfigMap a/settings: held back, since ClusterRole reader is not this primary's
        skip ConfigMap b/settings: held back, since ClusterRole reader is not this primary's
        skip ClusterRole reader: conflict; until then the host holds back ConfigMap a/settings, ConfigMap b/settings"]]
    .assert_eq(&steps(&case));
}

#[test]
fn conflict_in_a_namespace_holds_back_creates_of_cluster_scoped_objects_but_namespaces() {
    let mut case = cluster_case(&json!([
        desired_object("Namespace", "b", &json!({})),
        desired_object("ClusterRole", "reader", &json!({})),
        config_map("a", "settings"),
        config_map("b", "settings"),
    ]));
    foreign(&mut case, "ConfigMap", "a", "settings");
    expect![[r"
        create Namespace b
        skip ConfigMap a/settings: conflict; until then the host holds back ClusterRole reader
        create ConfigMap b/settings
        skip ClusterRole reader: held back, since ConfigMap a/settings is not this primary's"]]
    .assert_eq(&steps(&case));
}

#[test]
fn reserved_object_holds_back_no_create_and_no_update() {
    let objects = json!([
        desired_object("Namespace", "innkeeper-modules", &json!({})),
        config_map("innkeeper-system", "settings"),
        desired_object("ClusterRole", "innkeeper", &json!({})),
        desired_object("ClusterRole", "reader", &json!({})),
        config_map("a", "settings"),
    ]);
    let mut case = cluster_case(&objects);
    let reserved = "it belongs to Innkeeper itself: no module writes the host's namespace (innkeeper-system unless it was installed in another one), the namespace innkeeper-modules, kinds of innkeeper.dev, or the host's own roles and policies; have the guest leave it out";
    let expected = expect![[r"
        skip Namespace innkeeper-modules: reserved
        create ConfigMap a/settings
        skip ConfigMap innkeeper-system/settings: reserved
        skip ClusterRole innkeeper: reserved
        create ClusterRole reader"]];
    expected.assert_eq(&steps(&case).replace(reserved, "reserved"));

    // Nor does the host look at what exists there, and nothing is deleted meanwhile.
    foreign(&mut case, "Namespace", "", "innkeeper-modules");
    foreign(&mut case, "ConfigMap", "innkeeper-system", "settings");
    expected.assert_eq(&steps(&case).replace(reserved, "reserved"));
    assert!(!case.plan().prune_pending);
    let dropped = cluster_case(&json!([config_map("b", "old")])).desired_state.objects.remove(0);
    case.shown(&dropped, "old");
    assert!(case.plan().prune_pending);
}

/// Two primaries desire the same names, and either may be interrupted after each create.
#[test]
fn one_of_two_primaries_gets_all_objects_in_every_order_of_their_creates() {
    let service = |name| {
        let mut object = desired_object("Service", name, &json!({}));
        object["object"]["metadata"]["namespace"] = "a".into();
        object
    };
    let role = desired_object("ClusterRole", "reader", &json!({}));
    let objects = json!([config_map("a", "settings"), role, service("one"), service("two")]);
    let uids = ["u1", "u2"];
    let mut left = vec![Vec::<(ObjectRef, usize)>::new()];
    let mut ends = 0;
    while let Some(owners) = left.pop() {
        let mut ended = true;
        for (primary, uid) in uids.iter().enumerate() {
            let mut case = named_cluster_case(uid, uid, &objects);
            for (object_ref, owner) in &owners {
                let of_owner = named_cluster_case(uids[*owner], uids[*owner], &objects);
                made(&mut case, object_ref, &of_owner);
            }
            let steps = case.plan().steps;
            if let Some(step) = steps.iter().find(|step| step.action == Action::Create) {
                ended = false;
                let mut next = owners.clone();
                next.push((step.object_ref.clone(), primary));
                left.push(next);
            }
        }
        if ended {
            ends += 1;
            assert_eq!(owners.len(), 4, "{owners:?}");
            assert!(owners.iter().all(|(_, owner)| *owner == owners[0].1), "{owners:?}");
        }
    }
    assert_eq!(ends, 2, "the first create decides");
}

/// Adds an object that the primary of another case has made.
fn made(case: &mut Case, object_ref: &ObjectRef, by: &Case) {
    let key = &object_ref.key;
    let manager = format!("innkeeper/podroute/{}", by.primary.uid);
    case.put(
        &object_ref.kind.kind,
        &json!({"metadata": {"name": key.name(), "namespace": key.namespace(),
            "uid": format!("uid-{}", key.name()), "resourceVersion": "3",
            "ownerReferences": [by.primary.owner_reference()],
            "managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": {}}]}}),
    );
}

/// The unmerge that precedes an adoption.
#[test]
fn conflict_holds_back_an_unmerge_before_an_adoption() {
    let mut case = case(&json!([desired_object("ConfigMap", "merged", &json!({})), service()]));
    case.adopt = true;
    case.put(
        "ConfigMap",
        &json!({"metadata": {"name": "merged", "namespace": "web", "uid": "m",
            "resourceVersion": "3", "managedFields": [
                {"manager": "innkeeper/podroute/u1/merge", "operation": "Apply", "fieldsV1": {}}]}}),
    );
    expect![[r"
        unmerge ConfigMap web/merged
        create Service web/b"]]
    .assert_eq(&steps(&case));
    let owner =
        json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "z", "controller": true}]);
    case.foreign("Service", "b", &owner);
    expect![[r"
        skip ConfigMap web/merged: held back, since Service web/b is not this primary's
        skip Service web/b: it is controlled by X y; to let this primary have it, delete that owner, or its owner reference in the object; until then the host holds back ConfigMap web/merged"]]
    .assert_eq(&steps(&case));
}

#[test]
fn conflict_about_an_independent_object_holds_back_no_other() {
    let mut case = case(&json!([independent(deployment(3)), service()]));
    foreign(&mut case, "Deployment", "web", "a");
    expect![[r"
        skip Deployment web/a: conflict
        create Service web/b"]]
    .assert_eq(&steps(&case));
}

#[test]
fn independent_object_is_created_whatever_conflict_holds_back_others() {
    let mut case = case(&json!([
        independent(config_map("web", "alone")),
        config_map("web", "together"),
        service()
    ]));
    foreign(&mut case, "Service", "web", "b");
    expect![[r"
        create ConfigMap web/alone
        skip ConfigMap web/together: held back, since Service web/b is not this primary's
        skip Service web/b: conflict; until then the host holds back ConfigMap web/together"]]
    .assert_eq(&steps(&case));
}

#[test]
fn independent_object_of_somebody_else_is_neither_applied_nor_adopted() {
    let owner =
        json!([{"apiVersion": "v1", "kind": "X", "name": "y", "uid": "z", "controller": true}]);
    for adopt in [false, true] {
        let mut case = case(&json!([independent(deployment(3))]));
        case.foreign("Deployment", "a", &owner);
        case.adopt = adopt;
        let step = &case.plan().steps[0];
        let is_conflict = matches!(step.action, Action::Skip(SkipReason::Conflict { .. }));
        assert!(is_conflict, "adopt {adopt}: {step}");
    }
}

#[test]
fn conflict_names_the_first_objects_that_it_holds_back() {
    let objects: Vec<Value> = (0..8).map(|n| config_map("web", &format!("map-{n}"))).collect();
    let mut case = case(&Value::from(objects));
    foreign(&mut case, "ConfigMap", "web", "map-0");
    let first = steps(&case).lines().next().unwrap().to_owned();
    expect!["skip ConfigMap web/map-0: conflict; until then the host holds back ConfigMap web/map-1, ConfigMap web/map-2, ConfigMap web/map-3, ConfigMap web/map-4, ConfigMap web/map-5 and more"]
        .assert_eq(&first);
}

#[test]
fn object_is_not_deleted_to_be_recreated_while_a_conflict_would_hold_back_its_create() {
    let mut recreated = deployment(5);
    recreated["policy"] = json!(["recreate-when-immutable"]);
    let mut case = case(&json!([recreated, service()]));
    case.applied(&json!([deployment(3)]), |_| {});
    case.rejected_as_immutable("field is immutable");
    assert!(steps(&case).starts_with("recreate Deployment web/a"));
    foreign(&mut case, "Service", "web", "b");
    expect![[r"
        skip Deployment web/a: held back, since Service web/b is not this primary's
        skip Service web/b: conflict; until then the host holds back Deployment web/a"]]
    .assert_eq(&steps(&case));
}

#[test]
fn nothing_is_pruned_in_any_namespace_while_a_conflict_stands() {
    let mut desired = vec![config_map("a", "settings"), config_map("b", "settings")];
    for with_policy in [false, true] {
        if with_policy {
            desired[0] = independent(desired[0].clone());
        }
        let mut case = cluster_case(&Value::from(desired.clone()));
        foreign(&mut case, "ConfigMap", "a", "settings");
        // Made earlier, and no longer desired.
        let manager =
            json!([{"manager": "innkeeper/podroute/u1", "operation": "Apply", "fieldsV1": {}}]);
        case.put(
            "ConfigMap",
            &json!({"metadata": {"name": "old", "namespace": "c", "uid": "old",
                "ownerReferences": [case.primary.owner_reference()], "managedFields": manager}}),
        );
        let plan = case.plan();
        let deletes =
            |one: &&innkeeper_core::plan::Step| matches!(one.action, Action::Delete { .. });
        assert_eq!(plan.steps.iter().find(deletes), None);
        assert!(plan.prune_pending);
        // Without the conflict it is deleted.
        case.live.remove(0);
        assert!(case.plan().steps.iter().any(|one| deletes(&one)));
    }
}

/// All sets of foreign objects and of independent ones: two namespaces with two objects each, and a
/// cluster-scoped object.
#[test]
fn objects_of_a_namespace_are_created_all_or_not_at_all_in_every_combination() {
    let names = [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two"), ("", "role")];
    let of = |(namespace, name): (&str, &str)| match namespace {
        "" => desired_object("ClusterRole", name, &json!({})),
        _ => config_map(namespace, name),
    };
    for bits in 0..1_u32 << (2 * names.len()) {
        let is_foreign = |index: usize| bits >> index & 1 == 1;
        let is_independent = |index: usize| bits >> (index + names.len()) & 1 == 1;
        let objects = names.iter().enumerate().map(|(index, name)| {
            if is_independent(index) { independent(of(*name)) } else { of(*name) }
        });
        let mut case = cluster_case(&objects.collect::<Vec<_>>().into());
        for (index, (namespace, name)) in names.iter().enumerate() {
            if is_foreign(index) {
                let kind = if namespace.is_empty() { "ClusterRole" } else { "ConfigMap" };
                foreign(&mut case, kind, namespace, name);
            }
        }
        let plan = case.plan();
        let created: BTreeSet<(&str, &str)> = plan
            .steps
            .iter()
            .filter(|step| step.action == Action::Create)
            .map(|step| (step.object_ref.key.namespace(), step.object_ref.key.name()))
            .collect();
        for (index, name) in names.iter().enumerate() {
            let is_of_a_conflict = names.iter().enumerate().any(|(other, at)| {
                let is_joined = at.0 == name.0 || at.0.is_empty() || name.0.is_empty();
                is_foreign(other) && is_joined && !is_independent(other)
            });
            let expected = !is_foreign(index) && (is_independent(index) || !is_of_a_conflict);
            assert_eq!(created.contains(name), expected, "{name:?} of {bits:b}");
        }
    }
}
