//! The objects of a cluster without what differs from run to run.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::Kind;
use innkeeper_core::{Manager, diff};
use innkeeper_lab::{Api, ApiFailure};
use serde_json::Value;

use crate::normalization::{generated_names, normalize, replace, strip};
use crate::scenario::name_of;
use crate::subject::Subject;

/// The most fields of an object that a difference names.
const FIELDS_MAX: usize = 5;

/// The objects of the kinds of a guest, by kind, namespace and name. Times, uids, addresses, the
/// status of objects other than primaries and what else does not depend on the guest is left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterState {
    objects: BTreeMap<String, Value>,
    /// The same objects as the API server has them.
    stored: BTreeMap<String, Value>,
    /// The fields of each object that the host has applied, as `fieldsV1`.
    applied: BTreeMap<String, Vec<Value>>,
    /// The fields that may differ.
    history: Vec<String>,
    /// The kinds of the guest that the API server does not serve, such as
    /// `route.openshift.io/v1 Route`.
    not_served: BTreeSet<String>,
}

/// A difference of two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Kind, namespace and name of the object.
    pub object: String,
    /// What differs.
    pub what: String,
}

impl ClusterState {
    /// Reads the objects of a guest's kinds.
    ///
    /// # Errors
    /// If the API server refuses to list a kind.
    pub async fn read(api: &Api, subject: &Subject) -> Result<Self, ApiFailure> {
        let mut found = Vec::new();
        let mut not_served = BTreeSet::new();
        for (index, kind) in subject.kinds().into_iter().enumerate() {
            let Some(objects) = objects_of(api, kind).await? else {
                not_served.insert(format!("{} {}", kind.api_version, kind.kind));
                continue;
            };
            for mut object in objects {
                object["apiVersion"] = kind.api_version.clone().into();
                object["kind"] = kind.kind.clone().into();
                found.push((index == 0, object));
            }
        }
        let mut replaced = generated_names(found.iter().map(|(_, object)| object));
        for (_, object) in &found {
            let mut name = name_of(object);
            replace(&mut name, &replaced);
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            replaced.push((uid, format!("<uid of {name}>")));
        }
        let mut state = Self { history: subject.history.clone(), not_served, ..Self::default() };
        for (is_primary, mut object) in found {
            let mut name = name_of(&object);
            replace(&mut name, &replaced);
            let name = format!("{} {name}", object["apiVersion"].as_str().unwrap_or_default());
            state.applied.insert(name.clone(), applied_fields(&object));
            state.stored.insert(name.clone(), object.clone());
            strip(&mut object, is_primary);
            normalize(&mut object, &replaced);
            state.objects.insert(name, object);
        }
        Ok(state)
    }

    /// The kinds of the guest that the API server does not serve: nothing is compared of them.
    pub fn not_served(&self) -> &BTreeSet<String> {
        &self.not_served
    }

    /// What differs from another state, which has the objects as they should be.
    pub fn differences_from(&self, expected: &Self) -> Vec<Difference> {
        self.differences(expected, &|_, _| true)
    }

    /// The same without fields that the host has applied in neither state: their defaults can
    /// depend on earlier values of others, as `imagePullPolicy` does on the first image. So can the
    /// names of objects to which the host has applied nothing, such as the Pods of a Deployment.
    pub fn differences_in_applied_fields(&self, expected: &Self) -> Vec<Difference> {
        self.differences(expected, &|object, path| {
            self.has_applied(object, path) || expected.has_applied(object, path)
        })
    }

    /// The same without the status of primaries.
    pub fn differences_but_in_status(&self, expected: &Self, subject: &Subject) -> Vec<Difference> {
        let is_primary = |object: &str| {
            let stored = [self, expected].into_iter().find_map(|state| state.stored(object));
            stored.is_some_and(|object| subject.is_primary(object))
        };
        self.differences(expected, &|object, path| {
            let is_counted = self.has_applied(object, path) || expected.has_applied(object, path);
            is_counted && !(is_within(path, ".status") && is_primary(object))
        })
    }

    /// Whether the host has applied a field of an object, by a path of a difference.
    fn has_applied(&self, object: &str, path: &str) -> bool {
        let mut entries = self.applied.get(object).into_iter().flatten();
        entries.any(|fields| has_path(fields, path))
    }

