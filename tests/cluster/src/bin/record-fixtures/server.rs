//! The server, by requests as they go over the wire.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::{Method, Request, StatusCode};
use innkeeper_contract::{Kind, Scope};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::case::{Case, Change};
use crate::object::version;

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

/// Puts on the server what the cases need, and waits until it works.
pub(crate) async fn prepare(server: &Server, file: &Path) -> Result<()> {
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
pub(crate) struct Server {
    pub(crate) client: Client,
}

impl Server {
    /// The kind of an object, with its plural and scope as the server serves it.
    pub(crate) async fn kind_of(&self, object: &Value) -> Result<Kind> {
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

    pub(crate) async fn request(
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

    pub(crate) async fn get(&self, kind: &Kind, object: &Value) -> Result<Option<Value>> {
        match self.request(Method::GET, &path(kind, object), JSON, None).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object with force.
    pub(crate) async fn apply(
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

    /// Whether applying an object again changes nothing in the end, not even its version. The
    /// server's own controllers may write in between (status of a new CustomResourceDefinition).
    pub(crate) async fn settles(&self, kind: &Kind, object: &Value, manager: &str) -> Result<bool> {
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
    pub(crate) async fn make(&self, kind: &Kind, case: &Case) -> Result<()> {
        self.delete(kind, &case.desired).await?;
        if let Some(made) = &case.made {
            let path = path(kind, made);
            let collection = path.rsplit_once('/').map_or(path.as_str(), |(path, _)| path);
            let path = format!("{collection}?fieldManager=them");
            self.request(Method::POST, &path, JSON, Some(made)).await?;
        }
        Ok(())
    }

    pub(crate) async fn change(&self, kind: &Kind, object: &Value, change: &Change) -> Result<()> {
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
    pub(crate) async fn delete(&self, kind: &Kind, object: &Value) -> Result<()> {
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

pub(crate) fn path(kind: &Kind, object: &Value) -> String {
    let metadata = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    let root = root(&kind.api_version);
    let namespace = match kind.scope {
        Scope::Namespaced => format!("/namespaces/{}", metadata("namespace")),
        Scope::Cluster => String::new(),
    };
    format!("{root}{namespace}/{}/{}", kind.plural, metadata("name"))
}
