//! Writes what the simulator knows of the built-in kinds: from the discovery and OpenAPI v3
//! documents of a real API server, and from Go's own types for what these do not say (which zero
//! values are left out).

mod lines;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::{ControlPlane, Options, Programs};
use serde_json::{Map, Value, json};

use crate::command::root;
use crate::progress::say;

/// The groups that are simulated, as in URLs.
const GROUPS: [&str; 22] = [
    "api/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apiregistration.k8s.io/v1",
    "apis/apps/v1",
    "apis/authentication.k8s.io/v1",
    "apis/authorization.k8s.io/v1",
    "apis/autoscaling/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/certificates.k8s.io/v1",
    "apis/coordination.k8s.io/v1",
    "apis/discovery.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/flowcontrol.apiserver.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/node.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/resource.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/storage.k8s.io/v1",
];

/// Where the table is.
const FILE: &str = "host/simulator/data/kubernetes.json";
/// Where that is what only people and some clients need.
const TEXTS: &str = "host/simulator/data/texts.json";

/// What is kept of a schema: what is needed to merge, validate and default.
const KEPT: [&str; 14] = [
    "type",
    "format",
    "required",
    "default",
    "enum",
    "nullable",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-unions",
];

/// Types that are no kinds of a group, and are sent all the same.
const MORE: [&str; 4] = [
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];

const REFERENCE: &str = "#/components/schemas/";

/// Starts a control plane, reads what it publishes, and writes the table.
///
/// # Errors
/// If the control plane does not start, or a file cannot be written.
pub(crate) fn run() -> Result<()> {
    let plane = ControlPlane::start_and_tell(&Options::default(), &mut say)?;
    let raw = |path: &str| raw(plane.kubeconfig(), path);
    let mut resources = BTreeMap::new();
    let mut kinds = BTreeMap::new();
    let mut types: BTreeMap<String, Value> = BTreeMap::new();
    let mut wanted: BTreeSet<String> = MORE.map(str::to_owned).into();
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    for group in GROUPS {
        let list = raw(&format!("/{group}"))?;
        let version = list["groupVersion"].as_str().unwrap_or_default().to_owned();
        resources.insert(version, list["resources"].clone());
        let document = raw(&format!("/openapi/v3/{group}"))?;
        let schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
        for (name, schema) in schemas {
            for id in schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten() {
                let text = |member: &str| id[member].as_str().unwrap_or_default();
                let (of, version) = (text("group"), text("version"));
                let of = if of.is_empty() { version.to_owned() } else { format!("{of}/{version}") };
                // Options and the like belong to every group; their one type is enough.
                if group.ends_with(&of) && !name.starts_with("io.k8s.apimachinery") {
                    kinds.insert(format!("{of} {}", text("kind")), name.clone());
                    wanted.insert(name.clone());
                }
            }
            all.insert(name, schema);
        }
    }
    while let Some(name) = wanted.pop_first() {
        let Some(schema) = all.get(&name) else { bail!("the document names no type {name}") };
        let mut found = BTreeSet::new();
        let reduced = reduce(schema, &mut found);
        types.insert(name, reduced);
        wanted.extend(found.into_iter().filter(|other| !types.contains_key(other)));
    }
    let go = go()?;
    for (name, schema) in &mut types {
        if let Some(fields) = go["fields"].get(name) {
            schema["x-go"] = fields.clone();
        }
    }
    let names: Vec<&String> = types.keys().collect();
    write(TEXTS, &texts::render(&all, &names, &go, &groups(&raw("/apis")?))?)?;
    let text = lines::render(&[
        ("groups", groups(&raw("/apis")?)),
        ("resources", to_map(&resources)),
        ("kinds", to_map(&kinds)),
        ("types", to_map(&types)),
    ])?;
    write(FILE, &text)
}

fn write(file: &str, text: &str) -> Result<()> {
    let path = root().join(file);
    std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    say(&format!("wrote {file}, {} KiB", text.len() / 1024));
    Ok(())
}

fn to_map<V: serde::Serialize>(map: &BTreeMap<String, V>) -> Value {
    json!(map)
}

/// The groups that are simulated, of all that the server has, with the versions that are.
fn groups(list: &Value) -> Value {
    let mut found = Map::new();
    for group in list["groups"].as_array().into_iter().flatten() {
        let simulated = |version: &&Value| {
            let id = version["groupVersion"].as_str().unwrap_or_default();
            GROUPS.contains(&format!("apis/{id}").as_str())
        };
        let versions = group["versions"].as_array().into_iter().flatten();
        let versions: Vec<Value> = versions.filter(simulated).cloned().collect();
        if let Some(first) = versions.first() {
            let mut group = group.clone();
            group["preferredVersion"] = first.clone();
            group["versions"] = versions.into();
            found.insert(group["name"].as_str().unwrap_or_default().to_owned(), group);
        }
    }
    Value::Object(found)
}

/// What is kept of `schema`; the types it names go to `found`.
fn reduce(schema: &Value, found: &mut BTreeSet<String>) -> Value {
    let mut kept = Map::new();
    let only = schema["allOf"].as_array().filter(|all| all.len() == 1).map(|all| &all[0]["$ref"]);
    if let Some(name) = only.unwrap_or(&schema["$ref"]).as_str() {
        let name = name.trim_start_matches(REFERENCE);
        found.insert(name.to_owned());
        kept.insert("$ref".to_owned(), name.into());
    }
    for name in KEPT {
        if let Some(value) = schema.get(name) {
            kept.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let properties: Map<String, Value> =
            properties.iter().map(|(name, one)| (name.clone(), reduce(one, found))).collect();
        kept.insert("properties".to_owned(), Value::Object(properties));
    }
    for name in ["items", "additionalProperties"] {
        match &schema[name] {
            Value::Null => {}
            Value::Bool(value) => {
                kept.insert(name.to_owned(), (*value).into());
            }
            inner => {
                kept.insert(name.to_owned(), reduce(inner, found));
            }
        }
    }
    Value::Object(kept)
}

fn raw(kubeconfig: &Path, path: &str) -> Result<Value> {
    let programs = Programs::find(&mut say)?;
    let mut command = programs.command("kubectl")?;
    command.env("KUBECONFIG", kubeconfig).args(["get", "--raw", path]);
    let output = command.output().context("kubectl")?;
    if !output.status.success() {
        bail!("GET {path}: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("GET {path}"))
}

/// What Go's own types say.
fn go() -> Result<Value> {
    let mut command = Command::new("go");
    command.current_dir(root().join("tests/cluster/controlplane")).args(["run", "./fields"]);
    let output = command.output().context("running go")?;
    if !output.status.success() {
        bail!("go run ./fields: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
