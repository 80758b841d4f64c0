//! The paths of a group and version, with their operations.

use serde_json::{Map, Value, json};

use crate::api::openapi::schemas::REFERENCE;

/// A group in a version, with its schemas.
pub(crate) struct Served<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) schemas: &'a Map<String, Value>,
}

/// The operation of a method.
struct Operation {
    method: &'static str,
    action: &'static str,
    /// The verb as discovery has it.
    verb: &'static str,
    /// The parameters that a client may send.
    parameters: &'static [&'static str],
}

const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];

/// The operations of a collection.
const COLLECTION: [Operation; 3] = [
    Operation { method: "get", action: "list", verb: "list", parameters: LIST },
    Operation { method: "post", action: "post", verb: "create", parameters: WRITE },
    Operation {
        method: "delete",
        action: "deletecollection",
        verb: "deletecollection",
        parameters: &["dryRun", "fieldSelector", "labelSelector", "propagationPolicy"],
    },
];

/// The operations of one object, or of a subresource.
const ITEM: [Operation; 5] = [
    Operation { method: "get", action: "get", verb: "get", parameters: &[] },
    Operation { method: "post", action: "post", verb: "create", parameters: WRITE },
    Operation { method: "put", action: "put", verb: "update", parameters: WRITE },
    Operation {
        method: "patch",
        action: "patch",
        verb: "patch",
        parameters: &["dryRun", "fieldManager", "fieldValidation", "force"],
    },
    Operation {
        method: "delete",
        action: "delete",
        verb: "delete",
        parameters: &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
    },
];

impl Served<'_> {
    /// All paths.
    pub(crate) fn paths(&self, resources: &[Value]) -> Value {
        let root = match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        let mut paths = Map::new();
        for resource in resources {
            let name = resource["name"].as_str().unwrap_or_default();
            let namespaced = resource["namespaced"] == true;
            let place =
                if namespaced { format!("{root}/namespaces/{{namespace}}") } else { root.clone() };
            if let Some((plural, sub)) = name.split_once('/') {
                let path = format!("{place}/{plural}/{{name}}/{sub}");
                self.insert(&mut paths, path, resource, &ITEM);
                continue;
            }
            let is_item = |one: &Operation| one.verb != "create";
            let items: Vec<&Operation> = ITEM.iter().filter(|one| is_item(one)).collect();
            self.insert(&mut paths, format!("{place}/{name}"), resource, &COLLECTION);
            self.insert(&mut paths, format!("{place}/{name}/{{name}}"), resource, items);
            if namespaced {
                self.insert(&mut paths, format!("{root}/{name}"), resource, &COLLECTION[..1]);
            }
        }
        Value::Object(paths)
    }

    fn insert<'o>(
        &self,
        paths: &mut Map<String, Value>,
        path: String,
        resource: &Value,
        operations: impl IntoIterator<Item = &'o Operation>,
    ) {
        let mut item = Map::new();
        let verbs = resource["verbs"].as_array();
        let may = |verb: &str| verbs.is_some_and(|verbs| verbs.iter().any(|one| one == verb));
        for operation in operations {
            if may(operation.verb) {
                item.insert(operation.method.to_owned(), self.operation(operation, resource));
            }
        }
        if item.is_empty() {
            return;
        }
        let names = ["name", "namespace"].into_iter();
        let names: Vec<Value> = names
            .filter(|name| path.contains(&format!("{{{name}}}")))
            .map(|name| parameter(name, "path"))
            .collect();
        if !names.is_empty() {
            item.insert("parameters".to_owned(), names.into());
        }
        paths.insert(path, item.into());
    }

    fn operation(&self, operation: &Operation, resource: &Value) -> Value {
        let text = |name: &str, other: &str| match resource[name].as_str() {
            None | Some("") => other.to_owned(),
            Some(text) => text.to_owned(),
        };
        let (group, version) = (text("group", self.group), text("version", self.version));
        let kind = text("kind", "");
        let id = json!({"group": group, "kind": kind, "version": version});
        let schema = self.schemas.iter().find(|(_, schema)| {
            let ids = schema["x-kubernetes-group-version-kind"].as_array();
            ids.is_some_and(|ids| ids.contains(&id))
        });
        let mut response = json!({"description": "OK"});
        if let Some((name, _)) = schema {
            let schema = json!({"$ref": format!("{REFERENCE}{name}")});
            response["content"] = json!({"application/json": { "schema": schema }});
        }
        let parameters: Vec<Value> =
            operation.parameters.iter().map(|name| parameter(name, "query")).collect();
        let mut described = json!({
            "responses": {"200": response},
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": id,
        });
        // Go leaves out an empty list.
        if !parameters.is_empty() {
            described["parameters"] = parameters.into();
        }
        described
    }
}

fn parameter(name: &str, place: &str) -> Value {
    let kind = match name {
        "allowWatchBookmarks" | "force" | "sendInitialEvents" | "watch" => "boolean",
        "gracePeriodSeconds" | "limit" | "timeoutSeconds" => "integer",
        _ => "string",
    };
    let schema = json!({"type": kind, "uniqueItems": true});
    let mut parameter = json!({"name": name, "in": place, "schema": schema});
    if place == "path" {
        parameter["required"] = true.into();
    }
    parameter
}
