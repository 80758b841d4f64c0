//! What else is wrong in the cluster when a case fails: the likely causes, in a few lines.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::backend::Backend;
use super::case::Case;

/// The most lines of each part.
const LINES_MAX: usize = 8;

/// Conditions of a Module that are False as long as nothing is wrong.
const FALSE_WHEN_WELL: [&str; 2] = ["Held", "Blocked"];

/// The reason of a module whose policy gets no requests.
const POLICY_NOT_ACTIVE: &str = "PolicyNotActive";

/// A module, of a Module object or of the operator of a lab.
struct ModuleState {
    name: String,
    /// Group and version, and kind, of the primaries.
    primary: Option<(String, String)>,
    conditions: Vec<ConditionText>,
}

/// A condition as texts.
struct ConditionText {
    type_: String,
    status: String,
    reason: String,
    message: String,
}

impl ConditionText {
    fn all_of(object: &Value) -> Vec<Self> {
        let list = object["status"]["conditions"].as_array().into_iter().flatten();
        let conditions = list.map(|one| Self {
            type_: text(&one["type"]),
            status: text(&one["status"]),
            reason: text(&one["reason"]),
            message: text(&one["message"]),
        });
        conditions.collect()
    }

    /// Whether the condition of a Module says that something is wrong. `Healthy` is Unknown before
    /// the first reconcile.
    fn is_problem(&self) -> bool {
        let well = if FALSE_WHEN_WELL.contains(&self.type_.as_str()) { "False" } else { "True" };
        self.status != well && !(self.type_ == "Healthy" && self.status == "Unknown")
    }
}

/// The likely causes of a failed case: Modules, primaries and Warning Events. Empty if there are
/// none. What cannot be read is left out.
pub(super) async fn of_case(backend: &Backend, case: &Case, namespace: &str) -> String {
    let modules = modules(backend).await;
    let (unsynced, messages) = unsynced(backend, &modules, case, namespace).await;
    section("Modules with problems", &module_lines(&modules))
        + &section("primaries that are not synced", &unsynced)
        + &section("Warning Events", &warnings(backend, namespace, &messages).await)
}

/// The conditions of Modules that are not as they should be.
pub async fn of_modules(backend: &Backend) -> String {
    section("Modules with problems", &module_lines(&modules(backend).await))
}

/// The namespaces in which objects of this kind and name exist.
pub(super) async fn elsewhere(backend: &Backend, expected: &Value) -> String {
    let name = text(&expected["metadata"]["name"]);
    let mut any = expected.clone();
    if let Some(metadata) = any["metadata"].as_object_mut() {
        metadata.remove("name");
        metadata.remove("namespace");
    }
    let Ok(path) = backend.api().path_of(&any, "").await else { return String::new() };
    let found = backend.api().list(&path).await.unwrap_or_default();
    let same = found.iter().filter(|one| !name.is_empty() && one["metadata"]["name"] == *name);
    let namespaces: Vec<String> = same.map(|one| text(&one["metadata"]["namespace"])).collect();
    let namespaces: Vec<_> = namespaces.into_iter().filter(|one| !one.is_empty()).collect();
    if namespaces.is_empty() {
        return String::new();
    }
    format!("{} {name} exists in namespace {}\n", text(&expected["kind"]), namespaces.join(", "))
}

async fn modules(backend: &Backend) -> Vec<ModuleState> {
    if let Some(lab) = backend.lab() {
        let modules = lab.running().operator().modules();
        let state = |one: innkeeper_operator::ReportedModule| ModuleState {
            primary: one.primary.map(|kind| (kind.api_version.clone(), kind.kind.clone())),
            conditions: one
                .conditions
                .into_iter()
                // The operator does not know that the lab sends requests to the policy.
                .filter(|condition| {
                    condition.reason != POLICY_NOT_ACTIVE || !lab.reviews_with(&one.name)
                })
                .map(|one| ConditionText {
                    type_: one.type_,
                    status: one.status.as_str().to_owned(),
                    reason: one.reason,
                    message: one.message,
                })
                .collect(),
            name: one.name,
        };
        return modules.into_iter().map(state).collect();
    }
    let api = backend.api();
    let Ok(resource) = api.resource("innkeeper.dev/v1alpha1", "Module").await else {
        return Vec::new();
    };
    let found = api.list(&resource.path("", "")).await.unwrap_or_default();
    let state = |one: &Value| {
        let primary = &one["status"]["primary"];
        let kind = (text(&primary["apiVersion"]), text(&primary["kind"]));
        ModuleState {
            name: text(&one["metadata"]["name"]),
            primary: Some(kind).filter(|(_, kind)| !kind.is_empty()),
            conditions: ConditionText::all_of(one),
        }
    };
    found.iter().map(state).collect()
}

