//! A client with all rights, for what a test itself does to the cluster.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use innkeeper_controlplane::Kubeconfig;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch,
    PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig as KubeconfigFile};
use kube::discovery::{Scope, pinned_kind};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{ControlPlane, Kind, eventually};

/// Field manager of everything that a test applies.
const MANAGER: &str = "test";
/// What the API server answers, with 429, while it makes the storage of a changed definition.
const STORAGE_NOT_READY: &str = "storage is (re)initializing";
/// How often a request is repeated while the storage is not ready.
const STORAGE_TRIES: usize = 30;
/// The pause before each repetition; the server asks for one second.
const STORAGE_WAIT: Duration = Duration::from_secs(1);
/// For which time a token is asked.
const TOKEN_SECONDS: u32 = 6 * 3600;
/// Within which time the server serves what a CRD defines.
const SERVED: Duration = Duration::from_mins(2);

/// A client with the rights of a kubeconfig, usually all. Objects are JSON values.
///
/// `namespace` and `name` are plain texts; the namespace is ignored for kinds that have
/// none.
#[derive(Clone)]
pub struct Admin {
    client: kube::Client,
    kinds: Arc<Mutex<Kinds>>,
}

/// What the server says of kinds, by group and version, and kind.
type Kinds = BTreeMap<(String, String), (ApiResource, Scope)>;

impl Admin {
    /// A client with the rights of the admin of `plane`.
    ///
    /// # Errors
    /// If the kubeconfig of the control plane cannot be used.
    pub async fn of(plane: &ControlPlane) -> Result<Self> {
        Self::connect(plane.kubeconfig()).await
    }

    /// A client with the rights of the kubeconfig at `path`.
    ///
    /// # Errors
    /// If the file is no kubeconfig of a cluster.
    pub async fn connect(path: &Path) -> Result<Self> {
        Ok(Self { client: client(path).await?, kinds: Arc::default() })
    }

