//! Tests of the comparison of types with a definition.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::*;
use crate::{Describe, Resource};

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Web {
    metadata: crate::Metadata,
    spec: WebSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the types count")]
struct WebSpec {
    text: String,
    replicas: Option<i32>,
    #[serde(default)]
    pages: Vec<Page>,
    #[serde(default)]
    by_name: BTreeMap<String, Page>,
    mode: Option<Mode>,
    #[serde(default)]
    free: Value,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Page {
    title: String,
    width: Option<f64>,
    children: Option<Vec<Page>>,
}

#[derive(Deserialize)]
enum Mode {
    Fast,
    Slow,
}

impl Resource for Web {
    const API_VERSION: &'static str = "example.com/v1";
    const KIND: &'static str = "Web";
    const PLURAL: &'static str = "webs";
}

fn page() -> Value {
    json!({"type": "object", "properties": {
        "title": {"type": "string"}, "width": {"type": "number"},
        "children": {"type": "array", "items": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"title": {"type": "string"}},
        }},
    }})
}

fn properties() -> Value {
    json!({
        "text": {"type": "string"}, "replicas": {"type": "integer"},
        "pages": {"type": "array", "items": page()},
        "byName": {"type": "object", "additionalProperties": page()},
        "mode": {"type": "string", "enum": ["Fast", "Slow"]},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
    })
}

fn manifest(properties: &Value) -> Manifest {
    let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Web"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": properties}}}}}]}});
    Describe::reconciler_of::<Web>("web", "").installs(&definition.to_string()).manifest()
}

fn found(properties: &Value) -> Vec<String> {
    differences::<Web>(&manifest(properties))
}

#[test]
fn definition_that_has_all_fields_of_the_type_does_not_differ() {
    assert_eq!(found(&properties()), Vec::<String>::new());
    let manifest = Describe::reconciler_of::<Web>("web", "").manifest();
    assert_eq!(differences::<Web>(&manifest), Vec::<String>::new());
}

/// A value that a user may get wrong: it is then missing.
#[derive(Debug)]
struct Lenient<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(T::deserialize(deserializer).ok()))
    }
}

/// Types whose fields and values have several names, or none that is known.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the types count")]
struct Shop {
    #[serde(alias = "amount", alias = "count")]
    replicas: i32,
    tier: Tier,
    template: Template,
    lenient: Lenient<Vec<Lenient<Page>>>,
    by_name: Lenient<BTreeMap<String, Lenient<Page>>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only the types count")]
struct Template {
    metadata: crate::Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tier {
    #[serde(alias = "front")]
    Web,
    Back,
    #[serde(other)]
    Unknown,
}

fn shop(properties: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let schema = json!({"type": "object", "properties": properties});
    compare(&probe::probe::<Shop>, &mut Vec::new(), &schema, "", &mut found);
    found
}

fn shop_properties() -> Value {
    json!({
        "replicas": {"type": "integer"},
        "tier": {"type": "string", "enum": ["web", "back"]},
        "template": {"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}},
        "lenient": {"type": "array", "items": page()},
        "byName": {"type": "object", "additionalProperties": page()},
    })
}

#[test]
fn alias_other_variant_and_metadata_are_no_differences() {
    assert_eq!(shop(&shop_properties()), Vec::<String>::new());
}

#[test]
fn field_with_aliases_is_named_once_when_the_definition_has_none_of_its_names() {
    let mut stale = shop_properties();
    stale.as_object_mut().unwrap().remove("replicas");
    stale["tier"]["enum"] = json!(["back"]);
    assert_eq!(
        shop(&stale),
        ["amount or count or replicas is missing", "tier lacks the value \"front\" or \"web\""]
    );
}

#[test]
fn type_that_swallows_errors_is_compared_to_its_end() {
    let mut stale = shop_properties();
    stale["lenient"]["items"]["properties"]["title"]["type"] = "integer".into();
    stale["byName"]["additionalProperties"]["properties"]["title"]["type"] = "integer".into();
    let wrong = "title is of type integer instead of string";
    assert_eq!(shop(&stale), [format!("lenient[].{wrong}"), format!("byName.*.{wrong}")]);
}

#[test]
fn field_is_named_when_the_definition_lacks_it_or_has_another_type() {
    let mut stale = properties();
    stale.as_object_mut().unwrap().remove("text");
    stale["replicas"]["type"] = "string".into();
    stale["mode"]["enum"] = json!(["Fast"]);
    stale["pages"]["items"]["properties"].as_object_mut().unwrap().remove("title");
    stale["byName"]["additionalProperties"]["properties"]["width"]["type"] = "boolean".into();
    assert_eq!(
        found(&stale),
        [
            "spec.text is missing",
            "spec.replicas is of type string instead of integer",
            "spec.pages[].title is missing",
            "spec.byName.*.width is of type boolean instead of number",
            "spec.mode lacks the value \"Slow\"",
        ]
    );
    // No field is compared below one that is missing.
    assert_eq!(found(&json!({})).len(), 6);
    let message = warning::<Web>(&manifest(&stale)).unwrap();
    assert!(message.contains("types: spec.text is missing, spec.replicas is of"), "{message}");
    assert!(message.contains("write crd.json again from the types"), "{message}");
    assert_eq!(warning::<Web>(&manifest(&properties())), None);
}
