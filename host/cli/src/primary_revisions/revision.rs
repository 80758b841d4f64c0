//! One stored revision, and the change that returns a primary to it.

use innkeeper_core::field_path::{field, remove, separated, set};
use innkeeper_core::names;
use innkeeper_core::primary_revision::{
    REVISION_API_VERSION_ANNOTATION, REVISION_FIELD_PATHS_ANNOTATION,
};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The field of a primary that has all stored fields.
const SPEC: &str = "spec";

/// A stored state of fields of a primary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredRevision {
    /// The name of its ControllerRevision.
    pub(crate) name: String,
    /// Its number: newer revisions have higher ones.
    pub(crate) number: i64,
    /// When the host stored it first.
    pub(crate) created: Option<Timestamp>,
    /// The primary.
    pub(super) controller: Controller,
    /// The API version in which the fields are; `None` if the host recorded none.
    api_version: Option<String>,
    /// The paths of the stored fields: `spec`, or below it.
    field_paths: Vec<String>,
    /// The stored fields, at their places in the primary.
    data: Value,
}

/// The owner reference of a controller.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Controller {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
}

/// What returns a primary to a revision.
#[derive(Debug, PartialEq)]
pub(crate) struct Change {
    /// The operations of a JSON patch; none if the primary is as in the revision.
    pub(crate) operations: Vec<Value>,
    /// The primary after them.
    pub(crate) after: Value,
}

impl StoredRevision {
    /// Reads a ControllerRevision; `None` for one that the host does not write.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let annotations = &value["metadata"]["annotations"];
        let field_paths = separated(annotations[REVISION_FIELD_PATHS_ANNOTATION].as_str()?);
        let api_version = annotations[REVISION_API_VERSION_ANNOTATION].as_str();
        if !field_paths.iter().all(|path| is_in_spec(path))
            || !api_version.is_none_or(names::is_api_version)
        {
            return None;
        }
        let owners = value["metadata"]["ownerReferences"].as_array()?;
        let controller = owners.iter().find(|owner| owner["controller"] == true)?;
        let controller = Controller::deserialize(controller).ok()?;
        if !names::is_api_version(&controller.api_version) {
            return None;
        }
        Some(Self {
            name: value["metadata"]["name"].as_str()?.to_owned(),
            number: value["revision"].as_i64()?,
            created: value["metadata"]["creationTimestamp"]
                .as_str()
                .and_then(|time| time.parse().ok()),
            controller,
            api_version: api_version.map(str::to_owned),
            field_paths,
            data: value["data"].clone(),
        })
    }

    /// The API version in which the fields are, if it is another one than this. A revision without
    /// a record counts as one of the present version, as for the host.
    pub(crate) fn other_version(&self, present: &str) -> Option<&str> {
        self.api_version.as_deref().filter(|version| *version != present)
    }

    /// The change that returns a primary to this revision: the stored fields replace the present
    /// ones, and fields that the primary did not have are removed.
    pub(crate) fn change_of(&self, primary: &Value) -> Change {
        let mut after = primary.clone();
        let change = |path: &String| match field(&self.data, path) {
            Some(stored) => replace(&mut after, path, stored),
            None => removal(&mut after, path),
        };
        let operations = self.field_paths.iter().filter_map(change).collect();
        Change { operations, after }
    }

    /// The fields of a primary that a revision stores, at their places.
    pub(crate) fn fields_of(&self, primary: &Value) -> Value {
        let mut fields = Value::Object(Map::new());
        for path in &self.field_paths {
            if let Some(value) = field(primary, path) {
                set(&mut fields, path, value.clone());
            }
        }
        fields
    }
}

/// Whether a path is the spec or below it. Others write annotations too.
fn is_in_spec(path: &str) -> bool {
    let mut names = path.split('.');
    names.next() == Some(SPEC) && names.all(|name| !name.is_empty())
}

/// Sets a field in an object, and returns the operation that does so.
fn replace(object: &mut Value, path: &str, stored: &Value) -> Option<Value> {
    if field(object, path) == Some(stored) {
        return None;
    }
    // The operation sets the first member on the path that is no object, with all below it.
    let mut place: &Value = object;
    let mut pointer = String::new();
    let mut names = path.split('.');
    let mut existing = None;
    while let Some(name) = names.next() {
        push(&mut pointer, name);
        existing = place.as_object()?.get(name);
        match existing {
            Some(next) if next.is_object() && names.clone().next().is_some() => place = next,
            _ => break,
        }
    }
    let operation = if existing.is_some() { "replace" } else { "add" };
    let value = names.rev().fold(stored.clone(), |value, name| json!({ name: value }));
    set(object, path, stored.clone());
    Some(json!({"op": operation, "path": pointer, "value": value}))
}

