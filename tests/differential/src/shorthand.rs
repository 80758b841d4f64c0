//! Cases in files: as JSON, as they are found, or in short as YAML, as people write them.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::case::{Case, Step};
use crate::expect::Expect;
use crate::server::Failure;

/// The kinds that can be named in short, with their API versions, and whether they are in a
/// namespace.
const KINDS: [(&str, &str, &str, bool); 28] = [
    ("clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("configmaps", "v1", "ConfigMap", true),
    ("controllerrevisions", "apps/v1", "ControllerRevision", true),
    ("cronjobs", "batch/v1", "CronJob", true),
    ("customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition", false),
    ("daemonsets", "apps/v1", "DaemonSet", true),
    ("deployments", "apps/v1", "Deployment", true),
    ("gadgets", "test.innkeeper.dev/v1", "Gadget", true),
    ("gizmos", "test.innkeeper.dev/v1", "Gizmo", false),
    ("ingresses", "networking.k8s.io/v1", "Ingress", true),
    ("jobs", "batch/v1", "Job", true),
    ("horizontalpodautoscalers", "autoscaling/v2", "HorizontalPodAutoscaler", true),
    (
        "mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        false,
    ),
    ("namespaces", "v1", "Namespace", false),
    ("persistentvolumeclaims", "v1", "PersistentVolumeClaim", true),
    ("persistentvolumes", "v1", "PersistentVolume", false),
    ("pods", "v1", "Pod", true),
    ("replicasets", "apps/v1", "ReplicaSet", true),
    ("replicationcontrollers", "v1", "ReplicationController", true),
    ("rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding", true),
    ("secrets", "v1", "Secret", true),
    ("serviceaccounts", "v1", "ServiceAccount", true),
    ("services", "v1", "Service", true),
    ("statefulsets", "apps/v1", "StatefulSet", true),
    ("storageclasses", "storage.k8s.io/v1", "StorageClass", false),
    (
        "validatingadmissionpolicies",
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        false,
    ),
    (
        "validatingadmissionpolicybindings",
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        false,
    ),
    (
        "validatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        false,
    ),
];

/// A case in short.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShorthandCase {
    /// What is asserted, in a sentence.
    why: String,
    /// The test of others that asserts it.
    #[serde(default)]
    source: String,
    steps: Vec<ShorthandStep>,
}

/// A request in short. `do` is a verb (`create`, `apply`, `update`, `merge`, `json`, `strategic`,
/// `get`, `list`, `watch`, `delete`, `deletecollection`), what it is about (`pods/one`,
/// `pods/one/status`; of a kind of the case `widgets.group.dev/v1:Widget/one`), and words: `by
/// MANAGER`, `force`, `as USER`, `in NAMESPACE`, `settled`, `?QUERY`. A body of an object need not
/// say its kind and name. A request must be accepted, unless a code is given.
#[derive(Debug, Deserialize)]
struct ShorthandStep {
    r#do: String,
    #[serde(default)]
    body: Value,
    /// The body as it is: see [`Step::text`].
    #[serde(default)]
    text: String,
    #[serde(default)]
    edit: Value,
    /// What a watch is over with: see [`Step::until`].
    #[serde(default)]
    until: String,
    /// Leave the body as it is.
    #[serde(default)]
    plain: bool,
    /// The members of [`Expect`]. Read later, since what is flattened lets mistakes pass.
    #[serde(flatten)]
    expect: Map<String, Value>,
}

/// The cases of a file.
///
/// # Errors
/// If it cannot be read: what is wrong, and in which case.
pub fn read(path: &Path) -> Result<Vec<Case>, Failure> {
    let bytes = std::fs::read(path)?;
    let wrong = |error: &dyn std::fmt::Display| -> Failure {
        format!("{}: {error}", path.display()).into()
    };
    if path.extension().is_some_and(|extension| extension == "json") {
        return serde_json::from_slice(&bytes).map_err(|error| wrong(&error));
    }
    parse(&String::from_utf8(bytes)?).map_err(|error| wrong(&error))
}

/// The cases of a text in short.
///
/// # Errors
/// If it cannot be read: what is wrong, and in which case.
pub fn parse(text: &str) -> Result<Vec<Case>, Failure> {
    let mut value: serde_yaml_ng::Value = serde_yaml_ng::from_str(text)?;
    value.apply_merge()?;
    let cases: Vec<ShorthandCase> = serde_yaml_ng::from_value(value)?;
    cases
        .into_iter()
        .map(|case| {
            let steps: Result<Vec<Step>, Failure> = case.steps.into_iter().map(step).collect();
            let steps = steps.map_err(|error| format!("{}: {error}", case.why))?;
            Ok(Case { why: case.why, source: case.source, steps })
        })
        .collect()
}

