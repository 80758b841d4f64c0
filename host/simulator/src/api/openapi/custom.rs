//! Schemas of custom kinds, from their definitions.

use serde_json::{Map, Value, json};

use crate::api::openapi::schemas::REFERENCE;
use crate::types::crd::definition::OBJECT_META;
use crate::types::descriptions::texts;
use crate::types::object::meta;

/// The type of a list's `metadata`.
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
/// A type whose `apiVersion`, `kind` and `metadata` are described as everywhere.
const LIKE: &str = "io.k8s.api.core.v1.ConfigMap";
const LIST_LIKE: &str = "io.k8s.api.core.v1.PodList";

/// An identity that differs for each state of a definition.
pub(crate) fn identity(definition: &Value) -> String {
    format!("{}-{}", meta(definition, "uid"), meta(definition, "resourceVersion"))
}

/// Adds the types of a definition's kind in a version: its objects, and lists of them.
pub(crate) fn schemas(definition: &Value, version: &str, schemas: &mut Map<String, Value>) {
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

    let mut schema = own["schema"]["openAPIV3Schema"].clone();
    publish(&mut schema);
    if !schema.is_object() {
        schema = json!({});
    }
    schema["type"] = "object".into();
    head(&mut schema, LIKE, OBJECT_META);
    schema["x-kubernetes-group-version-kind"] = identity(&kind);
    let mut list = json!({
        "description": format!("{list_kind} is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": {"items": {
            "description": format!("List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", text(&spec["names"]["plural"])),
            "type": "array",
            "items": {"$ref": format!("{REFERENCE}{name}")},
        }},
        "x-kubernetes-group-version-kind": identity(&list_kind),
    });
    head(&mut list, LIST_LIKE, LIST_META);
    schemas.insert(format!("{prefix}.{version}.{list_kind}"), list);
    schemas.insert(name, schema);
}

/// The members that every object has.
fn head(schema: &mut Value, like: &str, metadata: &str) {
    let description = |field: &str| texts().description(like, field).unwrap_or_default();
    for field in ["apiVersion", "kind"] {
        schema["properties"][field] = json!({"description": description(field), "type": "string"});
    }
    schema["properties"]["metadata"] = json!({"description": description("metadata"),
        "allOf": [{"$ref": format!("{REFERENCE}{metadata}")}]});
}

/// Describes an int-or-string value by the OpenAPI format that clients know.
fn publish(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
                map.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
            }
            map.values_mut().for_each(publish);
        }
        Value::Array(items) => items.iter_mut().for_each(publish),
        _ => {}
    }
}
