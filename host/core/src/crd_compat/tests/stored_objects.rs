//! Stored objects against the next definition.

use super::*;

const STEPS: u64 = 10_000;

/// A check against a definition with this schema of the spec.
fn stored(spec: &Value) -> StoredObjects {
    let mut live = definition(&json!({"type": "object"}));
    live["spec"]["versions"][0]["storage"] = json!(true);
    let mut after = definition(spec);
    after["spec"]["versions"][0]["storage"] = json!(true);
    let objects = StoredObjects::new(&live, &after).unwrap();
    assert_eq!(objects.version(), "v1");
    objects
}

fn check(spec: &Value, object: &Value) -> Result<(), Misfit> {
    let object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": object});
    stored(spec).check(&object, STEPS)
}

#[test]
fn object_that_does_not_fit_is_reported_with_its_place() {
    let map = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    for (schema, value, expected) in [
        (json!({"type": "string"}), json!(1), ".spec.a is not of type string"),
        (json!({"type": "integer"}), json!(1.5), ".spec.a is not of type integer"),
        (json!({"type": "string"}), json!(null), ".spec.a is not of type string"),
        (json!({"type": "string", "maxLength": 1}), json!("ab"), ".spec.a is more than maxLength"),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!(1),
            ".spec.a is minimum itself, which is excluded",
        ),
        (
            json!({"type": "integer", "multipleOf": 2}),
            json!(3),
            ".spec.a is no multiple of multipleOf",
        ),
        (
            json!({"type": "string", "enum": ["b"]}),
            json!("a"),
            ".spec.a is none of the values that are taken",
        ),
        (json!({"type": "object", "required": ["b"]}), json!({}), ".spec.a lacks b"),
        (
            json!({"type": "object"}),
            json!({"b": 1}),
            ".spec.a.b would be lost: the schema does not name it",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!(["a", 1]),
            ".spec.a[1] is not of type string",
        ),
        (json!({"type": "array", "maxItems": 1}), json!([1, 2]), ".spec.a is more than maxItems"),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"b": 1}),
            ".spec.a.b is not of type string",
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            ".spec.a is neither an integer nor a string",
        ),
        (json!({"type": "integer", "not": {"enum": [1]}}), json!(1), ".spec.a does not fit not"),
        (
            json!({"type": "integer", "oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            ".spec.a does not fit oneOf",
        ),
        (
            json!({"type": "integer", "anyOf": [{"minimum": 5}, {"minimum": 6}]}),
            json!(3),
            ".spec.a does not fit anyOf",
        ),
        (
            json!({"type": "integer", "allOf": [{"minimum": 5}]}),
            json!(3),
            ".spec.a does not fit allOf",
        ),
        (
            json!({"type": "object", "maxProperties": 1, "properties": {"b": {"type": "string"}, "c": {"type": "string", "default": "x"}}}),
            json!({"b": "y"}),
            ".spec.a is more than maxProperties",
        ),
    ] {
        assert_eq!(
            check(&map(schema.clone()), &json!({"a": value})),
            Err(Misfit::At(expected.to_owned())),
            "{schema}"
        );
    }
}

#[test]
fn object_that_fits_is_accepted() {
    for (schema, value) in [
        (json!({"type": "string", "nullable": true}), json!(null)),
        (json!({"type": "integer"}), json!(2.0)),
        (json!({"x-kubernetes-int-or-string": true}), json!("50%")),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"b": {"c": [1]}}),
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}),
        ),
        (
            json!({"type": "object", "required": ["b"], "properties": {"b": {"type": "string", "default": "x"}}}),
            json!({}),
        ),
        (json!({"type": "string", "default": "x"}), json!(null)),
        // Patterns are not checked: `incompatible_changes` lets none be added or changed.
        (json!({"type": "string", "pattern": "^b"}), json!("a")),
        (json!({"type": "string", "not": {"pattern": "^b"}}), json!("a")),
        (json!({"type": "number", "enum": [1.0, 2]}), json!(1)),
    ] {
        let spec = json!({"type": "object", "properties": {"a": schema}});
        assert_eq!(check(&spec, &json!({"a": value})), Ok(()), "{schema}");
    }
}

