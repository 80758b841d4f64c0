//! What the cluster has: the host's definitions, Modules with policies, RoleBindings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::api::Api;
use crate::eventually::eventually;

/// The namespace of the Modules' accounts and components.
const MODULES: &str = "innkeeper-modules";
const RBAC: &str = "rbac.authorization.k8s.io";
/// How long a Module may take until its policy reviews: the host compiles it.
const ACTIVE: Duration = Duration::from_mins(5);
/// How long the host may take to review all existing objects: it reviews at most 100 a second.
const AUDITED: Duration = Duration::from_mins(10);
/// How many namespaces have the RoleBindings.
const NAMESPACES: usize = 100;

/// A policy of the bench.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name of its Module.
    pub name: String,
    /// The name of its component.
    component: &'static str,
    parameters: Value,
    /// `spec.policy` of its Module.
    spec: Value,
}

impl Policy {
    /// Policies of different components: each a guest with a section that makes it unique.
    pub fn many(count: usize) -> Vec<Self> {
        let of = |number: usize| Self {
            name: format!("labels-{number:02}"),
            component: "required-labels",
            parameters: json!({"labels": [{"name": "team"},
                {"name": "tier", "values": ["back", "front", format!("tier-{number}")]}]}),
            spec: json!({}),
        };
        (0..count).map(of).collect()
    }

    /// A policy that reads all RoleBindings in each review.
    pub fn context_aware() -> Self {
        let parameters = json!({"maxNamespaces": NAMESPACES + 1});
        let (name, component) = ("binding-limit".to_owned(), "binding-limit");
        Self { name, component, parameters, spec: json!({}) }
    }

    /// A policy that reads nothing, about RoleBindings.
    pub fn of_bindings() -> Self {
        let spec = json!({"rules": [{"groups": [RBAC], "versions": ["v1"],
            "resources": ["rolebindings"], "operations": ["CREATE", "UPDATE"]}]});
        let parameters = json!({"labels": [{"name": "team"}]});
        Self { name: "labels".to_owned(), component: "required-labels", parameters, spec }
    }

    /// The path of the admission server for it.
    pub fn path(&self) -> String {
        format!("/v1/policies/{}/0?timeout=10s", self.name)
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned).unwrap_or_default()
}

/// Installs what the host needs.
///
/// # Errors
/// If the cluster refuses an object.
pub async fn install(api: &Api) -> Result<()> {
    for file in ["deploy/crds/modules.innkeeper.dev.yaml", "deploy/base/namespaces.yaml"] {
        let text = std::fs::read_to_string(root().join(file)).with_context(|| file.to_owned())?;
        for document in serde_yaml_ng::Deserializer::from_str(&text) {
            api.apply(&Value::deserialize(document)?).await?;
        }
    }
    Ok(())
}

/// Makes the Modules of policies, each with its account and its component.
///
/// # Errors
/// If a component is not built, or the cluster refuses an object.
pub async fn put_policies(api: &Api, policies: &[Policy]) -> Result<()> {
    for (number, policy) in policies.iter().enumerate() {
        let name = &policy.name;
        let bytes = component(policy.component, u32::try_from(number)?)?;
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": MODULES});
        for object in [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name,
                "namespace": MODULES, "annotations": {"innkeeper.dev/allowed-modules": name}}}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
                "metadata": {"name": name}, "rules": [{"apiGroups": [RBAC],
                    "resources": ["rolebindings"], "verbs": ["get", "list", "watch"]}]}),
            json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": name}, "subjects": [subject],
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"guest.wasm": text},
                "metadata": {"name": name, "namespace": MODULES}}),
            json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": name}, "spec": {"source": {"configMap": {"name": name}},
                    "serviceAccountName": name, "parameters": policy.parameters,
                    "policy": policy.spec}}),
        ] {
            api.apply(&object).await.with_context(|| format!("policy {name}"))?;
        }
    }
    Ok(())
}

