//! Records what a real API server makes of the cases in `host/core/tests/fixtures/cases`:
//! the object with its `managedFields` after our apply, and after a change by somebody else.
//!
//! ```text
//! cargo run -p innkeeper-cluster-tests --bin record-fixtures -- --kubeconfig FILE [--only NAME]
//! ```
//!
//! The server must be one to play with: objects in the namespace `fixtures` are deleted. It
//! must serve MutatingAdmissionPolicy (Kubernetes 1.36, or 1.34 with
//! `--feature-gates=MutatingAdmissionPolicy=true
//! --runtime-config=admissionregistration.k8s.io/v1beta1=true`), which rewrites objects as a
//! mutating webhook would. No controllers are needed.
//!
//! What the server itself takes as a change is recorded next to what we expect, by
//! applying once more; `host/core/tests/settled.rs` holds our judgement against it.

#![expect(clippy::print_stdout, reason = "a program for people at a terminal")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use http::{Method, Request, StatusCode};
use innkeeper_contract::{Kind, Scope};
use innkeeper_core::{Manager, in_sync, known_noops};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How long the server may take for what it does behind our back (a CRD, a policy, a deletion).
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);

/// More applies than the server's controllers write to a new object; a churner changes at each.
const SETTLING_APPLIES_MAX: usize = 3;
/// `managedFields` tell time in seconds.
const CHURN_TIME: Duration = Duration::from_millis(1100);

const JSON: &str = "application/json";
const APPLY_PATCH: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

#[derive(Parser)]
struct Arguments {
    /// The kubeconfig of a server to play with.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Record this case only.
    #[arg(long)]
    only: Option<String>,
    /// The folder of the cases, the recordings and what they need.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/core/tests/fixtures"))]
    fixtures: PathBuf,
}

/// A case, as people write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    about: String,
    desired: Value,
    /// What somebody else made before; ours is then merged into it.
    made: Option<Value>,
    /// Known to be applied once after a restart, needlessly.
    #[serde(default)]
    miss: bool,
    /// The server takes it as a change on every apply.
    #[serde(default)]
    churns: Churns,
    /// A part of the error with which the server refuses it.
    refused: Option<String>,
    #[serde(default)]
    changes: Vec<Change>,
}

/// Whether the server takes an object as changed on every apply, although nothing changes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum Churns {
    /// It does not.
    #[default]
    No,
    /// It does, unless core drops something from the object.
    Dropped,
    /// It does: only versions change, and core leaves the object as it is.
    Left,
}

/// What somebody else does after our apply.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    name: String,
    #[serde(default)]
    about: String,
    /// The field manager.
    #[serde(rename = "as")]
    manager: String,
    #[serde(default)]
    subresource: String,
    /// A merge patch, strategic if that is set.
    merge: Option<Value>,
    #[serde(default)]
    strategic: bool,
    /// A JSON patch.
    json: Option<Value>,
    /// A forced apply of these members.
    apply: Option<Value>,
    /// A PUT of the object as it is, with these members replaced.
    put: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    settled: bool,
    /// The paths that our entry no longer has.
    #[serde(default)]
    lost: Vec<String>,
}

/// What is recorded of a case; read by `host/core/tests/settled.rs`.
#[derive(Serialize)]
struct Fixture<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    about: &'a str,
    kind: Kind,
    manager: String,
    /// As sent, with the digest.
    desired: Value,
    /// As the apply was answered.
    live: Value,
    /// Whether the server takes a second apply as no change.
    unchanged: bool,
    churns: Churns,
    /// Whether we should tell so.
    settled: bool,
    changes: Vec<Changed<'a>>,
}