#[test]
fn added_scale_subresource_needs_replica_counts_in_stored_objects() {
    let live = two(&size_and_color(), "v1", &["v1"]);
    let mut after = live.clone();
    after["spec"]["versions"][0]["subresources"] =
        json!({"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}});
    let objects = StoredObjects::new(&live, &after).unwrap();
    assert_eq!(objects.check(&json!({"spec": {"size": 3}}), STEPS), Ok(()));
    assert_eq!(
        objects.check(&json!({"spec": {"size": -3}}), STEPS),
        Err(Misfit::At(".spec.size is not a replica count".into()))
    );
}

#[test]
fn new_storage_version_is_checked_too() {
    let less = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let (live, after) = (two(&less, "v1", &["v1", "v2"]), two(&less, "v2", &["v1", "v2"]));
    let objects = StoredObjects::new(&live, &after).unwrap();
    assert_eq!(objects.version(), "v1");
    assert_eq!(
        objects.check(&json!({"spec": {"color": "red"}}), STEPS),
        Err(Misfit::At(".spec.color would be lost: the schema does not name it".into()))
    );
}

#[test]
fn check_ends_when_its_steps_are_used() {
    let item = json!({"anyOf": [{"anyOf": [{"minimum": 1}, {"minimum": 2}]}, {"minimum": 3}]});
    let spec = json!({"type": "object", "properties": {"a": {"type": "array", "items": item}}});
    let many: Vec<u32> = vec![5; 5_000];
    assert_eq!(check(&spec, &json!({"a": many})), Err(Misfit::TooManySteps));
}

#[test]
fn lost_fields_are_named_once_for_all_items_of_a_list() {
    let spec = json!({"type": "object", "properties": {
        "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "any": {"type": "object", "additionalProperties": true},
    }});
    let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"},
        "spec": {"items": [{"a": "1", "b": 2}, {"b": 3}], "free": {"x": 1}, "map": {"k": {"z": 1}},
            "any": {"text": "x", "k": {"y": 1}, "texts": ["x"], "list": [{"v": 1}]}, "color": "red"}});
    let lost = stored(&spec).lost_fields(&object, 1_000).unwrap();
    assert_eq!(
        Vec::from_iter(lost),
        [".spec.any.k.y", ".spec.any.list[].v", ".spec.color", ".spec.items[].b", ".spec.map.k.z"]
    );
    assert_eq!(stored(&spec).lost_fields(&object, 3), Err(Misfit::TooManySteps));
}

#[test]
fn fields_are_lost_when_a_version_in_use_that_is_not_the_stored_one_keeps_less_than_before() {
    let less = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let object = json!({"spec": {"size": 1, "color": "red"}});
    let lost = |before: &Value, after: &Value| {
        let stored = StoredObjects::new(before, after).unwrap();
        Vec::from_iter(stored.lost_fields(&object, STEPS).unwrap())
    };
    let all = two(&size_and_color(), "v1", &["v1", "v2"]);
    assert_eq!(lost(&all, &two(&less, "v1", &["v1", "v2"])), [".spec.color"]);
    assert_eq!(lost(&all, &two(&less, "v1", &["v1"])), [""; 0], "nobody writes in v2");
    // An object that is still stored in v2 is pruned when it is read.
    let mut once = two(&size_and_color(), "v1", &["v1"]);
    once["status"] = json!({"storedVersions": ["v1", "v2"]});
    assert_eq!(lost(&once, &two(&less, "v1", &["v1"])), [".spec.color"]);
    let unchanged = two(&less, "v1", &["v1", "v2"]);
    assert_eq!(lost(&unchanged, &unchanged), [""; 0], "it lost the field before");
    // Without a change of its schema, a version prunes for the first time.
    let mut preserving = unchanged.clone();
    preserving["spec"]["preserveUnknownFields"] = true.into();
    assert_eq!(lost(&preserving, &unchanged), [".spec.color"]);
}