/// Waits until the host reviews with all policies. Gives the authorities of its certificate, as
/// PEM, from the webhook configuration of the first.
///
/// # Errors
/// If a policy does not become active; with its conditions.
pub async fn until_active(api: &Api, policies: &[Policy]) -> Result<String> {
    let mut bundle = String::new();
    for policy in policies {
        let name = &policy.name;
        let module = format!("/apis/innkeeper.dev/v1alpha1/modules/{name}");
        let webhooks = format!(
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/innkeeper-policy-{name}"
        );
        bundle = eventually(&format!("the policy {name} reviews"), ACTIVE, async || {
            let module = api.read(&module).await?.unwrap_or_default();
            let conditions = module["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let is_serving =
                conditions.any(|one| one["type"] == "Serving" && one["status"] == "True");
            let webhooks = api.read(&webhooks).await?.unwrap_or_default();
            let bundle = webhooks["webhooks"][0]["clientConfig"]["caBundle"].as_str();
            Ok(match bundle.filter(|_| is_serving) {
                Some(bundle) => Ok(bundle.to_owned()),
                None => Err(module["status"].to_string()),
            })
        })
        .await?;
    }
    let pem = base64::engine::general_purpose::STANDARD.decode(bundle)?;
    Ok(String::from_utf8(pem)?)
}

/// Waits until the host has reviewed as many existing objects with a policy. Gives the counts.
///
/// # Errors
/// If that takes too long; with the counts.
pub async fn until_audited(api: &Api, policy: &Policy, count: usize) -> Result<String> {
    let path = format!("/apis/innkeeper.dev/v1alpha1/modules/{}", policy.name);
    eventually("the audit ends", AUDITED, async || {
        let module = api.read(&path).await?.unwrap_or_default();
        let audit = &module["status"]["policy"]["audit"];
        let number = |name: &str| audit[name].as_u64().unwrap_or_default();
        let reviewed = number("passed") + number("denied") + number("failed");
        let is_done = usize::try_from(reviewed)? >= count && audit["completed"].is_string();
        Ok(if is_done { Ok(audit.to_string()) } else { Err(module["status"].to_string()) })
    })
    .await
}

/// Makes RoleBindings like those of a cluster with many teams, in 100 namespaces.
///
/// # Errors
/// If the cluster refuses one.
pub async fn put_bindings(api: &Api, count: usize) -> Result<()> {
    for number in 0..NAMESPACES.min(count) {
        let name = format!("team-{number:02}");
        api.apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
            .await?;
    }
    stream::iter(0..count)
        .map(|number| async move { api.apply(&binding(number)).await })
        .buffer_unordered(4)
        .try_collect::<Vec<_>>()
        .await
        .map(drop)
}

/// The RoleBinding of this number.
pub fn binding(number: usize) -> Value {
    let namespace = format!("team-{:02}", number % NAMESPACES);
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
        "metadata": {"name": format!("binding-{number:05}"), "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "teams", "team": namespace}},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"},
        "subjects": [
            {"apiGroup": RBAC, "kind": "User", "name": format!("user-{:04}@example.com", number % 5_000)},
            {"kind": "ServiceAccount", "name": format!("account-{number:05}"), "namespace": namespace},
        ],
    })
}

/// A component that `cargo xtask guests` has built, with a section that holds a number: another
/// digest, so other code in memory.
fn component(name: &str, number: u32) -> Result<Vec<u8>> {
    let path = root().join("guests/target/components").join(format!("{name}.wasm"));
    let mut bytes = std::fs::read(&path)
        .with_context(|| format!("{}: run `cargo xtask guests` first", path.display()))?;
    // Kind 0, its length, the length of its name, name and contents.
    bytes.extend([0, 9, 4]);
    bytes.extend(b"copy");
    bytes.extend(number.to_le_bytes());
    Ok(bytes)
}
