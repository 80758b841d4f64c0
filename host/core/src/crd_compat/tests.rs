//! What only adds, and what does not.

use serde_json::json;

use super::*;

fn definition(spec: &Value) -> Value {
    json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"},
        "versions": [{"name": "v1", "served": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

#[test]
fn what_only_adds_breaks_nothing_and_going_back_does() {
    let old = json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "maximum": 5}, "color": {"type": "string", "enum": ["red"]}}});
    let new = json!({"type": "object", "required": ["size", "shape"], "properties": {
        "size": {"type": "integer", "maximum": 9, "description": "how big"},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "shape": {"type": "string", "default": "round"}}});
    let (old, new) = (definition(&old), definition(&new));
    assert_eq!(breaking(&old, &new), [""; 0]);
    assert_eq!(
        breaking(&new, &old),
        [
            ".spec.color no longer takes \"blue\"",
            ".spec.shape is gone",
            ".spec.size has a smaller maximum",
        ]
    );
}

#[test]
fn each_narrowing_is_told_with_its_place() {
    for (old, new, told) in [
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
        assert_eq!(breaking(&definition(&old), &definition(&new)), [told], "{old} {new}");
    }
    // The other way round most of it is an addition.
    assert_eq!(breaking(&definition(&json!({"pattern": "^a"})), &definition(&json!({}))), [""; 0]);
}

#[test]
fn versions_and_subresources_stay() {
    let before = definition(&json!({}));
    let mut after = before.clone();
    after["spec"]["versions"][0]["subresources"] = json!({});
    after["spec"]["versions"][0]["served"] = json!(false);
    assert_eq!(
        breaking(&before, &after),
        ["version v1 is no longer served", "version v1 loses its subresource status"]
    );
    after["spec"]["versions"][0]["name"] = json!("v2");
    assert_eq!(breaking(&before, &after), ["version v1 is gone"]);
    let mut other = before.clone();
    other["spec"]["scope"] = json!("Cluster");
    assert_eq!(breaking(&before, &other), [".spec.scope changes"]);
}

/// A spec that takes an object with a size and keeps what it does not know.
fn preserving() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"size": {"type": "integer"}}})
}

fn changes(old: &Value, new: &Value) -> Vec<String> {
    breaking(&definition(old), &definition(new))
}

