//! What the scripted server stores.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Where an object lies: group and version as in the URL, plural, namespace, name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// Somebody who watches a collection.
pub(crate) struct Watcher {
    pub(crate) group: String,
    pub(crate) plural: String,
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    pub(crate) events: UnboundedSender<String>,
}

/// All objects, and who watches them.
#[derive(Default)]
pub(crate) struct Store {
    pub(crate) objects: BTreeMap<Place, Value>,
    pub(crate) watchers: Vec<Watcher>,
    pub(crate) version: u64,
}

/// Why an apply is refused: code, reason, message.
pub(crate) type Refused = (u16, &'static str, String);

impl Store {
    /// The objects of a collection, in order; `namespace` empty for all.
    pub(crate) fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<&Value> {
        self.objects
            .iter()
            .filter(|(place, _)| {
                place.group == group
                    && place.plural == plural
                    && (namespace.is_empty() || place.namespace == namespace)
            })
            .map(|(_, object)| object)
            .collect()
    }

    /// Server-side apply, as far as the host needs it: gives the object and whether it is new.
    pub(crate) fn apply(
        &mut self,
        place: &Place,
        manager: &str,
        subresource: &str,
        mut body: Value,
    ) -> Result<(Value, bool), Refused> {
        let expected = body["metadata"]["resourceVersion"].take();
        let uid = body["metadata"]["uid"].take();
        let found = self.objects.get(place).cloned();
        match (&found, expected.as_str()) {
            (Some(_), Some("1")) => {
                let message = format!("{} \"{}\" already exists", place.plural, place.name);
                return Err((409, "Conflict", message));
            }
            (Some(object), Some(version)) if object["metadata"]["resourceVersion"] != version => {
                return Err((409, "Conflict", "the object has been modified".to_owned()));
            }
            (Some(object), _) if uid.is_string() && object["metadata"]["uid"] != uid => {
                return Err((422, "Invalid", "metadata.uid: field is immutable".to_owned()));
            }
            (None, Some(version)) if version != "1" => {
                return Err((
                    404,
                    "NotFound",
                    format!("{} \"{}\" not found", place.plural, place.name),
                ));
            }
            _ => {}
        }
        let created = found.is_none();
        let before = found.unwrap_or_else(
            || json!({"metadata": {"uid": format!("uid-{}", self.version + 1), "generation": 1}}),
        );
        let mut after = before.clone();
        if subresource == "status" {
            after["status"] = body["status"].clone();
        } else {
            merge(&mut after, &body);
            if !created && after["spec"] != before["spec"] {
                after["metadata"]["generation"] =
                    (before["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
            }
        }
        set_entry(&mut after, manager, subresource, &body);
        if !created && after == before {
            return Ok((after, false));
        }
        self.put(place, after.clone(), if created { "ADDED" } else { "MODIFIED" });
        Ok((self.objects[place].clone(), created))
    }

    /// Stores an object under a new version, and tells who watches.
    pub(crate) fn put(&mut self, place: &Place, mut object: Value, event: &str) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(place.clone(), object.clone());
        self.tell(place, event, &object);
    }

    /// Takes an object away, and tells who watches.
    pub(crate) fn delete(&mut self, place: &Place) -> Option<Value> {
        let mut object = self.objects.remove(place)?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.tell(place, "DELETED", &object);
        Some(object)
    }

    fn tell(&mut self, place: &Place, event: &str, object: &Value) {
        let line = event_line(event, object);
        self.watchers.retain(|watcher| {
            let concerns = watcher.group == place.group
                && watcher.plural == place.plural
                && (watcher.namespace.is_empty() || watcher.namespace == place.namespace);
            !concerns || watcher.events.send(line.clone()).is_ok()
        });
    }
}

/// A line of a watch, its type first, as servers write it.
pub(crate) fn event_line(event: &str, object: &Value) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}

/// Merges members of objects; anything else is replaced.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from.iter().filter(|(_, value)| !value.is_null()) {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Sets the entry of a manager to what it applied just now.
fn set_entry(object: &mut Value, manager: &str, subresource: &str, body: &Value) {
    let mut fields = fields(body);
    if let Some(root) = fields.as_object_mut() {
        root.retain(|name, _| !matches!(name.as_str(), "f:apiVersion" | "f:kind"));
        if let Some(metadata) = root.get_mut("f:metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| {
                !matches!(name.as_str(), "f:name" | "f:namespace" | "f:uid" | "f:resourceVersion")
            });
            if metadata.is_empty() {
                root.remove("f:metadata");
            }
        }
    }
    let mut entry = json!({"manager": manager, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": fields});
    if !subresource.is_empty() {
        entry["subresource"] = subresource.into();
    }
    let entries = object["metadata"]["managedFields"].take();
    let mut entries = match entries {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    };
    entries.retain(|one| one["manager"] != manager || one["subresource"] != entry["subresource"]);
    entries.push(entry);
    entries.sort_by_key(|one| format!("{}{}", one["manager"], one["subresource"]));
    object["metadata"]["managedFields"] = entries.into();
}

/// `fieldsV1` of a document: lists are leaves, but for conditions, which go by type.
fn fields(value: &Value) -> Value {
    let Value::Object(members) = value else { return json!({}) };
    members
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let below = match value {
                Value::Array(items) if name == "conditions" => items
                    .iter()
                    .map(|item| (format!("k:{}", json!({"type": item["type"]})), json!({".": {}})))
                    .collect::<Map<_, _>>()
                    .into(),
                value => fields(value),
            };
            (format!("f:{name}"), below)
        })
        .collect::<Map<_, _>>()
        .into()
}
