//! Patches of objects: what they name, and that they make the object that was asked for.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use fastrand::Rng;
use innkeeper_admission::patch::{PatchError, patch};
use serde_json::{Map, Value, json};

#[track_caller]
fn check(before: &Value, after: &Value, expected: &Value) {
    let made = patch(before, after).unwrap();
    assert_eq!(serde_json::from_str::<Value>(made.text()).unwrap(), *expected);
}

#[test]
fn equal_objects_have_an_empty_patch() {
    assert!(patch(&json!({"a": [1]}), &json!({"a": [1]})).unwrap().is_empty());
}

#[test]
fn member_that_differs_is_the_only_one_in_the_patch() {
    check(
        &json!({"metadata": {"labels": {"a": "1"}}, "spec": {"x": 1, "gone": {}}}),
        &json!({"metadata": {"labels": {"a": "1", "b/c~d": "2"}}, "spec": {"x": 2}}),
        &json!([
            {"op": "add", "path": "/metadata/labels/b~1c~0d", "value": "2"},
            {"op": "remove", "path": "/spec/gone"},
            {"op": "replace", "path": "/spec/x", "value": 2}
        ]),
    );
}

#[test]
fn container_that_is_added_in_front_is_one_add() {
    let containers = |names: &[&str]| -> Value {
        let one = |name: &&str| json!({"name": name, "image": format!("{name}:1")});
        json!({"spec": {"containers": names.iter().map(one).collect::<Vec<_>>()}})
    };
    check(
        &containers(&["app", "log"]),
        &containers(&["proxy", "app", "log"]),
        &json!([{"op": "add", "path": "/spec/containers/0",
            "value": {"name": "proxy", "image": "proxy:1"}}]),
    );
    check(
        &containers(&["app"]),
        &containers(&["app", "proxy"]),
        &json!([{"op": "add", "path": "/spec/containers/-",
            "value": {"name": "proxy", "image": "proxy:1"}}]),
    );
    check(
        &containers(&["a", "b", "c"]),
        &containers(&["a", "c"]),
        &json!([{"op": "remove", "path": "/spec/containers/1"}]),
    );
}

#[test]
fn item_with_a_key_is_changed_in_its_place() {
    check(
        &json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
        &json!({"env": [{"name": "B", "value": "3"}]}),
        &json!([
            {"op": "remove", "path": "/env/0"},
            {"op": "replace", "path": "/env/0/value", "value": "3"}
        ]),
    );
    // Two ports of one number differ by protocol.
    check(
        &json!({"ports": [{"containerPort": 53, "protocol": "TCP"},
            {"containerPort": 53, "protocol": "UDP"}]}),
        &json!({"ports": [{"containerPort": 53, "protocol": "UDP", "hostPort": 53}]}),
        &json!([
            {"op": "remove", "path": "/ports/0"},
            {"op": "add", "path": "/ports/0/hostPort", "value": 53}
        ]),
    );
}

#[test]
fn items_without_keys_are_equal_or_paired_by_position() {
    check(
        &json!({"args": ["a", "b", "c"]}),
        &json!({"args": ["x", "a", "b", "c"]}),
        &json!([{"op": "add", "path": "/args/0", "value": "x"}]),
    );
    check(
        &json!({"args": ["a", "b", "c"]}),
        &json!({"args": ["a", "x", "c"]}),
        &json!([{"op": "replace", "path": "/args/1", "value": "x"}]),
    );
}

#[test]
fn list_that_is_emptied_or_becomes_another_type_is_handled() {
    check(&json!({"l": [1]}), &json!({"l": []}), &json!([{"op": "remove", "path": "/l/0"}]));
    check(
        &json!({"l": [1]}),
        &json!({"l": {"0": 1}}),
        &json!([{"op": "replace", "path": "/l", "value": {"0": 1}}]),
    );
}

#[test]
fn patch_beyond_its_limits_is_an_error() {
    let many = |value: u32| -> Value {
        (0..1_001).map(|at| (at.to_string(), json!(value))).collect::<Map<_, _>>().into()
    };
    assert_eq!(patch(&many(0), &many(1)), Err(PatchError::TooManyOperations));
    let large = json!({"a": "x".repeat(300 << 10)});
    assert!(matches!(patch(&json!({}), &large), Err(PatchError::TooLarge(_))));
}

#[test]
fn long_lists_take_bounded_work() {
    let list = |from: u32| json!({"l": (from..from + 20_000).collect::<Vec<_>>()});
    // Nothing in common in one position: refused by count, not compared pair by pair.
    assert_eq!(patch(&list(0), &list(50_000)), Err(PatchError::TooManyOperations));
    assert_eq!(patch(&list(0), &list(0)).unwrap().operations().len(), 0);
}

#[test]
fn deep_objects_are_replaced_below_a_depth() {
    let deep = |end: u32| (0..100).fold(json!(end), |inner, _| json!({"a": inner}));
    let made = patch(&deep(1), &deep(2)).unwrap();
    assert_eq!(made.operations().len(), 1);
}

fn any(rng: &mut Rng, depth: u32) -> Value {
    let name = |rng: &mut Rng| ["name", "key", "a", "b/c", "d~e", "ip"][rng.usize(..6)].to_owned();
    match rng.u32(..if depth == 0 { 4 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2 => json!(rng.u32(..4)),
        3 => json!(["x", "y", "", "-"][rng.usize(..4)]),
        4 | 5 => (0..rng.usize(..5)).map(|_| any(rng, depth - 1)).collect(),
        _ => {
            let one = |_| (name(rng), any(rng, depth - 1));
            (0..4).map(one).collect::<Map<_, _>>().into()
        }
    }
}

/// Changes some of a value.
fn changed(rng: &mut Rng, value: &Value) -> Value {
    match value {
        _ if rng.u32(..6) == 0 => any(rng, 2),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| changed(rng, item)).collect();
            if rng.bool() {
                let at = rng.usize(..=items.len());
                items.insert(at, any(rng, 1));
            }
            if !items.is_empty() && rng.bool() {
                items.remove(rng.usize(..items.len()));
            }
            if rng.bool() {
                rng.shuffle(&mut items);
            }
            items.into()
        }
        Value::Object(members) => {
            let mut made = Map::new();
            for (name, value) in members {
                if rng.u32(..5) > 0 {
                    made.insert(name.clone(), changed(rng, value));
                }
            }
            made.into()
        }
        other => other.clone(),
    }
}

#[test]
fn patch_of_any_two_values_makes_the_second() {
    for seed in 0..20_000 {
        let mut rng = Rng::with_seed(seed);
        let before = any(&mut rng, 4);
        let after = if rng.bool() { changed(&mut rng, &before) } else { any(&mut rng, 4) };
        let made = patch(&before, &after);
        assert!(made.is_ok(), "seed {seed}: {made:?}\n{before}\n{after}");
        assert_eq!(made.unwrap().is_empty(), before == after, "seed {seed}");
    }
}