fn module_lines(modules: &[ModuleState]) -> Vec<String> {
    let mut lines = Vec::new();
    for module in modules {
        // Several conditions of a module often give one message.
        let mut messages = BTreeSet::new();
        let problems = module.conditions.iter().filter(|one| one.is_problem());
        for one in problems.filter(|one| messages.insert(&one.message)) {
            let ConditionText { type_, status, reason, message } = one;
            lines.push(format!("{}: {type_}={status} {reason}: {message}", module.name));
        }
    }
    lines
}

/// The primaries whose `Synced` is not True, and the messages of these conditions.
async fn unsynced(
    backend: &Backend,
    modules: &[ModuleState],
    case: &Case,
    namespace: &str,
) -> (Vec<String>, Vec<String>) {
    let applied: BTreeSet<(String, String)> = case
        .steps
        .iter()
        .flat_map(|step| &step.apply)
        .map(|one| (text(&one.value["kind"]), text(&one.value["metadata"]["name"])))
        .collect();
    let kinds: BTreeSet<_> = modules.iter().filter_map(|one| one.primary.as_ref()).collect();
    let (mut lines, mut messages) = (Vec::new(), Vec::new());
    for (api_version, kind) in kinds {
        let Ok(resource) = backend.api().resource(api_version, kind).await else { continue };
        for object in backend.api().list(&resource.path("", "")).await.unwrap_or_default() {
            let (name, home) =
                (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
            let is_of_case = backend.lab().is_some()
                || home == namespace
                || applied.contains(&(kind.clone(), name.clone()));
            let conditions = ConditionText::all_of(&object);
            let synced =
                conditions.iter().find(|one| one.type_ == "Synced" && one.status != "True");
            if let Some(ConditionText { status, reason, message, .. }) =
                synced.filter(|_| is_of_case)
            {
                let id = object_id(kind, &home, &name);
                lines.push(format!("{id}: Synced={status} {reason}: {message}"));
                messages.push(message.clone());
            }
        }
    }
    (lines, messages)
}

/// The Warning Events, the latest last, except those that only repeat one of `known`.
async fn warnings(backend: &Backend, namespace: &str, known: &[String]) -> Vec<String> {
    let Ok(resource) = backend.api().resource("v1", "Event").await else { return Vec::new() };
    // The Events of a real cluster are mostly about others.
    let place = if backend.lab().is_some() { "" } else { namespace };
    let events = backend.api().list(&resource.path(place, "")).await.unwrap_or_default();
    let mut lines: Vec<(String, String)> = Vec::new();
    for event in events.iter().filter(|one| one["type"] == "Warning") {
        let message = text(&event["message"]);
        if known.contains(&message) {
            continue;
        }
        let about = &event["involvedObject"];
        let (kind, home, name) =
            (text(&about["kind"]), text(&about["namespace"]), text(&about["name"]));
        let id = object_id(&kind, &home, &name);
        let line = format!("{id}: {}: {message}", text(&event["reason"]));
        let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"]];
        let time = times.into_iter().chain([&event["eventTime"]]).find(|one| one.is_string());
        if !lines.iter().any(|(_, other)| *other == line) {
            lines.push((time.map(text).unwrap_or_default(), line));
        }
    }
    lines.sort();
    let skipped = lines.len().saturating_sub(LINES_MAX);
    lines.into_iter().skip(skipped).map(|(_, line)| line).collect()
}

fn object_id(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        format!("{kind} {name}")
    } else {
        format!("{kind} {namespace}/{name}")
    }
}

/// A heading with its lines; empty without lines.
fn section(heading: &str, lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut out = format!("{heading}:\n");
    for line in lines.iter().take(LINES_MAX) {
        // A message may have several lines; the first one names the problem.
        let first = line.lines().next().unwrap_or_default().trim_end_matches([':', ' ']);
        let _ = writeln!(out, "  {first}");
    }
    if lines.len() > LINES_MAX {
        let _ = writeln!(out, "  and {} more", lines.len() - LINES_MAX);
    }
    out
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
