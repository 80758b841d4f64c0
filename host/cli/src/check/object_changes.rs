//! The fields of objects that change again and again on a simulated cluster.

use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use innkeeper_core::diff::changed_values;
use innkeeper_lab::{Api, ApiFailure};
use serde_json::Value;

use super::field_values::shown;

/// How often a field must change to be one that changes again and again.
const TIMES_MIN: usize = 4;

/// The most fields that are returned.
const FIELDS_MAX: usize = 5;

/// The most changed fields of one write that are looked at.
const FIELDS_OF_WRITE_MAX: usize = 100;

/// Members that change with every write, and conditions, which follow other fields.
const IGNORED: [&str; 5] = [
    ".metadata.generation",
    ".metadata.managedFields",
    ".metadata.resourceVersion",
    ".status.conditions",
    ".status.observedGeneration",
];

/// The first part of the managers of objects that the host writes for a module.
const MANAGER: &str = "innkeeper/";

/// A field that changed again and again.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RepeatedChange {
    /// The object, for people.
    pub(super) object: String,
    /// The path of the field.
    pub(super) field: String,
    pub(super) times: usize,
    /// The last two values; `Value::Null` for none.
    pub(super) values: [Value; 2],
    /// The modules that write the object.
    pub(super) modules: Vec<String>,
}

/// The changes of some kinds since a time.
pub(super) struct ChangeLog {
    /// The paths of the kinds, and the versions of their lists.
    from: Vec<(String, String)>,
}

impl ChangeLog {
    /// Begins now.
    ///
    /// # Errors
    /// If the cluster does not list a kind that it serves.
    pub(super) async fn begin(api: &Api, kinds: &[Kind]) -> Result<Self, ApiFailure> {
        let mut from = Vec::new();
        for kind in kinds {
            let Ok(resource) = api.resource(&kind.api_version, &kind.kind).await else { continue };
            let path = resource.path("", "");
            let (version, _) = api.list_at(&path).await?;
            from.push((path, version));
        }
        Ok(Self { from })
    }

    /// The fields that changed again and again since then, most often first. Of a kind whose
    /// changes the cluster has dropped, none.
    pub(super) async fn repeated(&self, api: &Api) -> Vec<RepeatedChange> {
        let mut all = Vec::new();
        for (path, version) in &self.from {
            let events = api.changes(path, version).await.unwrap_or_default();
            all.extend(repeated(events.into_iter().map(|(_, object)| object)));
        }
        all.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.object.cmp(&b.object)));
        all.truncate(FIELDS_MAX);
        all
    }
}

/// The fields that changed again and again in these versions of objects, in order.
fn repeated(versions: impl Iterator<Item = Value>) -> Vec<RepeatedChange> {
    let mut last: BTreeMap<String, Value> = BTreeMap::new();
    let mut changes: BTreeMap<(String, String), RepeatedChange> = BTreeMap::new();
    for object in versions {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let Some(before) = last.insert(uid.clone(), object.clone()) else { continue };
        for change in changed_values(&before, &object, FIELDS_OF_WRITE_MAX) {
            if IGNORED.iter().any(|ignored| change.path.starts_with(ignored)) {
                continue;
            }
            let known = changes.entry((uid.clone(), change.path.clone()));
            let known = known.or_insert_with(|| RepeatedChange {
                object: name_of(&object),
                field: change.path.clone(),
                times: 0,
                values: [Value::Null, Value::Null],
                modules: modules(&object),
            });
            known.times += 1;
            known.values = [shown(change.before), shown(change.after)];
        }
    }
    changes.into_values().filter(|change| change.times >= TIMES_MIN).collect()
}

/// The modules that write an object, by its managers.
fn modules(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let managers = entries.filter_map(|entry| entry["manager"].as_str());
    let of_modules =
        managers.filter_map(|manager| manager.strip_prefix(MANAGER)?.split('/').next());
    let mut modules: Vec<String> = of_modules.map(str::to_owned).collect();
    modules.sort();
    modules.dedup();
    modules
}

/// An object for people, as in `ConfigMap web/one`.
pub(super) fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let (kind, name) = (text(&object["kind"]), text(&metadata["name"]));
    match metadata["namespace"].as_str() {
        None | Some("") => format!("{kind} {name}"),
        Some(namespace) => format!("{kind} {namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn version(number: usize, value: &str) -> Value {
        json!({"kind": "ConfigMap", "data": {"mode": value, "other": "x"},
            "metadata": {"name": "one", "namespace": "web", "uid": "u",
                "resourceVersion": number.to_string(),
                "managedFields": [{"manager": "innkeeper/sites/1234"}, {"manager": "user"}]}})
    }

    #[test]
    fn field_that_changes_again_and_again_is_found_with_its_values_and_writers() {
        let values = ["a", "b", "a", "b", "a"];
        let versions = values.iter().enumerate().map(|(number, value)| version(number, value));
        let expected = RepeatedChange {
            object: "ConfigMap web/one".to_owned(),
            field: ".data.mode".to_owned(),
            times: 4,
            values: [json!("b"), json!("a")],
            modules: vec!["sites".to_owned()],
        };
        assert_eq!(repeated(versions), [expected]);
    }

    #[test]
    fn field_that_changes_a_few_times_is_left_out() {
        let values = ["a", "b", "a", "b"];
        let versions = values.iter().enumerate().map(|(number, value)| version(number, value));
        assert_eq!(repeated(versions), []);
    }
}
