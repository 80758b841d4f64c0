//! Compatible and incompatible changes of a schema.

use super::*;
use crate::crd_compat::findings::{FINDING_BYTES_MAX, FINDINGS_MAX};

/// A spec that accepts an object with a size and keeps unknown fields.
fn preserving() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"size": {"type": "integer"}}})
}

#[test]
fn additions_are_compatible_and_their_removal_is_not() {
    let old = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "maximum": 5}, "color": {"type": "string", "enum": ["red"]}}});
    let new = json!({"type": "object", "required": ["size", "shape"], "properties": {
        "size": {"type": "integer", "maximum": 9, "description": "how big"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "shape": {"type": "string", "default": "round"}}});
    let (old, new) = (definition(&old), definition(&new));
    assert_eq!(incompatible_changes(&old, &new), [""; 0]);
    assert_eq!(
        incompatible_changes(&new, &old),
        [
            ".spec.color no longer takes \"blue\"",
            ".spec.shape is gone",
            ".spec.size has a smaller maximum",
        ]
    );
}

#[test]
fn narrower_schema_is_incompatible_and_reported_with_its_place() {
    for (old, new, expected) in [
        (json!({"type": "string"}), json!({"type": "integer"}), ".spec has another type"),
        (json!({}), json!({"minLength": 1}), ".spec has a greater minLength"),
        (json!({}), json!({"pattern": "^a"}), ".spec has another pattern"),
        (json!({}), json!({"enum": ["a"]}), ".spec takes certain values only"),
        (json!({}), json!({"required": ["a"]}), ".spec needs a"),
        (
            json!({}),
            json!({"x-kubernetes-validations": [{"rule": "self.a > 1"}]}),
            ".spec has a new rule: self.a > 1",
        ),
        (
            json!({"items": {"properties": {"a": {}}}}),
            json!({"items": {"properties": {}}}),
            ".spec[].a is gone",
        ),
        (json!({"additionalProperties": {"type": "string"}}), json!({}), ".spec{} is gone"),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({}),
            ".spec loses x-kubernetes-preserve-unknown-fields",
        ),
        (
            json!({"x-kubernetes-list-type": "set"}),
            json!({"x-kubernetes-list-type": "atomic"}),
            ".spec has another x-kubernetes-list-type",
        ),
    ] {
        assert_eq!(
            incompatible_changes(&definition(&old), &definition(&new)),
            [expected],
            "{old} {new}"
        );
    }
    // The other way round most of it is an addition.
    assert_eq!(
        incompatible_changes(&definition(&json!({"pattern": "^a"})), &definition(&json!({}))),
        [""; 0]
    );
}

#[test]
fn logical_keyword_is_incompatible_when_added_or_changed_and_compatible_when_removed() {
    let plain = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let mut with = plain.clone();
        with[keyword] = json!([{"required": ["a"]}]);
        let mut other = plain.clone();
        other[keyword] = json!([{"required": ["b"]}]);
        let expected = [format!(".spec has another {keyword}")];
        assert_eq!(changes(&plain, &with), expected);
        assert_eq!(changes(&with, &other), expected);
        assert_eq!(changes(&with, &plain), [""; 0]);
    }
    let mut not = plain.clone();
    not["not"] = json!({});
    assert_eq!(changes(&plain, &not), [".spec has another not"]);
    assert_eq!(changes(&not, &plain), [""; 0]);
}

#[test]
fn property_added_under_preserve_unknown_fields_must_accept_any_value() {
    let mut typed = preserving();
    typed["properties"]["color"] = json!({"type": "string"});
    assert_eq!(changes(&preserving(), &typed), [".spec.color has another type"]);
    let mut free = preserving();
    free["properties"]["color"] =
        json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true});
    assert_eq!(changes(&preserving(), &free), [""; 0]);
    let mut bounded = free.clone();
    bounded["properties"]["color"]["maxLength"] = json!(3);
    assert_eq!(changes(&preserving(), &bounded), [".spec.color has a smaller maxLength"]);
}