    fn differences(&self, expected: &Self, counts: &dyn Fn(&str, &str) -> bool) -> Vec<Difference> {
        let mut differences = Vec::new();
        let names = expected.objects.keys().chain(self.objects.keys());
        let mut names: Vec<&String> = names.collect();
        names.sort();
        names.dedup();
        for name in names {
            let what = match (expected.objects.get(name), self.objects.get(name)) {
                (None, _) | (_, None) if !counts(name, "") => continue,
                (Some(_), None) => "is missing".to_owned(),
                (None, Some(_)) => "should not exist".to_owned(),
                (Some(expected), Some(object)) if expected != object => {
                    let changes = diff::changed_values(expected, object, usize::MAX);
                    let is_history =
                        |path: &str| self.history.iter().any(|field| is_within(path, field));
                    let counted = changes
                        .iter()
                        .filter(|one| counts(name, &one.path) && !is_history(&one.path));
                    let lines = counted
                        .take(FIELDS_MAX)
                        .map(|one| format!("{} is {}, not {}", one.path, one.after, one.before));
                    let lines: Vec<String> = lines.collect();
                    if lines.is_empty() {
                        // Only annotations of the host differ, or fields that do not count.
                        continue;
                    }
                    lines.join("; ")
                }
                _ => continue,
            };
            differences.push(Difference { object: name.clone(), what });
        }
        differences
    }

    /// The types of the conditions that a guest reports as false, each with its primary.
    pub fn reported_problems(&self, subject: &Subject) -> BTreeSet<String> {
        let primaries = self.objects().filter(|(_, object)| subject.is_primary(object));
        let problems = primaries.flat_map(|(name, primary)| {
            let conditions = primary["status"]["conditions"].as_array().into_iter().flatten();
            let is_false = |one: &&Value| one["status"] == "False";
            let types = conditions.filter(is_false).filter_map(|one| one["type"].as_str());
            // Of these the host reports the other one, and whether a primary is ready is no reason.
            let types = types.filter(|type_| !["Ready", "Synced"].contains(type_));
            types.map(move |type_| format!("{name} {type_}"))
        });
        problems.collect()
    }

    /// Whether a primary has a condition that is false.
    pub fn has_false_condition(&self, subject: &Subject) -> bool {
        let primaries = self.objects().filter(|(_, object)| subject.is_primary(object));
        let conditions = primaries.flat_map(|(_, primary)| {
            primary["status"]["conditions"].as_array().into_iter().flatten()
        });
        conditions.into_iter().any(|one| one["status"] == "False")
    }

    /// Whether the host has applied a field of an object, by its path.
    pub fn is_applied(&self, object: &str, path: &[String]) -> bool {
        let entries = self.applied.get(object).into_iter().flatten();
        let has = |fields: &Value| {
            let at = |fields, name: &String| Value::get(fields, format!("f:{name}"));
            path.iter().try_fold(fields, at).is_some()
        };
        entries.into_iter().any(has)
    }

    /// The fields of an object that the host has applied, as `fieldsV1`.
    pub(crate) fn applied_to(&self, object: &str) -> &[Value] {
        self.applied.get(object).map(Vec::as_slice).unwrap_or_default()
    }

    /// The objects as the API server has them.
    pub(crate) fn stored_objects(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.stored.iter().map(|(name, object)| (name.as_str(), object))
    }

    /// An object as the API server has it.
    pub(crate) fn stored(&self, object: &str) -> Option<&Value> {
        self.stored.get(object)
    }

    /// Whether there is an object of this API version, kind, namespace and name.
    pub fn has(&self, object: &str) -> bool {
        self.objects.contains_key(object)
    }

    /// The objects, each with its API version, kind, namespace and name.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.objects.iter().map(|(name, object)| (name.as_str(), object))
    }
}

