//! Which kinds of lists and maps a request touches, by what the real server publishes of its types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::case::Step;

/// Where documents refer to each other.
const SCHEMAS: &str = "#/components/schemas/";
/// What a schema declares of a list: by the patch's own words.
const DIRECTIVES: [&str; 2] = ["$setElementOrder/", "$deleteFromPrimitiveList/"];
/// What a request touches that touches none.
const NONE: &str = "none";

/// The published types of the kinds that requests are about.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// All schemas, by name.
    schemas: BTreeMap<String, Value>,
    /// The schema of a kind, by the path of its collection below the namespace: `/apis/apps/v1` and
    /// `deployments`.
    kinds: BTreeMap<(String, String), Value>,
}

impl Types {
    /// Takes what an OpenAPI document says.
    pub fn read(&mut self, document: &Value) {
        let schemas = document["components"]["schemas"].as_object();
        for (name, schema) in schemas.into_iter().flatten() {
            self.schemas.insert(name.clone(), schema.clone());
        }
    }

    /// Names the schema of a kind: that of a definition, or the published one.
    pub fn name(&mut self, api_version: &str, kind: &str, definition: Option<&Value>) {
        let key = (api_version.to_owned(), kind.to_owned());
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_it = |schema: &&Value| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| {
                kinds.iter().any(|one| {
                    one["group"] == group && one["version"] == version && one["kind"] == kind
                })
            })
        };
        let schema = definition
            .map(|one| &one["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
            .or_else(|| self.schemas.values().find(is_it));
        if let Some(mut schema) = schema.cloned() {
            let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
            schema["properties"]["metadata"] =
                serde_json::json!({"$ref": format!("{SCHEMAS}{metadata}")});
            self.kinds.insert(key, schema);
        }
    }

    /// Whether a kind is known.
    pub fn has(&self, api_version: &str, kind: &str) -> bool {
        self.kinds.contains_key(&(api_version.to_owned(), kind.to_owned()))
    }

    /// What the body of a request names: `set`, `map`, `atomic` of lists, `granular map`, `atomic
    /// map`, or `none`.
    pub fn touched(&self, step: &Step) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        let (api_version, kind) = &step.of;
        let schema = self.kinds.get(&(api_version.clone(), kind.clone()));
        match (schema, &step.body) {
            (Some(schema), Value::Array(operations)) => {
                for operation in operations {
                    for place in ["path", "from"] {
                        if let Some(path) = operation[place].as_str() {
                            self.follow(schema, path, &operation["value"], &mut found);
                        }
                    }
                }
            }
            (Some(schema), body) if step.method != "DELETE" => self.touch(schema, body, &mut found),
            _ => {}
        }
        if found.is_empty() {
            found.insert(NONE);
        }
        found
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        reference.and_then(|text| self.schemas.get(text.strip_prefix(SCHEMAS)?)).unwrap_or(schema)
    }

    /// What kind of list or map this is, if it is one, and whether its members are its own.
    fn kind(schema: &Value, outer: &Value) -> Option<(&'static str, bool)> {
        let declared = |name: &str| outer[name].as_str().or_else(|| schema[name].as_str());
        if schema["type"] == "array" {
            return Some(match declared("x-kubernetes-list-type") {
                Some("set") => ("set", true),
                Some("map") => ("map", true),
                _ => ("atomic", false),
            });
        }
        if declared("x-kubernetes-map-type") == Some("atomic") {
            return Some(("atomic map", false));
        }
        schema["additionalProperties"].is_object().then_some(("granular map", true))
    }

    fn touch(&self, outer: &Value, value: &Value, found: &mut BTreeSet<&'static str>) {
        let schema = self.resolved(outer);
        if let Some((kind, open)) = Self::kind(schema, outer) {
            found.insert(kind);
            if !open {
                return;
            }
        }
        match value {
            Value::Array(items) => {
                for item in items {
                    self.touch(&schema["items"], item, found);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    let of = DIRECTIVES.iter().find_map(|one| name.strip_prefix(one));
                    self.touch(member(schema, of.unwrap_or(name)), value, found);
                }
            }
            _ => {}
        }
    }

    /// Along a JSON pointer.
    fn follow(&self, outer: &Value, path: &str, value: &Value, found: &mut BTreeSet<&'static str>) {
        let Some(rest) = path.strip_prefix('/') else {
            return self.touch(outer, value, found);
        };
        let schema = self.resolved(outer);
        if let Some((kind, _)) = Self::kind(schema, outer) {
            found.insert(kind);
        }
        let (name, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let inner = if schema["type"] == "array" { &schema["items"] } else { member(schema, name) };
        self.follow(inner, rest, value, found);
    }
}

fn member<'a>(schema: &'a Value, name: &str) -> &'a Value {
    match &schema["properties"][name] {
        Value::Null => &schema["additionalProperties"],
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::custom::definition;

    fn touched(body: Value) -> Vec<&'static str> {
        let mut types = Types::default();
        let labels = json!({"type": "object", "additionalProperties": {"type": "string"}});
        types.read(&json!({"components": {"schemas": {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"properties": {"labels": labels}}}}}));
        types.name("test.innkeeper.dev/v1", "Gadget", Some(&definition()));
        let of = ("test.innkeeper.dev/v1".to_owned(), "Gadget".to_owned());
        types.touched(&Step { body, of, ..Step::default() }).into_iter().collect()
    }

    #[test]
    fn only_types_that_a_body_names_are_listed() {
        assert_eq!(touched(Value::Null), ["none"]);
        assert_eq!(touched(json!({"spec": {"size": 1}})), ["none"]);
        assert_eq!(touched(json!({"spec": {"tags": ["a"]}})), ["set"]);
        assert_eq!(touched(json!({"spec": {"tags": null}})), ["set"]);
        assert_eq!(touched(json!({"spec": {"parts": [{"x": 1}]}})), ["atomic"]);
        assert_eq!(touched(json!({"spec": {"items": [{"name": "a"}]}})), ["map"]);
        assert_eq!(
            touched(json!({"spec": {"items": [{"name": "a", "tags": []}]}})),
            ["map", "set"]
        );
        assert_eq!(touched(json!({"spec": {"pair": {"x": 1}}})), ["atomic map"]);
        assert_eq!(touched(json!({"metadata": {"labels": {"a": "b"}}})), ["granular map"]);
        assert_eq!(touched(json!({"spec": {"$setElementOrder/tags": ["a"]}})), ["set"]);
        assert_eq!(touched(json!([{"op": "remove", "path": "/spec/items/0/value"}])), ["map"]);
        assert_eq!(
            touched(json!([{"op": "add", "path": "/spec", "value": {"order": []}}])),
            ["atomic"]
        );
        assert_eq!(touched(json!([{"op": "remove", "path": "/spec/size"}])), ["none"]);
    }
}
