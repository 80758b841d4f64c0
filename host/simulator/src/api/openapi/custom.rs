//! Schemas of custom kinds, from their definitions.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::api::openapi::format::Format;
use crate::apply::managed_object::ManagedObject;
use crate::state::cluster::Cluster;
use crate::types::crd::definition::OBJECT_META;
use crate::types::descriptions::texts;
use crate::types::object::meta;

/// The type of a list's `metadata`.
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// A type whose `apiVersion`, `kind` and `metadata` are described as everywhere.
const LIKE: &str = "io.k8s.api.core.v1.ConfigMap";
const LIST_LIKE: &str = "io.k8s.api.core.v1.PodList";
const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
const UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

/// The definitions of the kinds of a group that serve a version.
pub(crate) fn definitions(
    cluster: &Cluster,
    group: &str,
    version: &str,
) -> Vec<Arc<ManagedObject>> {
    let kind = ("apiextensions.k8s.io".to_owned(), "customresourcedefinitions".to_owned());
    let of_group = cluster
        .catalog
        .all()
        .filter(|one| one.custom.is_some() && one.group == group && one.version == version);
    let keys = of_group.map(|one| (String::new(), format!("{}.{}", one.plural, one.group)));
    keys.filter_map(|key| cluster.object(&kind, &key)).collect()
}

/// An identity that differs for each state of a definition.
pub(crate) fn identity(definition: &Value) -> String {
    format!("{}-{}", meta(definition, "uid"), meta(definition, "resourceVersion"))
}

/// Adds the types of a definition's kind in a version: its objects, and lists of them.
pub(crate) fn schemas(
    definition: &Value,
    version: &str,
    format: Format,
    schemas: &mut Map<String, Value>,
) {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let list_kind = match text(&spec["names"]["listKind"]) {
        name if name.is_empty() => format!("{kind}List"),
        name => name,
    };
    let mut versions = spec["versions"].as_array().into_iter().flatten();
    let Some(own) = versions.find(|one| one["name"] == version) else { return };
    let prefix = group.split('.').rev().collect::<Vec<_>>().join(".");
    let name = format!("{prefix}.{version}.{kind}");
    let identity = |kind: &str| json!([{"group": group, "kind": kind, "version": version}]);

    let mut schema = published(&own["schema"]["openAPIV3Schema"], format);
    schema["x-kubernetes-group-version-kind"] = identity(&kind);
    let plural = text(&spec["names"]["plural"]);
    let mut list = json!({
        "description": format!("{list_kind} is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": {"items": {
            "description": format!("List of {plural}. More info: {CONVENTIONS}"),
            "type": "array",
            "items": {"$ref": format.reference(&name)},
        }},
        "x-kubernetes-group-version-kind": identity(&list_kind),
    });
    head(&mut list, LIST_LIKE, LIST_META, format);
    let paths = own["selectableFields"].as_array().into_iter().flatten();
    let paths = paths.filter_map(|field| field["jsonPath"].as_str());
    let fields: Vec<Value> =
        paths.map(|path| json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)})).collect();
    if !fields.is_empty() {
        schema["x-kubernetes-selectable-fields"] = fields.clone().into();
        list["x-kubernetes-selectable-fields"] = fields.into();
    }
    schemas.insert(format!("{prefix}.{version}.{list_kind}"), list);
    schemas.insert(name, schema);
}

/// The schema of a kind's objects, as published.
fn published(own: &Value, format: Format) -> Value {
    // kubectl would refuse unknown fields next to any named one.
    if format == Format::V2 && own[UNKNOWN] == true {
        return json!({"type": "object"});
    }
    let mut schema = if own.is_object() { own.clone() } else { json!({}) };
    publish(&mut schema, format);
    schema["type"] = "object".into();
    head(&mut schema, LIKE, OBJECT_META, format);
    schema
}

/// The members that every object has.
fn head(schema: &mut Value, like: &str, metadata: &str, format: Format) {
    let description = |field: &str| texts().description(like, field).unwrap_or_default();
    for field in ["apiVersion", "kind"] {
        schema["properties"][field] = json!({"description": description(field), "type": "string"});
    }
    schema["properties"]["metadata"] = format.field(metadata, description("metadata"));
}

/// Rewrites a schema as it is published.
fn publish(schema: &mut Value, format: Format) {
    let Some(members) = schema.as_object_mut() else { return };
    members.remove("example");
    members.remove("externalDocs");
    match format {
        Format::V2 => reduce(members),
        Format::V3 => name_types(members),
    }
    for name in ["items", "additionalProperties"] {
        if let Some(inner) = members.get_mut(name) {
            publish(inner, format);
        }
    }
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(|one| publish(one, format));
    let is_free = format == Format::V2 && is_true(members, UNKNOWN);
    if is_true(members, "x-kubernetes-embedded-resource") && !is_free {
        embed(schema, format);
    }
}

fn is_true(members: &Map<String, Value>, name: &str) -> bool {
    members.get(name) == Some(&Value::Bool(true))
}

/// Describes an int-or-string value by the types that clients know.
fn name_types(members: &mut Map<String, Value>) {
    if is_true(members, "x-kubernetes-int-or-string") {
        members.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
}

/// Removes what OpenAPI v2 does not have, or what kubectl misunderstands in it.
fn reduce(members: &mut Map<String, Value>) {
    let drop = |members: &mut Map<String, Value>, names: &[&str]| {
        members.retain(|name, _| !names.contains(&name.as_str()));
    };
    drop(members, &["allOf", "anyOf", "default", "not", "oneOf"]);
    if is_true(members, "nullable") {
        drop(members, &["items", "nullable", "properties", "type"]);
    }
    let (free, kind) = (is_true(members, UNKNOWN), members.get("type").and_then(Value::as_str));
    let is_list = kind == Some("array");
    let is_object = kind == Some("object");
    if free {
        drop(members, &["items", "properties"]);
    }
    if (is_list && !members.contains_key("items")) || (is_object && free) {
        drop(members, &["type"]);
    }
    let is_nullable = |one: Option<&Value>| one.is_some_and(|one| one["nullable"] == true);
    if is_nullable(members.get("additionalProperties")) {
        drop(members, &["required"]);
    }
    let properties = members.get("properties").cloned().unwrap_or_default();
    if let Some(required) = members.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !is_nullable(properties.get(name.as_str().unwrap_or_default())));
        if required.is_empty() {
            drop(members, &["required"]);
        }
    }
}

/// Adds the members of an object in a field.
fn embed(schema: &mut Value, format: Format) {
    let described = |text: String| json!({"description": text, "type": "string"});
    let properties = &mut schema["properties"];
    properties["apiVersion"] = described(format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: {CONVENTIONS}#resources"
    ));
    properties["kind"] = described(format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: {CONVENTIONS}#types-kinds"
    ));
    let metadata = texts().description(LIKE, "metadata").unwrap_or_default();
    properties["metadata"] = format.field(OBJECT_META, metadata);
    let mut required = schema["required"].as_array().cloned().unwrap_or_default();
    for name in ["kind", "apiVersion"] {
        if !required.iter().any(|one| one == name) {
            required.push(name.into());
        }
    }
    schema["required"] = required.into();
}