/// The objects of a kind; `None` if the API server does not serve it, or no longer.
async fn objects_of(api: &Api, kind: &Kind) -> Result<Option<Vec<Value>>, ApiFailure> {
    let resource = match api.resource(&kind.api_version, &kind.kind).await {
        Err(ApiFailure::NotServed { .. }) => return Ok(None),
        other => other?,
    };
    match api.list(&resource.path("", "")).await {
        // Its definition was deleted after the first look.
        Err(ApiFailure::Refused { code: 404, .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// Whether a path is a field or something below it.
fn is_within(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether `fieldsV1` have a path, as in `.spec.containers[name="a"].image`, or something below it.
fn has_path(fields: &Value, path: &str) -> bool {
    let Some(members) = fields.as_object() else { return false };
    if path.is_empty() || path == "." {
        return true;
    }
    if let Some(rest) = path.strip_prefix('[') {
        // The text of an item's key can have brackets.
        let Some((key, rest)) = rest.split_once("\"]") else { return true };
        let Some((member, value)) = key.split_once("=\"") else { return true };
        let is_item = |name: &str| {
            let Some(key) = name.strip_prefix("k:") else { return false };
            let key: Value = serde_json::from_str(key).unwrap_or_default();
            key.get(member).is_none_or(|found| found == value)
        };
        return members.iter().any(|(name, fields)| is_item(name) && has_path(fields, rest));
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    match members.get(&format!("f:{name}")) {
        Some(fields)
            if rest.is_empty() || fields.as_object().is_some_and(|all| !all.is_empty()) =>
        {
            has_path(fields, rest)
        }
        // The whole value is applied.
        Some(_) => true,
        None => false,
    }
}

/// The fields that the host has applied.
fn applied_fields(object: &Value) -> Vec<Value> {
    let entries = object["metadata"]["managedFields"].as_array();
    let is_of_host = |entry: &&Value| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        entry["operation"] == "Apply" && Manager::is_of_host(manager)
    };
    let entries = entries.into_iter().flatten().filter(is_of_host);
    entries.map(|entry| entry["fieldsV1"].clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn path_is_applied_if_its_field_or_a_parent_is() {
        let fields = json!({"f:spec": {"f:replicas": {}, "f:strategy": {}, "f:template": {"f:spec": {
            "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}}}}});
        for path in [
            ".spec.replicas",
            ".spec.strategy.type",
            r#".spec.template.spec.containers[name="a"].image"#,
            r#".spec.template.spec.containers[name="a"]"#,
        ] {
            assert!(has_path(&fields, path), "{path}");
        }
        for path in [
            ".spec.paused",
            ".status",
            r#".spec.template.spec.containers[name="a"].imagePullPolicy"#,
            r#".spec.template.spec.containers[name="b"].image"#,
        ] {
            assert!(!has_path(&fields, path), "{path}");
        }
    }

    #[test]
    fn history_is_a_field_and_what_is_below_it() {
        assert!(is_within(".status.lastRun", ".status.lastRun"));
        assert!(is_within(".status.lastRun.changed", ".status.lastRun"));
        assert!(!is_within(".status.lastRunAt", ".status.lastRun"));
    }

    impl ClusterState {
        /// A state with these objects as the API server has them.
        pub(crate) fn of<const N: usize>(objects: [Value; N]) -> Self {
            let mut state = Self::default();
            for object in objects {
                let version = object["apiVersion"].as_str().unwrap_or_default();
                state.stored.insert(format!("{version} {}", name_of(&object)), object);
            }
            state
        }
    }

    /// A state of one Shop with a status and a ConfigMap, both applied by the host.
    fn state(ready: &str, color: &str) -> ClusterState {
        let objects = [
            (
                "example.com/v1 Shop default/a",
                json!({"apiVersion": "example.com/v1",
                "kind": "Shop", "status": {"ready": ready}}),
            ),
            (
                "v1 ConfigMap default/a",
                json!({"apiVersion": "v1", "kind": "ConfigMap",
                "data": {"color": color}}),
            ),
        ];
        let fields = json!({"f:status": {"f:ready": {}}, "f:data": {"f:color": {}}});
        let mut state = ClusterState::default();
        for (name, object) in objects {
            state.objects.insert(name.to_owned(), object.clone());
            state.stored.insert(name.to_owned(), object);
            state.applied.insert(name.to_owned(), vec![fields.clone()]);
        }
        state
    }

    #[test]
    fn differences_but_in_status_are_those_of_other_fields() {
        let subject = crate::subject::tests::shops();
        let end = state("False", "red");
        let named = |differences: Vec<Difference>| {
            differences.into_iter().map(|one| one.object).collect::<Vec<_>>()
        };
        let only_status = state("True", "red");
        assert_eq!(named(end.differences_but_in_status(&only_status, &subject)), [""; 0]);
        assert_eq!(
            named(end.differences_in_applied_fields(&only_status)),
            ["example.com/v1 Shop default/a"]
        );
        let both = end.differences_but_in_status(&state("True", "blue"), &subject);
        assert_eq!(named(both), ["v1 ConfigMap default/a"]);
    }
}