#[test]
fn flag_is_compatible_when_added_and_incompatible_when_removed() {
    let closed = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    assert_eq!(changes(&closed, &preserving()), [""; 0]);
    assert_eq!(
        changes(&preserving(), &closed),
        [".spec loses x-kubernetes-preserve-unknown-fields"]
    );
    let nullable = json!({"type": "string", "nullable": true});
    assert_eq!(changes(&nullable, &json!({"type": "string"})), [".spec loses nullable"]);
    assert_eq!(changes(&json!({"type": "string"}), &nullable), [""; 0]);
}

#[test]
fn type_is_incompatible_when_added() {
    assert_eq!(changes(&json!({}), &json!({"type": "object"})), [".spec has another type"]);
    let either = json!({"x-kubernetes-int-or-string": true});
    assert_eq!(changes(&json!({"type": "integer"}), &either), [""; 0]);
    assert_eq!(changes(&json!({"type": "object"}), &either), [".spec has another type"]);
    // The API server writes this out.
    let written = json!({"x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}]});
    assert_eq!(changes(&either, &written), [""; 0]);
    assert_eq!(changes(&written, &either), [""; 0]);
}

#[test]
fn additional_properties_are_incompatible_when_closed_or_typed() {
    let map = |others: Value| json!({"type": "object", "additionalProperties": others});
    let text = json!({"type": "string"});
    assert_eq!(changes(&map(text.clone()), &map(json!(false))), [".spec{} is gone"]);
    assert_eq!(changes(&map(json!(true)), &map(text.clone())), [".spec{} has another type"]);
    assert_eq!(changes(&map(text.clone()), &map(json!(true))), [""; 0]);
    // Members of any type stay, and the API server prunes what is in them.
    let objects = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert_eq!(changes(&map(objects), &map(json!(true))), [".spec{}.a is gone"]);
    // A named member takes what any member took.
    let mut named = map(text);
    named["properties"] = json!({"size": {"type": "integer"}});
    let mut lost = named.clone();
    lost.as_object_mut().unwrap().remove("additionalProperties");
    assert_eq!(changes(&lost, &named), [""; 0]);
    assert_eq!(changes(&map(json!({"type": "string"})), &named), [".spec.size has another type"]);
}

#[test]
fn default_is_compatible_only_when_added_where_it_invalidates_no_object() {
    let with = |default: Value| {
        let mut spec = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        if !default.is_null() {
            spec["properties"]["a"]["default"] = default;
        }
        spec
    };
    assert_eq!(changes(&with(Value::Null), &with(json!("x"))), [""; 0]);
    assert_eq!(changes(&with(json!("x")), &with(json!("y"))), [".spec.a has another default"]);
    assert_eq!(changes(&with(json!("x")), &with(Value::Null)), [".spec.a loses its default"]);
    // Where members are counted, one that is filled in may be one too many.
    for (keyword, value) in [("maxProperties", json!(1)), ("not", json!({"required": ["b"]}))] {
        let mut old =
            json!({"type": "object", "properties": {"in": {"type": "object", "properties": {}}}});
        old["properties"]["in"][keyword] = value;
        let mut new = old.clone();
        new["properties"]["in"]["properties"]["b"] = json!({"type": "string", "default": "x"});
        let found = changes(&old, &new);
        assert!(
            found.len() == 1 && found[0].starts_with(".spec.in.b has a new default"),
            "{found:?}"
        );
    }
    // A rule may say that a field is not there, but not of one that is new.
    let mut ruled = with(Value::Null);
    ruled["x-kubernetes-validations"] = json!([{"rule": "!has(self.a)"}]);
    let mut filled = ruled.clone();
    filled["properties"]["a"]["default"] = json!("x");
    assert_eq!(
        changes(&ruled, &filled),
        [format!(".spec.a {}", crate::crd_compat::schema::NEW_DEFAULT)]
    );
    let mut grown = ruled.clone();
    grown["properties"]["b"] = json!({"type": "string", "default": "x"});
    assert_eq!(changes(&ruled, &grown), [""; 0]);
}

#[test]
fn fixed_or_unknown_keyword_is_incompatible_when_it_changes() {
    for (old, new, expected) in [
        (
            json!({}),
            json!({"x-kubernetes-embedded-resource": true}),
            ".spec has another x-kubernetes-embedded-resource",
        ),
        (
            json!({}),
            json!({"x-kubernetes-new-thing": 1}),
            ".spec has another x-kubernetes-new-thing",
        ),
        (
            json!({"x-kubernetes-new-thing": 1}),
            json!({}),
            ".spec has another x-kubernetes-new-thing",
        ),
        (json!({}), json!({"patternProperties": {"a": {}}}), ".spec has another patternProperties"),
        (json!({}), json!({"format": "int32"}), ".spec has another format"),
        (json!({}), json!({"uniqueItems": true}), ".spec has another uniqueItems"),
        (json!({}), json!({"maxProperties": 1}), ".spec has a smaller maxProperties"),
        (
            json!({"maximum": 9_007_199_254_740_993_u64}),
            json!({"maximum": 9_007_199_254_740_992_u64}),
            ".spec has a smaller maximum",
        ),
        (json!({}), json!({"maxLength": "5"}), ".spec has a smaller maxLength"),
        (
            json!({"x-kubernetes-validations": [{"rule": "r", "optionalOldSelf": false}]}),
            json!({"x-kubernetes-validations": [{"rule": "r", "optionalOldSelf": true}]}),
            ".spec has a new rule: r",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "array", "items": [{"type": "string"}]}),
            ".spec[] has another schema",
        ),
    ] {
        assert_eq!(changes(&old, &new), [expected], "{old} {new}");
    }
    // A keyword with its default value is no difference.
    for (old, new) in [
        (json!({}), json!({"x-kubernetes-list-type": "atomic"})),
        (json!({"x-kubernetes-map-type": "granular"}), json!({})),
        (
            json!({"not": {"required": ["a"], "nullable": false}}),
            json!({"not": {"required": ["a"]}}),
        ),
        (json!({"maximum": 5.0}), json!({"maximum": 5})),
        (
            json!({"x-kubernetes-validations": [{"rule": "r", "message": "a"}]}),
            json!({"x-kubernetes-validations": [{"rule": "r", "message": "b"}]}),
        ),
    ] {
        assert_eq!(changes(&old, &new), [""; 0], "{old} {new}");
    }
}