    /// The client underneath.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Applies every document of `yaml`, by force, as the field manager `test`. Gives the
    /// objects as the server returned them.
    ///
    /// # Errors
    /// If `yaml` has an object that the API server does not know or refuses.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<Value>> {
        self.apply_as(MANAGER, true, yaml).await
    }

    /// Applies every document of `yaml` as another field manager, by force or not.
    ///
    /// # Errors
    /// If `yaml` has an object that the API server does not know or refuses, as for a conflict.
    pub async fn apply_as(&self, manager: &str, force: bool, yaml: &str) -> Result<Vec<Value>> {
        let mut applied = Vec::new();
        for object in documents(yaml)? {
            let (api, name) = self.api_of(&object).await?;
            let mut params = PatchParams::apply(manager);
            params.force = force;
            let patch = Patch::Apply(&object);
            let answer = answered(|| api.patch(&name, &params, &patch))
                .await
                .with_context(|| format!("applying {name} as {manager}"))?;
            applied.push(serde_json::to_value(answer)?);
        }
        Ok(applied)
    }

    /// Applies every document of `yaml` that names no namespace in `namespace`, as `kubectl apply
    /// --namespace` does, and lets the server refuse a member that it does not know.
    ///
    /// # Errors
    /// If `yaml` has an object that the API server does not know or refuses.
    pub async fn apply_in(&self, namespace: &str, yaml: &str) -> Result<Vec<Value>> {
        let mut applied = Vec::new();
        for mut object in documents(yaml)? {
            if object["metadata"]["namespace"].is_null() {
                object["metadata"]["namespace"] = namespace.into();
            }
            let (api, name) = self.api_of(&object).await?;
            let params = PatchParams::apply(MANAGER).force().validation_strict();
            let patch = Patch::Apply(&object);
            let answer = answered(|| api.patch(&name, &params, &patch))
                .await
                .with_context(|| format!("applying {name} in {namespace}"))?;
            applied.push(serde_json::to_value(answer)?);
        }
        Ok(applied)
    }

    /// Creates the one document of `yaml` by POST.
    ///
    /// # Errors
    /// If `yaml` has no document, or the API server refuses the object.
    pub async fn create(&self, yaml: &str) -> Result<Value> {
        let mut objects = documents(yaml)?;
        let Some(object) = objects.pop() else { bail!("no document to create in: {yaml}") };
        let (api, name) = self.api_of(&object).await?;
        let object: DynamicObject = serde_json::from_value(object)?;
        let answer = api
            .create(&PostParams::default(), &object)
            .await
            .with_context(|| format!("creating {name}"))?;
        Ok(serde_json::to_value(answer)?)
    }

    /// The object, or `None` if it is not there.
    ///
    /// # Errors
    /// If discovery has no such kind, or the API server refuses the request.
    pub async fn get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Option<Value>> {
        let api = self.api(kind, namespace).await?;
        let object = answered(|| api.get_opt(name))
            .await
            .with_context(|| format!("getting {kind} {namespace}/{name}"))?;
        Ok(object.map(serde_json::to_value).transpose()?)
    }

    /// The object.
    ///
    /// # Errors
    /// Also if it is not there.
    pub async fn must_get(&self, kind: Kind, namespace: &str, name: &str) -> Result<Value> {
        let object = self.get(kind, namespace, name).await?;
        object.ok_or_else(|| anyhow!("{kind} {namespace}/{name} is not there"))
    }

    /// All objects of the kind, in `namespace` or (if that is empty) everywhere.
    ///
    /// # Errors
    /// If discovery has no such kind, or the API server refuses the request.
    pub async fn list(&self, kind: Kind, namespace: &str) -> Result<Vec<Value>> {
        let api = self.api(kind, namespace).await?;
        let params = ListParams::default();
        let list = answered(|| api.list(&params))
            .await
            .with_context(|| format!("listing {kind} in {namespace:?}"))?;
        list.items.into_iter().map(|object| Ok(serde_json::to_value(object)?)).collect()
    }

    /// Sends a JSON merge patch as the field manager `manager`: leaves an Update entry, as `kubectl
    /// edit` does.
    ///
    /// # Errors
    /// If there is no such object, or the API server refuses the patch.
    pub async fn merge(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        manager: &str,
        patch: &Value,
    ) -> Result<Value> {
        let api = self.api(kind, namespace).await?;
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(patch);
        let answer = answered(|| api.patch(name, &params, &patch))
            .await
            .with_context(|| format!("patching {kind} {namespace}/{name}"))?;
        Ok(serde_json::to_value(answer)?)
    }

    /// Sends a JSON merge patch as a user with `kubectl edit` does.
    ///
    /// # Errors
    /// If there is no such object, or the API server refuses the patch.
    pub async fn edit(&self, at: (Kind, &str, &str), patch: &Value) -> Result<Value> {
        self.merge(at.0, at.1, at.2, "kubectl-edit", patch).await
    }

    /// Sends a JSON merge patch of the status.
    ///
    /// # Errors
    /// If there is no such object, or the API server refuses the patch.
    pub async fn merge_status(
        &self,
        kind: Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value> {
        let api = self.api(kind, namespace).await?;
        let answer = api
            .patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .with_context(|| format!("patching the status of {kind} {namespace}/{name}"))?;
        Ok(serde_json::to_value(answer)?)
    }

    /// Deletes the object in the background, and does not wait. Not an error if it is not
    /// there.
    ///
    /// # Errors
    /// If discovery has no such kind, or the API server refuses the request.
    pub async fn delete(&self, kind: Kind, namespace: &str, name: &str) -> Result<()> {
        let api = self.api(kind, namespace).await?;
        match api.delete(name, &DeleteParams::background()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => {
                Err(anyhow!(error).context(format!("deleting {kind} {namespace}/{name}")))
            }
        }
    }

    /// Waits until the object is there and `condition` holds for it, and gives it.
    ///
    /// # Errors
    /// `what`, and the object as it was last, after `bound`.
    pub async fn until(
        &self,
        what: &str,
        bound: Duration,
        (kind, namespace, name): (Kind, &str, &str),
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        eventually(what, bound, async || {
            Ok(match self.get(kind, namespace, name).await? {
                Some(object) if condition(&object) => Ok(object),
                Some(object) => Err(format!("{kind} {namespace}/{name} is {object:#}")),
                None => Err(format!("{kind} {namespace}/{name} is not there")),
            })
        })
        .await
    }

    /// Waits until the object is not there.
    ///
    /// # Errors
    /// If the object is still there after `bound`.
    pub async fn until_gone(
        &self,
        bound: Duration,
        (kind, namespace, name): (Kind, &str, &str),
    ) -> Result<()> {
        eventually("the object goes", bound, async || {
            Ok(match self.get(kind, namespace, name).await? {
                None => Ok(()),
                Some(object) => Err(format!("{kind} {namespace}/{name} is {object:#}")),
            })
        })
        .await
    }

    /// Makes a namespace with a name that the server completes from `prefix`.
    ///
    /// # Errors
    /// If the API server refuses the namespace.
    pub async fn namespace(&self, prefix: &str) -> Result<String> {
        let api = self.api(Kind::NAMESPACE, "").await?;
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "generateName": format!("{prefix}-") },
        });
        let object: DynamicObject = serde_json::from_value(object)?;
        let answer = api.create(&PostParams::default(), &object).await?;
        answer.metadata.name.ok_or_else(|| anyhow!("the server gave the namespace no name"))
    }

    /// Applies the CRDs, then the base of `deploy/`, and waits until the CRDs are served.
    ///
    /// # Errors
    /// If the API server refuses an object, or does not serve a definition in time.
    pub async fn install(&self) -> Result<()> {
        for folder in ["crds", "base"] {
            for yaml in manifests(&crate::host::root().join("deploy").join(folder))? {
                for object in self.apply(&yaml).await? {
                    if object["kind"] == Kind::CRD.kind {
                        self.until_established(&object).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits until the CRD is established, and what it defines is found by discovery too: the
    /// server says the first a moment before the second.
    ///
    /// # Errors
    /// If the API server does not serve the kind in time.
    pub async fn until_established(&self, crd: &Value) -> Result<()> {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("CRD {name} is Established");
        let crd = self
            .until(&what, SERVED, (Kind::CRD, "", name), |crd| {
                condition(crd, "Established") == Some("True")
            })
            .await?;
        let text = |pointer| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let version = version["name"].as_str().unwrap_or_default();
            let gvk = GroupVersionKind::gvk(group, version, kind);
            eventually(
                &format!("{group}/{version} {kind} is found by discovery"),
                SERVED,
                async || {
                    Ok(pinned_kind(&self.client, &gvk)
                        .await
                        .map(drop)
                        .map_err(|error| error.to_string()))
                },
            )
            .await?;
        }
        Ok(())
    }

    /// Writes a kubeconfig at `path` whose user is the `ServiceAccount`, by a token for six hours.
    ///
    /// # Errors
    /// If the account does not exist, or the file cannot be written.
    pub async fn account_kubeconfig(
        &self,
        server: Kubeconfig,
        account: (&str, &str),
        path: &Path,
    ) -> Result<()> {
        let token = self.token(account, &[]).await?;
        Ok(server.with_token(&token).write(path)?)
    }

    /// A token of the `ServiceAccount` for six hours, for these audiences; for the API server if
    /// there are none.
    ///
    /// # Errors
    /// If the account does not exist, or the API server refuses the request.
    pub async fn token(
        &self,
        (namespace, name): (&str, &str),
        audiences: &[&str],
    ) -> Result<String> {
        let uri = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": TOKEN_SECONDS, "audiences": audiences },
        });
        let request = http::Request::post(uri)
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&body)?)?;
        let answer: Value = self
            .client
            .request(request)
            .await
            .with_context(|| format!("a token for ServiceAccount {namespace}/{name}"))?;
        answer["status"]["token"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| anyhow!("no token in the answer for {namespace}/{name}"))
    }

    /// An API for the kind in the namespace (everywhere if that is empty).
    async fn api(&self, kind: Kind, namespace: &str) -> Result<Api<DynamicObject>> {
        self.api_for(kind.api_version, kind.kind, namespace).await
    }

    async fn api_of(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = text("/metadata/name");
        let namespace = text("/metadata/namespace");
        let api = self.api_for(text("/apiVersion"), text("/kind"), namespace).await?;
        Ok((api, name.to_owned()))
    }

    async fn api_for(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Api<DynamicObject>> {
        let key = (api_version.to_owned(), kind.to_owned());
        let known = self.lock().get(&key).cloned();
        let (resource, scope) = if let Some(known) = known {
            known
        } else {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let (resource, capabilities) = pinned_kind(&self.client, &gvk)
                .await
                .with_context(|| format!("{api_version} {kind} is not served"))?;
            self.lock().insert(key, (resource.clone(), capabilities.scope.clone()));
            (resource, capabilities.scope)
        };
        let client = self.client.clone();
        Ok(if scope == Scope::Cluster || namespace.is_empty() {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, namespace, &resource)
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kinds> {
        self.kinds.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Repeats a request while the API server makes the storage of a changed definition. Every other
/// error, also any other 429, is returned at once.
async fn answered<T, F: Future<Output = Result<T, kube::Error>>>(
    mut ask: impl FnMut() -> F,
) -> Result<T, kube::Error> {
    for _ in 0..STORAGE_TRIES {
        match ask().await {
            Err(kube::Error::Api(status)) if may_succeed_later(&status) => {
                tokio::time::sleep(STORAGE_WAIT).await;
            }
            answer => return answer,
        }
    }
    ask().await
}

/// Whether the same request may succeed later: the storage of a kind is not ready, or the API
/// server gave the request up, as it does after 34 s on a machine that stands still for so long.
fn may_succeed_later(status: &kube::core::Status) -> bool {
    (status.code == 429 && status.message.contains(STORAGE_NOT_READY)) || status.code == 504
}

/// The name of an object; empty if it has none.
pub fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// A client for the kubeconfig at `path`, which repeats nothing by itself.
pub(crate) async fn client(path: &Path) -> Result<kube::Client> {
    let file = KubeconfigFile::read_from(path)
        .with_context(|| format!("the kubeconfig {}", path.display()))?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

/// The status (`True`, `False`, `Unknown`) of a condition of an object.
pub fn condition<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == name)?["status"].as_str()
}

/// The documents of a YAML text, empty ones left out.
fn documents(yaml: &str) -> Result<Vec<Value>> {
    serde_yaml_ng::Deserializer::from_str(yaml)
        .map(Value::deserialize)
        .filter(|document| !matches!(document, Ok(Value::Null)))
        .collect::<Result<_, _>>()
        .with_context(|| format!("reading YAML:\n{yaml}"))
}

/// The texts of the manifests in a folder, by name, without the kustomization.
fn manifests(folder: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let yaml = path.extension().is_some_and(|extension| extension == "yaml");
        if yaml && path.file_name().is_some_and(|name| name != "kustomization.yaml") {
            paths.push(path);
        }
    }
    // Namespaces have to come before what is in them.
    paths.sort_by_key(|path| (!path.ends_with("namespaces.yaml"), path.clone()));
    if paths.is_empty() {
        bail!("{} holds no manifest", folder.display());
    }
    paths
        .iter()
        .map(|path| fs::read_to_string(path).with_context(|| path.display().to_string()))
        .collect()
}