fn step(step: ShorthandStep) -> Result<Step, Failure> {
    let ShorthandStep { r#do: words, mut body, text, edit, until, plain, expect } = step;
    let mut expect: Expect = serde_json::from_value(expect.into())?;
    let mut words = words.split_whitespace();
    let verb = words.next().ok_or("there is no verb")?;
    let object = Named::read(words.next().ok_or("nothing is named")?)?;
    let content_type = content_type(verb);
    let mut step = Step { method: method(verb)?.to_owned(), edit, until, ..Step::default() };
    step.path = object.path(verb);
    let query = options(&mut step, verb, words)?;
    if !query.is_empty() {
        step.path = format!("{}?{}", step.path, query.join("&"));
    }
    let is_plain = plain || !text.is_empty() || !step.edit.is_null();
    if matches!(verb, "create" | "apply" | "update") && !is_plain {
        complete(&mut body, &object.version, object.kind, object.name);
    }
    if expect.code.is_none() && verb == "create" {
        expect.code = Some(201);
    }
    content_type.clone_into(&mut step.content_type);
    step.body = body;
    step.text = text;
    step.about = format!("in short: {verb} {}", object.plural);
    step.expect = Some(expect);
    Ok(step)
}

/// What a request is about.
struct Named<'a> {
    plural: &'a str,
    version: String,
    kind: &'a str,
    namespaced: bool,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// `pods/one/status`, or of a kind of the case `widgets.group.dev/v1:Widget/one`.
    fn read(named: &'a str) -> Result<Self, Failure> {
        let first = named.split('/').next().unwrap_or_default();
        let known = KINDS.into_iter().find(|kind| kind.0 == first);
        let (plural, version, kind, namespaced, rest) = if let Some(known) = known {
            (first, known.1.to_owned(), known.2, known.3, &named[first.len()..])
        } else {
            let wrong = || format!("{named:?} is of none of the kinds");
            let (resource, rest) = named.split_once(':').ok_or_else(wrong)?;
            let (plural, version) = resource.split_once('.').ok_or_else(wrong)?;
            let kind = rest.split('/').next().unwrap_or_default();
            (plural, version.to_owned(), kind, true, &rest[kind.len()..])
        };
        let mut parts = rest.split('/').skip(1);
        let (name, subresource) = (parts.next(), parts.next());
        Ok(Self { plural, version, kind, namespaced, name, subresource })
    }

    /// Where the object of a request is; of some verbs its collection.
    fn path(&self, verb: &str) -> String {
        let root = if self.version.contains('/') { "/apis/" } else { "/api/" };
        let mut path = root.to_owned() + &self.version;
        if self.namespaced {
            path += "/namespaces/{n}";
        }
        path = format!("{path}/{}", self.plural);
        if let Some(name) = self.name.filter(|_| !matches!(verb, "create" | "list" | "watch")) {
            path = format!("{path}/{}", full(name));
        }
        if let Some(sub) = self.subresource {
            path = format!("{path}/{sub}");
        }
        path
    }
}

/// The content type of a patch; empty for other verbs.
fn content_type(verb: &str) -> &'static str {
    match verb {
        "apply" => "application/apply-patch+yaml",
        "merge" => "application/merge-patch+json",
        "json" => "application/json-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        _ => "",
    }
}

fn method(verb: &str) -> Result<&'static str, Failure> {
    Ok(match verb {
        "create" => "POST",
        "update" => "PUT",
        "get" | "list" | "watch" => "GET",
        "delete" | "deletecollection" => "DELETE",
        _ if !content_type(verb).is_empty() => "PATCH",
        _ => return Err(format!("{verb:?} is not among the verbs").into()),
    })
}

/// Reads the words behind what is named; gives the query.
fn options<'a>(
    step: &mut Step,
    verb: &str,
    mut words: impl Iterator<Item = &'a str>,
) -> Result<Vec<String>, Failure> {
    let mut query = Vec::new();
    if verb == "watch" {
        query.push("watch=true".to_owned());
    }
    while let Some(word) = words.next() {
        match word {
            "by" => query.push(format!("fieldManager={}", words.next().ok_or("by whom?")?)),
            "as" => words.next().ok_or("as whom?")?.clone_into(&mut step.user),
            "in" => {
                let other = full(words.next().ok_or("in which namespace?")?);
                step.path = step.path.replace("/namespaces/{n}", &format!("/namespaces/{other}"));
            }
            "force" => query.push("force=true".to_owned()),
            "settled" => step.settled = true,
            _ => query.push(
                word.strip_prefix('?').ok_or_else(|| format!("{word:?} is no word"))?.to_owned(),
            ),
        }
    }
    Ok(query)
}

/// Adds the kind and the name that a body does not say.
fn complete(body: &mut Value, version: &str, kind: &str, name: Option<&str>) {
    if body.is_null() {
        *body = json!({});
    }
    for (member, value) in [("apiVersion", version), ("kind", kind)] {
        if body.get(member).is_none() {
            body[member] = value.into();
        }
    }
    let metadata = &body["metadata"];
    if let Some(name) = name
        && metadata.get("name").is_none()
        && metadata.get("generateName").is_none()
    {
        body["metadata"]["name"] = full(name).into();
    }
}

/// The name of a run's own object, unless it says itself where the run is named.
fn full(name: &str) -> String {
    if name.contains('{') { name.to_owned() } else { format!("{name}{{s}}") }
}
