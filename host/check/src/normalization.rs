//! Removes from objects what differs from run to run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use serde_json::Value;

/// Members of `metadata` that the API server sets.
const SERVER_METADATA: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"];

/// The longest beginning of a generated name: the API server cuts a longer `generateName`, so that
/// five random characters fit (`k8s.io/apiserver/pkg/storage/names`).
const GENERATED_BEGINNING_MAX: usize = 63 - 5;

/// Annotations that a controller of Kubernetes sets and that depend on what happened before.
const HISTORY: [&str; 2] =
    ["deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"];

/// Members of `spec` that the API server or a controller of Kubernetes allocates. `clusterIP` of a
/// headless Service is `None`, which stays.
const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "nodeName", "healthCheckNodePort"];

/// The label with which a Deployment marks the Pods of one template.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Removes what the API server and the controllers of Kubernetes set.
pub(crate) fn strip(object: &mut Value, is_primary: bool) {
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
///
/// The hash of the template in names of a Deployment's Pods is replaced, too, unless there are Pods
/// of two templates: it depends on defaults, which can depend on earlier values, as
/// `imagePullPolicy` does on the first image. The template itself is compared in the Deployment.
pub(crate) fn generated_names<'a>(
    objects: impl Iterator<Item = &'a Value>,
) -> Vec<(String, String)> {
    let mut names: Vec<GeneratedName> = objects.filter_map(GeneratedName::of).collect();
    let mut templates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for one in &names {
        if let Some((stem, hash)) = one.stem().zip(one.hash) {
            templates.entry(stem.to_owned()).or_default().insert(hash.to_owned());
        }
    }
    for one in &mut names {
        let is_only = |stem: &str| templates.get(stem).is_some_and(|hashes| hashes.len() == 1);
        if let Some(stem) = one.stem().filter(|stem| is_only(stem)) {
            one.beginning = format!("{stem}<template>-");
        }
    }
    names.sort_by(|a, b| (&a.beginning, a.name).cmp(&(&b.beginning, b.name)));
    let mut replaced: Vec<(String, String)> = Vec::new();
    let mut rank = 0;
    for (index, one) in names.iter().enumerate() {
        let is_same = index > 0 && names[index - 1].beginning == one.beginning;
        rank = if is_same { rank + 1 } else { 1 };
        replaced.push((one.name.to_owned(), format!("{}<{rank}>", one.beginning)));
    }
    replaced
}

/// The name of an object that the API server generated.
struct GeneratedName<'a> {
    name: &'a str,
    /// `generateName`.
    beginning: String,
    /// The hash of the template from which a Deployment made the Pod.
    hash: Option<&'a str>,
}

impl<'a> GeneratedName<'a> {
    fn of(object: &'a Value) -> Option<Self> {
        let metadata = &object["metadata"];
        let beginning = metadata["generateName"].as_str().filter(|text| !text.is_empty())?;
        let name = metadata["name"].as_str()?;
        let cut = beginning.get(..GENERATED_BEGINNING_MAX).unwrap_or(beginning);
        let hash = metadata["labels"][TEMPLATE_HASH].as_str().filter(|text| !text.is_empty());
        name.starts_with(cut).then(|| Self { name, beginning: beginning.to_owned(), hash })
    }

    /// What comes before the hash of the template.
    fn stem(&self) -> Option<&str> {
        self.beginning.strip_suffix('-')?.strip_suffix(self.hash?)
    }
}

pub(crate) fn replace(text: &mut String, replaced: &[(String, String)]) {
    for (from, to) in replaced {
        if text.contains(from.as_str()) {
            *text = text.replace(from.as_str(), to);
        }
    }
}

/// Replaces times, addresses, uids and generated names in all texts.
pub(crate) fn normalize(value: &mut Value, replaced: &[(String, String)]) {
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
    fn generated_name_is_recognized_if_the_api_server_cut_its_beginning() {
        let cut = "x".repeat(GENERATED_BEGINNING_MAX);
        for (beginning, name) in [
            (format!("{cut}yyy-"), format!("{cut}abcde")),
            (format!("{cut}-"), format!("{cut}abcde")),
            (cut.clone(), format!("{cut}abcde")),
        ] {
            let object = json!({"metadata": {"generateName": beginning, "name": name}});
            let replaced = generated_names([&object].into_iter());
            assert_eq!(replaced, [(name, format!("{beginning}<1>"))]);
        }
        let name = format!("{}-abcde", "x".repeat(57));
        let other = json!({"metadata": {"generateName": format!("{cut}-"), "name": name}});
        assert_eq!(generated_names([&other].into_iter()), []);
    }

    #[test]
    fn hash_of_the_template_is_replaced_if_all_pods_of_a_deployment_have_the_same() {
        let pod = |hash: &str, end: &str| {
            json!({"metadata": {"generateName": format!("web-{hash}-"),
                "name": format!("web-{hash}-{end}"), "labels": {"pod-template-hash": hash}}})
        };
        let named = |pods: [Value; 2]| {
            let replaced = generated_names(pods.iter());
            let mut texts = pods.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned());
            for text in &mut texts {
                replace(text, &replaced);
            }
            texts
        };
        assert_eq!(
            named([pod("6f4f7f6", "zz"), pod("6f4f7f6", "aa")]),
            ["web-<template>-<2>", "web-<template>-<1>"]
        );
        assert_eq!(
            named([pod("6f4f7f6", "aa"), pod("7cf77d9", "aa")]),
            ["web-6f4f7f6-<1>", "web-7cf77d9-<1>"]
        );
        // Somebody else's Pod keeps its name.
        let pods = [pod("6f4f7f6", "aa")];
        let mut text = "web-6f4f7f6-bb".to_owned();
        replace(&mut text, &generated_names(pods.iter()));
        assert_eq!(text, "web-6f4f7f6-bb");
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
