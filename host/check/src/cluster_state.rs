//! The objects of a cluster without what differs from run to run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use innkeeper_core::{Manager, diff};
use innkeeper_lab::{Api, ApiFailure};
use jiff::Timestamp;
use serde_json::Value;

use crate::scenario::name_of;
use crate::subject::Subject;

/// The most fields of an object that a difference names.
const FIELDS_MAX: usize = 5;

/// Members of `metadata` that the API server sets.
const SERVER_METADATA: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"];

/// Annotations that a controller of Kubernetes sets and that depend on what happened before.
const HISTORY: [&str; 2] =
    ["deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"];

/// Members of `spec` that the API server or a controller of Kubernetes allocates. `clusterIP` of a
/// headless Service is `None`, which stays.
const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "nodeName", "healthCheckNodePort"];

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
        for (index, kind) in subject.kinds().into_iter().enumerate() {
            let resource = match api.resource(&kind.api_version, &kind.kind).await {
                Ok(resource) => resource,
                Err(ApiFailure::NotServed { .. }) => continue,
                Err(error) => return Err(error),
            };
            for mut object in api.list(&resource.path("", "")).await? {
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
        let mut state = Self { history: subject.history.clone(), ..Self::default() };
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

    /// What differs from another state, which has the objects as they should be.
    pub fn differences_from(&self, expected: &Self) -> Vec<Difference> {
        self.differences(expected, &|_, _| true)
    }

    /// The same without fields that the host has applied in neither state: their defaults can
    /// depend on earlier values of others, as `imagePullPolicy` does on the first image. So can the
    /// names of objects to which the host has applied nothing, such as the Pods of a Deployment.
    pub fn differences_in_applied_fields(&self, expected: &Self) -> Vec<Difference> {
        self.differences(expected, &|object, path| {
            [self, expected].iter().any(|state| {
                let mut entries = state.applied.get(object).into_iter().flatten();
                entries.any(|fields| has_path(fields, path))
            })
        })
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

    /// Whether the host has applied a field of an object, by its path.
    pub fn is_applied(&self, object: &str, path: &[String]) -> bool {
        let entries = self.applied.get(object).into_iter().flatten();
        let has = |fields: &Value| {
            let at = |fields, name: &String| Value::get(fields, format!("f:{name}"));
            path.iter().try_fold(fields, at).is_some()
        };
        entries.into_iter().any(has)
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

/// Removes what the API server and the controllers of Kubernetes set.
fn strip(object: &mut Value, is_primary: bool) {
    let generation = object["metadata"]["generation"].clone();
    if is_primary {
        observed_generations(&mut object["status"], &generation);
    } else if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for member in SERVER_METADATA {
            metadata.remove(member);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !HISTORY.contains(&name.as_str()));
        }
        if metadata.get("annotations").is_some_and(|all| *all == serde_json::json!({})) {
            metadata.remove("annotations");
        }
    }
    // The owner can be of a kind that the state leaves out, such as a ReplicaSet.
    let owners = object["metadata"]["ownerReferences"].as_array_mut();
    for owner in owners.into_iter().flatten().filter_map(Value::as_object_mut) {
        owner.remove("uid");
    }
    if is_primary {
        return;
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        for member in ALLOCATED {
            let is_none = |value: &Value| *value == "None" || *value == serde_json::json!(["None"]);
            if !spec.get(member).is_some_and(is_none) {
                spec.remove(member);
            }
        }
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
}

/// A generation counts changes, which faults add to. It matters whether the last one is observed.
fn observed_generations(value: &mut Value, generation: &Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if name == "observedGeneration" && !generation.is_null() {
                    let is_current = *member == *generation;
                    *member = if is_current { "<current>" } else { "<old>" }.into();
                } else {
                    observed_generations(member, generation);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                observed_generations(item, generation);
            }
        }
        _ => {}
    }
}

/// Names that the API server made from `metadata.generateName`, and what replaces each: the
/// beginning with its rank among those with the same beginning.
fn generated_names<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut names: Vec<(String, String)> = objects
        .map(|object| {
            (text(&object["metadata"]["generateName"]), text(&object["metadata"]["name"]))
        })
        .filter(|(beginning, name)| !beginning.is_empty() && name.starts_with(beginning.as_str()))
        .collect();
    names.sort();
    let mut replaced: Vec<(String, String)> = Vec::new();
    let mut rank = 0;
    for (index, (beginning, name)) in names.iter().enumerate() {
        let is_same = index > 0 && names[index - 1].0 == *beginning;
        rank = if is_same { rank + 1 } else { 1 };
        replaced.push((name.clone(), format!("{beginning}<{rank}>")));
    }
    replaced
}

fn replace(text: &mut String, replaced: &[(String, String)]) {
    for (from, to) in replaced {
        if text.contains(from.as_str()) {
            *text = text.replace(from.as_str(), to);
        }
    }
}

/// Replaces times, addresses, uids and generated names in all texts.
fn normalize(value: &mut Value, replaced: &[(String, String)]) {
    match value {
        Value::String(text) => {
            if text.parse::<Timestamp>().is_ok() {
                "<time>".clone_into(text);
            } else if text.parse::<IpAddr>().is_ok() {
                "<address>".clone_into(text);
            } else {
                replace(text, replaced);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normalize(item, replaced)),
        Value::Object(members) => members.values_mut().for_each(|one| normalize(one, replaced)),
        _ => {}
    }
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

    #[test]
    fn times_addresses_uids_and_generated_names_are_replaced() {
        let pod = |name: &str| json!({"metadata": {"generateName": "web-", "name": name}});
        let pods = [pod("web-zz"), pod("web-aa")];
        let mut replaced = generated_names(pods.iter());
        assert_eq!(
            replaced,
            [("web-aa", "web-<1>"), ("web-zz", "web-<2>")]
                .map(|(from, to)| { (from.to_owned(), to.to_owned()) })
        );
        replaced.push(("uid-1".to_owned(), "<uid of Pod a>".to_owned()));
        let mut object = json!({"at": "2026-01-01T00:00:00Z", "ip": "10.0.0.1", "text": "10.0.0.1:80",
            "pods": ["web-zz is of uid-1"]});
        normalize(&mut object, &replaced);
        assert_eq!(
            object,
            json!({"at": "<time>", "ip": "<address>", "text": "10.0.0.1:80",
            "pods": ["web-<2> is of <uid of Pod a>"]})
        );
    }
}