#[derive(Serialize)]
struct Changed<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    about: &'a str,
    live: Value,
    unchanged: bool,
    settled: bool,
    lost: &'a [String],
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)
        .with_context(|| format!("cannot read {}", arguments.kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let server = Server { client: Client::try_from(config)? };
    prepare(&server, &arguments.fixtures.join("prepare.yaml")).await?;

    let recorded = arguments.fixtures.join("recorded");
    std::fs::create_dir_all(&recorded)?;
    let mut surprises = 0;
    for case in read_cases(&arguments.fixtures.join("cases"))? {
        if arguments.only.as_ref().is_some_and(|only| *only != case.name) {
            continue;
        }
        let (fixture, notes) = match record(&server, &case).await {
            Ok(Some(recorded)) => recorded,
            Ok(None) => {
                println!("{}: refused, as expected", case.name);
                continue;
            }
            Err(error) => {
                surprises += 1;
                println!("{}: not recorded: {error:#}", case.name);
                continue;
            }
        };
        let path = recorded.join(format!("{}.json", case.name));
        std::fs::write(&path, serde_json::to_string_pretty(&fixture)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}: recorded, with {} changes", case.name, fixture.changes.len());
        surprises += notes.len();
        for note in notes {
            println!("    surprise: {note}");
        }
    }
    ensure!(surprises == 0, "{surprises} surprises: the server did not do what the cases say");
    Ok(())
}

fn read_cases(folder: &Path) -> Result<Vec<Case>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let context = || format!("cannot read {}", file.display());
        let text = std::fs::read_to_string(&file).with_context(context)?;
        let mut value: serde_yaml_ng::Value =
            serde_yaml_ng::from_str(&text).with_context(context)?;
        value.apply_merge().with_context(context)?;
        cases.extend(serde_yaml_ng::from_value::<Vec<Case>>(value).with_context(context)?);
    }
    Ok(cases)
}

/// Puts on the server what the cases need, and waits until it works.
async fn prepare(server: &Server, file: &Path) -> Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    for document in serde_yaml_ng::Deserializer::from_str(&text) {
        let object = Value::deserialize(document)?;
        let kind = server.kind_of(&object).await?;
        server.apply(&kind, &object, "fixtures", false).await?;
    }
    let probe = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "probe", "namespace": "fixtures", "labels": {"rewrite": "value"}},
        "data": {"a": "as sent"},
    });
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    wait("the policy fixtures-rewrite does not rewrite objects", async || {
        server.delete(&kind, &probe).await?;
        let answer = server.apply(&kind, &probe, "fixtures", false).await?;
        Ok(answer["data"]["a"] == "rewritten")
    })
    .await?;
    server.delete(&kind, &probe).await?;
    for name in ["Widget", "Gadget"] {
        let object = json!({"apiVersion": "fixtures.innkeeper.dev/v1", "kind": name});
        wait("the custom resources are not served", async || {
            Ok(server.kind_of(&object).await.is_ok())
        })
        .await?;
    }
    Ok(())
}

/// Records one case; `None` if the server refuses it, as it should. Also gives what the server
/// did otherwise than the case says.
async fn record<'a>(server: &Server, case: &'a Case) -> Result<Option<(Fixture<'a>, Vec<String>)>> {
    let manager = Manager::primary("fixtures", "0a0a0a0a-0000-4000-8000-00000000000a");
    let name = manager.to_string();
    let kind = server.kind_of(&case.desired).await?;
    let mut notes = Vec::new();

    let mut desired = case.desired.clone();
    if case.churns == Churns::Dropped {
        server.make(&kind, case).await?;
        if server.settles(&kind, &desired, &name).await? {
            notes.push("it does not churn".to_owned());
        }
    }
    known_noops::drop_known_noops(&mut desired);
    let _digest = match case.made {
        None => in_sync::set_digest(&mut desired),
        Some(_) => in_sync::set_merge_digest(&mut desired, &manager),
    };

    server.make(&kind, case).await?;
    let live = match (server.apply(&kind, &desired, &name, false).await, &case.refused) {
        (Ok(live), None) => live,
        (Ok(_), Some(_)) => bail!("the server should refuse it"),
        (Err(error), Some(refused)) if format!("{error:#}").contains(refused) => return Ok(None),
        (Err(error), _) => return Err(error),
    };
    let unchanged = server.settles(&kind, &desired, &name).await?;
    if unchanged == (case.churns == Churns::Left) {
        notes.push(format!("a second apply changes {}", if unchanged { "nothing" } else { "it" }));
    }
    let again = server.get(&kind, &desired).await?.context("it is gone")?;
    if case.churns == Churns::Left && without_versions(&live) != without_versions(&again) {
        notes.push("a second apply changes more than versions".to_owned());
    }

    let mut changes = Vec::new();
    for change in &case.changes {
        server.make(&kind, case).await?;
        server.apply(&kind, &desired, &name, false).await?;
        server
            .change(&kind, &case.desired, change)
            .await
            .with_context(|| format!("the change {}", change.name))?;
        let live = server.get(&kind, &case.desired).await?.context("it is gone")?;
        let repaired = server.apply(&kind, &desired, &name, true).await?;
        let unchanged = without_managers(&live) == without_managers(&repaired)
            && entry(&live, &name) == entry(&repaired, &name);
        if unchanged != change.settled {
            notes.push(format!(
                "after {}, applying changes {}",
                change.name,
                if unchanged { "nothing" } else { "something" }
            ));
        }
        changes.push(Changed {
            name: &change.name,
            about: &change.about,
            live: steady(live),
            unchanged,
            settled: change.settled,
            lost: &change.lost,
        });
    }
    server.delete(&kind, &case.desired).await?;
    let fixture = Fixture {
        name: &case.name,
        about: &case.about,
        kind,
        manager: name,
        desired,
        live: steady(live),
        unchanged,
        churns: case.churns,
        settled: !case.miss,
        changes,
    };
    Ok(Some((fixture, notes)))
}

fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

/// The object with what differs between recordings of the same thing set to fixed values.
fn steady(mut object: Value) -> Value {
    const TIME: &str = "2026-01-01T00:00:00Z";
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!("0a0a0a0a-0000-4000-8000-00000000000b");
    metadata["resourceVersion"] = json!("7");
    metadata["creationTimestamp"] = json!(TIME);
    for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
        entry["time"] = json!(TIME);
    }
    object
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

fn without_versions(object: &Value) -> Value {
    let mut object = without_managers(object);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("generation");
    }
    object
}

/// The fields that a manager holds by apply.
fn entry<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries
        .iter()
        .find(|entry| entry["manager"] == manager && entry["operation"] == "Apply")
        .map(|entry| &entry["fieldsV1"])
}

/// Waits until something holds, for at most [`PATIENCE`].
async fn wait(problem: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let holds = async {
        while !holds().await? {
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, holds).await {
        Ok(result) => result,
        Err(_) => bail!("{problem} after {} s", PATIENCE.as_secs()),
    }
}

/// The server, by requests as they go over the wire.
struct Server {
    client: Client,
}

impl Server {
    /// The kind of an object, with its plural and scope as the server serves it.
    async fn kind_of(&self, object: &Value) -> Result<Kind> {
        let text = |name: &str| {
            object[name].as_str().with_context(|| format!("an object without {name}: {object}"))
        };
        let (api_version, name) = (text("apiVersion")?, text("kind")?);
        let list = self.request(Method::GET, &root(api_version), JSON, None).await?;
        let resources = list["resources"].as_array().context("no resources")?;
        let resource = resources
            .iter()
            .find(|resource| {
                resource["kind"] == name
                    && resource["name"].as_str().is_some_and(|name| !name.contains('/'))
            })
            .with_context(|| format!("{api_version} {name} is not served"))?;
        let scope = if resource["namespaced"] == true { Scope::Namespaced } else { Scope::Cluster };
        let plural = resource["name"].as_str().unwrap_or_default();
        Ok(Kind { scope, ..Kind::namespaced(api_version, name, plural) })
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value> {
        let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
        let request = Request::builder()
            .method(&method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, content_type)
            .body(body)?;
        self.client.request(request).await.with_context(|| format!("{method} {path}"))
    }

    async fn get(&self, kind: &Kind, object: &Value) -> Result<Option<Value>> {
        match self.request(Method::GET, &path(kind, object), JSON, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object with force.
    async fn apply(
        &self,
        kind: &Kind,
        object: &Value,
        manager: &str,
        dry_run: bool,
    ) -> Result<Value> {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldManager={manager}&force=true{dry_run}", path(kind, object));
        self.request(Method::PATCH, &path, APPLY_PATCH, Some(object)).await
    }

    /// Whether applying an object again changes nothing in the end, not even its version. The server's
    /// own controllers may write in between (the status of a new CustomResourceDefinition).
    async fn settles(&self, kind: &Kind, object: &Value, manager: &str) -> Result<bool> {
        let mut last = self.apply(kind, object, manager, false).await?;
        for _ in 0..SETTLING_APPLIES_MAX {
            // Within one second even a churner is written with the same bytes, which is no write.
            tokio::time::sleep(CHURN_TIME).await;
            let next = self.apply(kind, object, manager, false).await?;
            if version(&next) == version(&last) {
                return Ok(true);
            }
            last = next;
        }
        Ok(false)
    }

    /// Leaves no object of the name but the one that somebody else is to have made.
    async fn make(&self, kind: &Kind, case: &Case) -> Result<()> {
        self.delete(kind, &case.desired).await?;
        if let Some(made) = &case.made {
            let path = path(kind, made);
            let collection = path.rsplit_once('/').map_or(path.as_str(), |(path, _)| path);
            let path = format!("{collection}?fieldManager=them");
            self.request(Method::POST, &path, JSON, Some(made)).await?;
        }
        Ok(())
    }

    async fn change(&self, kind: &Kind, object: &Value, change: &Change) -> Result<()> {
        let mut target = path(kind, object);
        if !change.subresource.is_empty() {
            target = format!("{target}/{}", change.subresource);
        }
        let target = format!("{target}?fieldManager={}", change.manager);
        let live = self.get(kind, object).await?.context("it is gone")?;
        match (&change.merge, &change.json, &change.apply, &change.put) {
            (Some(patch), None, None, None) => {
                let content_type = if change.strategic { STRATEGIC_PATCH } else { MERGE_PATCH };
                self.request(Method::PATCH, &target, content_type, Some(patch)).await?;
            }
            (None, Some(patch), None, None) => {
                self.request(Method::PATCH, &target, JSON_PATCH, Some(patch)).await?;
            }
            (None, None, Some(members), None) => {
                let mut applied = members.clone();
                for name in ["apiVersion", "kind"] {
                    applied[name] = object[name].clone();
                }
                for name in ["name", "namespace"] {
                    applied["metadata"][name] = live["metadata"][name].clone();
                }
                self.apply(kind, &applied, &change.manager, false).await?;
            }
            (None, None, None, Some(members)) => {
                let mut whole = live;
                for (name, value) in members {
                    whole[name] = value.clone();
                }
                self.request(Method::PUT, &target, JSON, Some(&whole)).await?;
            }
            _ => bail!("a change is one of merge, json, apply and put"),
        }
        Ok(())
    }

    /// Deletes an object and waits until it is gone; what holds it back is taken off.
    async fn delete(&self, kind: &Kind, object: &Value) -> Result<()> {
        let path = path(kind, object);
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        match self.request(Method::DELETE, &path, JSON, Some(&options)).await {
            Err(error) if is_not_found(&error) => return Ok(()),
            answer => answer?,
        };
        wait("it is not gone", async || {
            let Some(mut live) = self.get(kind, object).await? else { return Ok(true) };
            if kind.kind == "Namespace" {
                live["spec"]["finalizers"] = json!([]);
                self.request(Method::PUT, &format!("{path}/finalize"), JSON, Some(&live)).await?;
            } else if kind.kind != "CustomResourceDefinition" {
                let released = json!({"metadata": {"finalizers": null}});
                match self.request(Method::PATCH, &path, MERGE_PATCH, Some(&released)).await {
                    Err(error) if is_not_found(&error) => return Ok(true),
                    answer => answer?,
                };
            }
            Ok(false)
        })
        .await
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<kube::Error>(),
        Some(kube::Error::Api(status)) if status.code == StatusCode::NOT_FOUND.as_u16()
    )
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}

fn path(kind: &Kind, object: &Value) -> String {
    let metadata = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    let root = root(&kind.api_version);
    let namespace = match kind.scope {
        Scope::Namespaced => format!("/namespaces/{}", metadata("namespace")),
        Scope::Cluster => String::new(),
    };
    format!("{root}{namespace}/{}/{}", kind.plural, metadata("name"))
}