#[test]
fn name_of_an_object_gets_no_new_bound() {
    let mut new = definition(&json!({}));
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] =
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}});
    assert_eq!(
        incompatible_changes(&definition(&json!({})), &new),
        [".metadata.name has a smaller maxLength"]
    );
}

#[test]
fn rule_is_incompatible_when_added_at_any_depth() {
    let deep = |rules: Value| {
        json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
            "properties": {"b": {"type": "string", "x-kubernetes-validations": rules}}}}}})
    };
    assert_eq!(
        changes(&deep(json!([])), &deep(json!([{"rule": "self != 'x'"}]))),
        [".spec.a[].b has a new rule: self != 'x'"]
    );
}

#[test]
fn findings_are_bounded() {
    let properties: Map<String, Value> =
        (0..500).map(|index| (format!("{index}-{}", "x".repeat(2_000)), json!({}))).collect();
    let found = changes(&json!({"properties": properties}), &json!({}));
    assert_eq!(found.len(), FINDINGS_MAX);
    assert!(found.iter().all(|one| one.len() <= FINDING_BYTES_MAX + 3));
}

#[test]
fn comparison_survives_schemas_that_the_server_would_refuse() {
    let embedded = |properties: Value| json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": properties});
    let sound = embedded(json!({"spec": {"type": "object"}}));
    for properties in [json!("x"), json!({"metadata": 1}), json!({"metadata": {"properties": [1]}})]
    {
        let odd = embedded(properties);
        assert_ne!(changes(&odd, &sound), [""; 0]);
        assert_ne!(changes(&sound, &odd), [""; 0]);
    }
    for odd in [json!(1), json!([]), json!({"properties": {"a": 1}}), json!({"items": [1]})] {
        assert_ne!(changes(&sound, &odd), [""; 0], "{odd}");
        assert_ne!(changes(&odd, &sound), [""; 0], "{odd}");
    }
}