#[test]
fn a_logical_keyword_that_comes_or_changes_is_incompatible_and_one_that_goes_is_not() {
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
fn a_member_that_comes_under_preserve_unknown_fields_must_take_anything() {
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
fn a_flag_that_came_does_not_go_again() {
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
fn a_type_that_comes_is_incompatible() {
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
fn additional_members_that_are_closed_or_typed_are_incompatible() {
    let map = |others: Value| json!({"type": "object", "additionalProperties": others});
    let text = json!({"type": "string"});
    assert_eq!(changes(&map(text.clone()), &map(json!(false))), [".spec{} is gone"]);
    assert_eq!(changes(&map(json!(true)), &map(text.clone())), [".spec{} has another type"]);
    assert_eq!(changes(&map(text.clone()), &map(json!(true))), [""; 0]);
    // A named member takes what any member took.
    let mut named = map(text);
    named["properties"] = json!({"size": {"type": "integer"}});
    let mut lost = named.clone();
    lost.as_object_mut().unwrap().remove("additionalProperties");
    assert_eq!(changes(&lost, &named), [""; 0]);
    assert_eq!(changes(&map(json!({"type": "string"})), &named), [".spec.size has another type"]);
}

#[test]
fn a_default_changes_nothing_that_is_there() {
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
    assert_eq!(changes(&ruled, &filled), [format!(".spec.a {}", schema::NEW_DEFAULT)]);
    let mut grown = ruled.clone();
    grown["properties"]["b"] = json!({"type": "string", "default": "x"});
    assert_eq!(changes(&ruled, &grown), [""; 0]);
}

#[test]
fn a_keyword_that_is_fixed_or_unknown_is_incompatible_when_it_changes() {
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
    // What says nothing is no difference.
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
fn the_name_of_an_object_takes_no_new_bound() {
    let mut new = definition(&json!({}));
    new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] =
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}});
    assert_eq!(breaking(&definition(&json!({})), &new), [".metadata.name has a smaller maxLength"]);
}

#[test]
fn a_new_rule_is_incompatible_at_any_depth() {
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

/// Two versions: v1 has a size and a color, v2 this spec; one of them is stored.
fn two(v2: &Value, stored: &str, served: &[&str]) -> Value {
    let version = |name: &str, spec: &Value| {
        json!({"name": name, "served": served.contains(&name), "storage": name == stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"},
        "versions": [version("v1", &size_and_color()), version("v2", v2)]}})
}

fn size_and_color() -> Value {
    json!({"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}})
}

#[test]
fn the_storage_version_moves_only_where_all_stored_fields_are() {
    let less = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    assert_eq!(
        breaking(&two(&less, "v1", &["v1", "v2"]), &two(&less, "v2", &["v1", "v2"])),
        ["version v2 would be stored and takes less than v1: .spec.color is gone"]
    );
    let all = size_and_color();
    let (before, after) = (two(&all, "v1", &["v1", "v2"]), two(&all, "v2", &["v1", "v2"]));
    assert_eq!(breaking(&before, &after), [""; 0]);
    // Objects of a version that was stored once may still be there.
    let mut before = two(&less, "v2", &["v1", "v2"]);
    before["status"] = json!({"storedVersions": ["v1", "v2"]});
    let mut after = two(&less, "v3", &["v1", "v2"]);
    let mut third = after["spec"]["versions"][1].clone();
    third["name"] = json!("v3");
    third["storage"] = json!(true);
    after["spec"]["versions"].as_array_mut().unwrap().push(third);
    assert_eq!(
        breaking(&before, &after),
        ["version v3 would be stored and takes less than v1: .spec.color is gone"]
    );
}

#[test]
fn a_version_that_is_newly_served_takes_what_is_stored() {
    let less = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    assert_eq!(
        breaking(&two(&less, "v1", &["v1"]), &two(&less, "v1", &["v1", "v2"])),
        ["version v2 would be served and takes less than v1: .spec.color is gone"]
    );
    let mut without = two(&less, "v1", &["v1"]);
    without["spec"]["versions"].as_array_mut().unwrap().pop();
    assert_eq!(breaking(&without, &two(&less, "v1", &["v1", "v2"])).len(), 1);
    assert_eq!(breaking(&without, &two(&size_and_color(), "v1", &["v1", "v2"])), [""; 0]);
    assert_eq!(breaking(&without, &two(&less, "v1", &["v1"])), [""; 0]);
}

#[test]
fn one_version_is_stored_and_each_is_there_once() {
    let all = size_and_color();
    let before = two(&all, "v1", &["v1", "v2"]);
    let mut both = before.clone();
    both["spec"]["versions"][1]["storage"] = json!(true);
    assert_eq!(breaking(&before, &both), ["not exactly one version is the storage version"]);
    let mut none = before.clone();
    none["spec"]["versions"][0]["storage"] = json!(false);
    assert_eq!(breaking(&before, &none), ["not exactly one version is the storage version"]);
    let mut twice = before.clone();
    twice["spec"]["versions"][1]["name"] = json!("v1");
    assert_eq!(breaking(&before, &twice), ["a version is there twice", "version v2 is gone"]);
}

#[test]
fn names_conversion_scale_and_selectable_fields_stay() {
    let mut before = definition(&json!({}));
    before["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"});
    before["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.a"}]);
    for (pointer, value, expected) in [
        ("/spec/names/listKind", json!("PodList"), ".spec.names.listKind changes"),
        ("/spec/names/singular", json!("pod"), ".spec.names.singular changes"),
        ("/spec/names/categories", json!(["all"]), ".spec.names.categories gets all"),
        ("/spec/conversion", json!({"strategy": "Webhook"}), ".spec.conversion changes"),
        ("/spec/preserveUnknownFields", json!(true), ".spec.preserveUnknownFields changes"),
        ("/spec/other", json!(1), ".spec.other changes"),
        ("/spec/versions/0/other", json!(1), "version v1 has another other"),
        (
            "/spec/versions/0/selectableFields",
            json!([]),
            "version v1 is no longer selected by .spec.a",
        ),
        (
            "/spec/versions/0/subresources/scale/specReplicasPath",
            json!(".spec.b"),
            "version v1 has another subresource scale",
        ),
    ] {
        let mut after = before.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        after.pointer_mut(parent).unwrap()[name] = value;
        assert_eq!(breaking(&before, &after), [expected], "{pointer}");
    }
    // What the API server fills in is no change, and neither is what people and printers read.
    let mut filled = before.clone();
    filled["spec"]["names"]["listKind"] = json!("KList");
    filled["spec"]["names"]["singular"] = json!("k");
    filled["spec"]["conversion"] = json!({"strategy": "None"});
    filled["spec"]["preserveUnknownFields"] = json!(false);
    filled["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "x"}]);
    filled["spec"]["versions"][0]["deprecated"] = json!(true);
    filled["spec"]["names"]["shortNames"] = json!(["kk"]);
    assert_eq!(breaking(&before, &filled), [""; 0]);
    assert_eq!(breaking(&filled, &before), [""; 0]);
}

#[test]
fn a_change_is_shown_by_its_place_and_documentation_is_none() {
    let old = definition(&json!({"type": "object", "description": "a"}));
    let new = definition(&json!({"type": "object", "description": "b",
        "properties": {"a": {"type": "string"}}}));
    assert_eq!(
        changed(&old, &new, 5),
        [".spec.versions[name=\"v1\"].schema.openAPIV3Schema.properties.spec.properties"]
    );
    assert_eq!(changed(&old, &old, 5), [""; 0]);
    // What the API server leaves out or fills in is no change either.
    let mut sent = old.clone();
    sent["spec"]["names"]["shortNames"] = json!([]);
    sent["spec"]["conversion"] = json!({"strategy": "None", "webhook": null});
    sent["spec"]["versions"][0]["deprecated"] = json!(false);
    sent["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "a", "priority": 0}]);
    let mut live = old.clone();
    live["spec"]["names"]["singular"] = json!("k");
    live["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "a"}]);
    assert_eq!(changed(&live, &sent, 5), [""; 0]);
    assert_eq!(breaking(&live, &sent), [""; 0]);
}

#[test]
fn a_schema_that_the_server_would_refuse_is_compared_without_harm() {
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

#[test]
fn the_changed_fields_of_long_lists_are_found_in_time() {
    let columns = |first: usize| -> Value {
        (first..first + 20_000).map(|index| json!({"name": index.to_string()})).collect()
    };
    let mut old = definition(&json!({}));
    old["spec"]["versions"][0]["additionalPrinterColumns"] = columns(0);
    let mut new = old.clone();
    new["spec"]["versions"][0]["additionalPrinterColumns"] = columns(1);
    assert_eq!(changed(&old, &new, 5), [".spec.versions[name=\"v1\"].additionalPrinterColumns"]);
}

mod stored_objects {
    use super::*;

    const STEPS: u64 = 10_000;

    fn check(spec: &Value, object: &Value) -> Result<(), Misfit> {
        let mut live = definition(&json!({"type": "object"}));
        live["spec"]["versions"][0]["storage"] = json!(true);
        let mut after = definition(spec);
        after["spec"]["versions"][0]["storage"] = json!(true);
        let objects = StoredObjects::new(&live, &after).unwrap();
        assert_eq!(objects.version(), "v1");
        let object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "labels": {"x": "y"}}, "spec": object});
        objects.check(&object, STEPS)
    }

    #[test]
    fn an_object_that_does_not_fit_is_reported_with_its_place() {
        let map = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        for (schema, value, expected) in [
            (json!({"type": "string"}), json!(1), ".spec.a is not of type string"),
            (json!({"type": "integer"}), json!(1.5), ".spec.a is not of type integer"),
            (json!({"type": "string"}), json!(null), ".spec.a is not of type string"),
            (
                json!({"type": "string", "maxLength": 1}),
                json!("ab"),
                ".spec.a is more than maxLength",
            ),
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
            (
                json!({"type": "array", "maxItems": 1}),
                json!([1, 2]),
                ".spec.a is more than maxItems",
            ),
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
            (
                json!({"type": "integer", "not": {"enum": [1]}}),
                json!(1),
                ".spec.a does not fit not",
            ),
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
    fn an_object_that_fits_is_taken() {
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
            // Neither asked nor guessed: patterns stay as they are.
            (json!({"type": "string", "pattern": "^b"}), json!("a")),
            (json!({"type": "string", "not": {"pattern": "^b"}}), json!("a")),
            (json!({"type": "number", "enum": [1.0, 2]}), json!(1)),
        ] {
            let spec = json!({"type": "object", "properties": {"a": schema}});
            assert_eq!(check(&spec, &json!({"a": value})), Ok(()), "{schema}");
        }
    }

    #[test]
    fn a_figure_of_a_scale_that_comes_must_be_one() {
        let live = two(&size_and_color(), "v1", &["v1"]);
        let mut after = live.clone();
        after["spec"]["versions"][0]["subresources"] = json!({"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}});
        let objects = StoredObjects::new(&live, &after).unwrap();
        assert_eq!(objects.check(&json!({"spec": {"size": 3}}), STEPS), Ok(()));
        assert_eq!(
            objects.check(&json!({"spec": {"size": -3}}), STEPS),
            Err(Misfit::At(".spec.size is not a replica count".into()))
        );
    }

    #[test]
    fn a_version_that_newly_takes_the_objects_is_asked_too() {
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
    fn a_check_ends_after_its_steps() {
        let item = json!({"anyOf": [{"anyOf": [{"minimum": 1}, {"minimum": 2}]}, {"minimum": 3}]});
        let spec = json!({"type": "object", "properties": {"a": {"type": "array", "items": item}}});
        let many: Vec<u32> = vec![5; 5_000];
        assert_eq!(check(&spec, &json!({"a": many})), Err(Misfit::TooManySteps));
    }
}
