//! Update groups of the method `Recreate`: an object that has a change is the proof for the others.

use expect_test::expect;
use serde_json::{Value, json};

use crate::case::{Case, NOW, case, desired_object};
use crate::updates::{APPLIED, put, ready, rolling};

/// The desired Pods of these names and specs.
fn desired(pods: &[(&str, Value)]) -> Value {
    pods.iter().map(|(name, spec)| desired_object("Pod", name, spec)).collect()
}

/// Recreated Pods of these names and specs; none exists.
fn group_of(pods: &[(&str, Value)]) -> Case {
    case(&desired(pods)).group(&rolling("Recreate"))
}

/// Adds live Pods that the host applied at a time.
fn put_all(case: &mut Case, pods: &[(&str, Value)], applied: i64) {
    let time = jiff::Timestamp::from_second(applied).unwrap().to_string();
    case.applied(&desired(pods), |live| {
        live["status"] = ready();
        live["metadata"]["managedFields"][0]["time"] = time.as_str().into();
    });
}

fn image(image: &str) -> Value {
    json!({ "image": image })
}

/// Pods of which a change affects all but `a`.
fn partly_affected() -> Case {
    let mut case = group_of(&[
        ("a", image("old")),
        ("b", image("new")),
        ("c", image("new")),
        ("d", image("new")),
    ]);
    put(&mut case, "a", "old", &ready(), APPLIED);
    case
}

#[test]
fn recreate_begins_with_one_object_although_another_is_not_affected_by_the_change() {
    let mut case = partly_affected();
    for name in ["b", "c", "d"] {
        put(&mut case, name, "old", &ready(), APPLIED);
    }
    case.check(&expect![[r"
        skip Pod web/a: in sync
        recreate Pod web/b
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
}

#[test]
fn recreate_waits_for_the_create_of_its_first_object() {
    let mut case = partly_affected();
    for name in ["c", "d"] {
        put(&mut case, name, "old", &ready(), APPLIED);
    }
    case.check(&expect![[r"
        skip Pod web/a: in sync
        create Pod web/b
        skip Pod web/c: outdated, updated in its turn
        skip Pod web/d: outdated, updated in its turn"]]);
}

#[test]
fn recreate_updates_all_after_an_object_with_the_same_change_exists() {
    let mut case = partly_affected();
    put(&mut case, "b", "new", &json!({"phase": "Pending"}), NOW);
    for name in ["c", "d"] {
        put(&mut case, name, "old", &ready(), APPLIED);
    }
    case.check(&expect![[r"
        skip Pod web/a: in sync
        skip Pod web/b: in sync
        recreate Pod web/c
        recreate Pod web/d"]]);
}

#[test]
fn recreate_goes_one_by_one_when_each_object_has_its_own_value() {
    let own = |name: &str, image: &str| json!({"image": image, "hash": format!("{name}-{image}")});
    let pods = ["a", "b", "c"].map(|name| (name, own(name, "new")));
    let mut case = group_of(&pods);
    put_all(&mut case, &pods[..1], NOW);
    put_all(&mut case, &["b", "c"].map(|name| (name, own(name, "old"))), APPLIED);
    case.check(&expect![[r"
        skip Pod web/a: in sync
        recreate Pod web/b
        skip Pod web/c: outdated, updated in its turn"]]);
}

#[test]
fn recreate_takes_no_proof_from_an_object_that_keeps_a_removed_field() {
    let with_field = json!({"image": "x", "debug": true});
    let mut case = group_of(&[("a", with_field.clone()), ("b", image("x")), ("c", image("x"))]);
    let live = ["a", "b", "c"].map(|name| (name, with_field.clone()));
    put_all(&mut case, &live, APPLIED);
    case.check(&expect![[r"
        skip Pod web/a: in sync
        recreate Pod web/b
        skip Pod web/c: outdated, updated in its turn"]]);
}

#[test]
fn recreate_takes_the_proof_of_each_kind_from_that_kind() {
    let objects = |value: &str| {
        json!([
            desired_object("Pod", "a", &image(value)),
            desired_object("Pod", "b", &image(value)),
            desired_object("ConfigMap", "c", &image(value)),
            desired_object("ConfigMap", "d", &image(value)),
        ])
    };
    let mut case = case(&objects("new")).group(&rolling("Recreate"));
    put(&mut case, "a", "new", &ready(), NOW);
    for object in &objects("old").as_array().unwrap()[1..] {
        case.applied(&json!([object]), |_| {});
    }
    case.check(&expect![[r"
        recreate ConfigMap web/c
        skip ConfigMap web/d: outdated, updated in its turn
        skip Pod web/a: in sync
        recreate Pod web/b"]]);
}
