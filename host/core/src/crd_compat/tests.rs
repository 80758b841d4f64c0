mod schema;
mod stored_objects;
mod versions;

use serde_json::json;

use super::*;

fn definition(spec: &Value) -> Value {
    json!({"spec": {"group": "g", "scope": "Namespaced", "names": {"kind": "K", "plural": "ks"},
        "versions": [{"name": "v1", "served": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}})
}

fn changes(old: &Value, new: &Value) -> Vec<String> {
    incompatible_changes(&definition(old), &definition(new))
}

/// A definition with two versions: v1 has a size and a color, v2 has this spec.
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
fn change_of_names_conversion_scale_or_selectable_fields_is_incompatible() {
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
        assert_eq!(incompatible_changes(&before, &after), [expected], "{pointer}");
    }
    // Fields that the API server fills in are no change, and neither are those for people and
    // printers.
    let mut filled = before.clone();
    filled["spec"]["names"]["listKind"] = json!("KList");
    filled["spec"]["names"]["singular"] = json!("k");
    filled["spec"]["conversion"] = json!({"strategy": "None"});
    filled["spec"]["preserveUnknownFields"] = json!(false);
    filled["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "x"}]);
    filled["spec"]["versions"][0]["deprecated"] = json!(true);
    filled["spec"]["names"]["shortNames"] = json!(["kk"]);
    assert_eq!(incompatible_changes(&before, &filled), [""; 0]);
    assert_eq!(incompatible_changes(&filled, &before), [""; 0]);
}

#[test]
fn changed_fields_are_listed_without_documentation() {
    let old = definition(&json!({"type": "object", "description": "a"}));
    let new = definition(&json!({"type": "object", "description": "b",
        "properties": {"a": {"type": "string"}}}));
    assert_eq!(
        changed_fields(&old, &new, 5),
        [".spec.versions[name=\"v1\"].schema.openAPIV3Schema.properties.spec.properties"]
    );
    assert_eq!(changed_fields(&old, &old, 5), [""; 0]);
    // Fields that the API server leaves out or fills in are no change either.
    let mut sent = old.clone();
    sent["spec"]["names"]["shortNames"] = json!([]);
    sent["spec"]["conversion"] = json!({"strategy": "None", "webhook": null});
    sent["spec"]["versions"][0]["deprecated"] = json!(false);
    sent["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "a", "priority": 0}]);
    let mut live = old.clone();
    live["spec"]["names"]["singular"] = json!("k");
    live["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "a"}]);
    assert_eq!(changed_fields(&live, &sent, 5), [""; 0]);
    assert_eq!(incompatible_changes(&live, &sent), [""; 0]);
}

#[test]
fn changed_fields_of_long_lists_are_found_in_linear_time() {
    let columns = |first: usize| -> Value {
        (first..first + 20_000).map(|index| json!({"name": index.to_string()})).collect()
    };
    let mut old = definition(&json!({}));
    old["spec"]["versions"][0]["additionalPrinterColumns"] = columns(0);
    let mut new = old.clone();
    new["spec"]["versions"][0]["additionalPrinterColumns"] = columns(1);
    assert_eq!(
        changed_fields(&old, &new, 5),
        [".spec.versions[name=\"v1\"].additionalPrinterColumns"]
    );
}

#[test]
fn new_patterns_formats_and_rules_are_named_at_any_depth_and_once() {
    let before = definition(&json!({"properties": {
        "same": {"type": "string", "pattern": "^a"},
        "free": {"x-kubernetes-preserve-unknown-fields": true}}}));
    let after = definition(&json!({
        "x-kubernetes-validations": [{"rule": "true"}],
        "properties": {
            "same": {"type": "string", "pattern": "^a"},
            "free": {"type": "object", "properties": {"size": {"type": "string", "pattern": "b"}}},
            "list": {"items": {"type": "string", "format": "date"}},
            "map": {"additionalProperties": {"type": "string", "pattern": "c"}},
            "either": {"anyOf": [{"pattern": "d"}, {"required": ["x"]}]},
            "needs": {"anyOf": [{"required": ["x"]}]}}}));
    assert_eq!(
        unchecked_changes(&before, &after),
        [
            ".spec (rules)",
            ".spec.either (anyOf)",
            ".spec.free.size (pattern)",
            ".spec.list[] (format)",
            ".spec.map{} (pattern)"
        ]
    );
    assert_eq!(unchecked_changes(&after, &after), [""; 0]);
    let mut two = after.clone();
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    two["spec"]["versions"].as_array_mut().unwrap().push(second);
    assert_eq!(unchecked_changes(&before, &two).len(), 6, ".spec.same of v2 is new");
}

#[test]
fn short_names_categories_and_columns_that_the_new_definition_lacks_are_named() {
    let mut before = definition(&json!({}));
    before["spec"]["names"]["shortNames"] = json!(["k", "kk"]);
    before["spec"]["names"]["categories"] = json!(["team"]);
    before["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Size"}, {"name": "Age"}]);
    let mut after = definition(&json!({}));
    after["spec"]["names"]["shortNames"] = json!(["kk", "x"]);
    after["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "Age"}]);
    assert_eq!(
        display_losses(&before, &after),
        ["the short name k", "the column Size of version v1"]
    );
    assert_eq!(display_losses(&before, &before), [""; 0]);
}