/// Removes a field from an object, and returns the operation that does so.
fn removal(object: &mut Value, path: &str) -> Option<Value> {
    remove(object, path)?;
    let mut pointer = String::new();
    path.split('.').for_each(|name| push(&mut pointer, name));
    Some(json!({"op": "remove", "path": pointer}))
}

/// Adds a name to a JSON pointer (RFC 6901).
fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(field_paths: &str, data: &Value) -> Option<StoredRevision> {
        let owner = json!({"apiVersion": "example.com/v1", "kind": "Site", "name": "one",
            "uid": "1", "controller": true});
        StoredRevision::read(&json!({"metadata": {"name": "one-0123456789",
            "annotations": {REVISION_FIELD_PATHS_ANNOTATION: field_paths}, "ownerReferences": [owner]},
            "revision": 1, "data": data}))
    }

    /// The operations, and the spec after them.
    fn change(field_paths: &str, data: &Value, spec: &Value) -> (Vec<Value>, Value) {
        let primary = json!({ "spec": spec });
        let change = revision(field_paths, data).unwrap().change_of(&primary);
        (change.operations, change.after["spec"].clone())
    }

    #[test]
    fn stored_field_replaces_the_present_one_as_a_whole() {
        let data = json!({"spec": {"template": {"image": "a"}}});
        let spec = json!({"replicas": 3, "template": {"image": "b", "added": true}});
        let (operations, after) = change("spec.template", &data, &spec);
        assert_eq!(
            operations,
            [json!({"op": "replace", "path": "/spec/template", "value": {"image": "a"}})]
        );
        assert_eq!(after, json!({"replicas": 3, "template": {"image": "a"}}));
    }

    #[test]
    fn field_that_was_added_since_is_removed() {
        let spec = json!({"replicas": 3, "a/b~c": {"x": 1}});
        let (operations, after) = change("spec.a/b~c,spec.gone", &json!({"spec": {}}), &spec);
        assert_eq!(operations, [json!({"op": "remove", "path": "/spec/a~1b~0c"})]);
        assert_eq!(after, json!({"replicas": 3}));
    }

    #[test]
    fn field_that_was_removed_since_is_added_with_its_parents() {
        let data = json!({"spec": {"a": {"b": {"c": 1, "d": 2}}}});
        let (operations, after) = change("spec.a.b.c,spec.a.b.d", &data, &json!({"a": null}));
        assert_eq!(
            operations,
            [
                json!({"op": "replace", "path": "/spec/a", "value": {"b": {"c": 1}}}),
                json!({"op": "add", "path": "/spec/a/b/d", "value": 2}),
            ]
        );
        assert_eq!(after, data["spec"]);
        let (operations, _) = change("spec.a.b.c,spec.a.b.d", &data, &data["spec"]);
        assert_eq!(operations, [] as [Value; 0]);
    }

    #[test]
    fn revision_is_of_another_version_only_if_the_host_recorded_one() {
        let owner = json!({"apiVersion": "example.com/v1", "kind": "Site", "name": "one",
            "uid": "1", "controller": true});
        let with = |version: Value| {
            let annotations = json!({REVISION_FIELD_PATHS_ANNOTATION: "spec",
                REVISION_API_VERSION_ANNOTATION: version});
            StoredRevision::read(&json!({"metadata": {"name": "a", "annotations": annotations,
                "ownerReferences": [owner]}, "revision": 1, "data": {}}))
        };
        for (version, other) in [
            (Value::Null, None),
            (json!("example.com/v1"), None),
            (json!("example.com/v1beta1"), Some("example.com/v1beta1")),
            (json!("v1"), Some("v1")),
        ] {
            let revision = with(version).unwrap();
            assert_eq!(revision.other_version("example.com/v1"), other);
        }
        for forged in ["", "a\u{1b}[31m", "example.com/v1/x", &"a".repeat(1 << 16)] {
            assert_eq!(with(json!(forged)), None);
        }
    }

    #[test]
    fn path_outside_the_spec_is_no_revision_of_the_host() {
        for path in ["metadata.finalizers", "spec.a,status", "specs", "spec.", "", "spec..a"] {
            assert_eq!(revision(path, &json!({})), None, "{path}");
        }
        assert!(revision("spec", &json!({})).is_some());
    }
}
