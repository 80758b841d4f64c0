//! A Secret that the host copies, on a real API server: its validation of Secrets takes part.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_cluster_tests::stage::{SOON, message, says};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

const PULL: Kind = Kind::new("pull.example.com/v1", "Pull");

/// Two values that are the JSON of a registry's credentials.
const FIRST: &str = r#"{"auths":{"registry.example.com":{"auth":"Zmlyc3Q6dHJlYXN1cmU="}}}"#;
const SECOND: &str = r#"{"auths":{"registry.example.com":{"auth":"c2Vjb25kOnRyZWFzdXJl"}}}"#;

/// A value that is no JSON.
const WRONG: &str = "hunter2-is-no-json";

fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": Kind::CRD.api_version, "kind": Kind::CRD.kind,
        "metadata": {"name": "pulls.pull.example.com"},
        "spec": {"group": "pull.example.com", "scope": "Namespaced", "names": {"kind": "Pull", "plural": "pulls"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}

/// A guest that copies `central/registry` into the Secret `pull`.
fn guest() -> Vec<u8> {
    let manifest = json!({"name": "pull", "version": "1.0.0",
        "primary": {"apiVersion": PULL.api_version, "kind": PULL.kind, "plural": "pulls"},
        "owned": [{"kind": {"apiVersion": "v1", "kind": "Secret", "plural": "secrets"}}]});
    let copy = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull"}});
    let from = json!([{"kind": "Secret", "namespace": "central", "name": "registry",
        "keys": {"config": ".dockerconfigjson"}}]);
    let desired = json!({"objects": [{"object": copy, "valuesFrom": from}]});
    Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string()).component()
}

fn source(value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "Secret", "data": {"config": STANDARD.encode(value)},
        "metadata": {"name": "registry", "namespace": "central"}})
    .to_string()
}

/// A stage on which the module `pull` copies the Secret for one primary.
struct Pulls {
    stage: Stage,
    host: Host,
    home: String,
}

impl Pulls {
    /// Starts a host with the module, and applies the source and the primary.
    async fn start() -> Result<Self> {
        let stage = Stage::new().await?;
        stage.admin.apply(&definition().to_string()).await?;
        stage.admin.until_established(&definition()).await?;
        let central =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "central"}});
        stage.admin.apply(&central.to_string()).await?;
        stage.admin.apply(&source(FIRST)).await?;
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "everything-pull"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "pull", "namespace": "innkeeper-modules"}]});
        stage.admin.apply(&binding.to_string()).await?;
        let spec = json!({"valueSources": [{"kind": "Secret", "namespace": "central", "name": "registry",
            "keys": ["config"], "toNamespaces": ["*"]}]});
        stage.module_of_bytes("pull", &guest(), &spec).await?;
        let host = stage.host().await?;
        stage.ready("pull").await?;
        let home = stage.admin.namespace("pull").await?;
        let primary = json!({"apiVersion": PULL.api_version, "kind": PULL.kind,
            "metadata": {"name": "a", "namespace": home}, "spec": {}});
        stage.admin.apply(&primary.to_string()).await?;
        Ok(Self { stage, host, home })
    }

    /// Waits until the copy has a value and the primary is synced.
    async fn copy_has(&self, value: &str) -> Result<()> {
        let at = (Kind::SECRET, &*self.home, "pull");
        self.stage.admin.until("the copy has the value", SOON, at, |one| holds(one, value)).await?;
        self.stage.synced((PULL, &self.home, "a")).await?;
        Ok(())
    }

    /// The verbs of the module's requests for Secrets since a mark, but for lists and watches.
    fn verbs_of_secrets(&self, mark: u64) -> Result<Vec<String>> {
        let account = "system:serviceaccount:innkeeper-modules:pull".to_owned();
        let events = self.stage.plane.audit()?.since(mark, &AuditFilter::new())?;
        let of_secrets = events.into_iter().filter(|one| {
            one.impersonated.as_ref() == Some(&account) && one.uri.contains("/secrets/")
        });
        Ok(of_secrets.map(|one| one.verb).collect())
    }
}

/// Whether the copy has a value.
fn holds(copy: &Value, value: &str) -> bool {
    copy["data"][".dockerconfigjson"] == STANDARD.encode(value).as_str()
}

/// Fails if a text quotes a value, a part of one, or the API server's message about it.
fn assert_quotes_no_value(shown: &str) {
    for part in ["invalid character", WRONG, "first:treasure", "second:treasure", &FIRST[10..40]] {
        assert!(!shown.contains(part), "{part} was shown");
    }
    for value in [FIRST, SECOND, WRONG] {
        let encoded = STANDARD.encode(value);
        assert!(!shown.contains(&encoded[..encoded.len() - 4]), "the value was shown in base64");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_credentials_are_copied_and_follow_and_no_error_quotes_them() -> Result<()> {
    // Given a primary with a copy of the credentials.
    let pulls = Pulls::start().await?;
    let admin = &pulls.stage.admin;
    pulls.copy_has(FIRST).await?;

    // When the source changes, then the copy follows by one read of the source and one write.
    let mark = pulls.stage.plane.audit()?.mark()?;
    admin.apply(&source(SECOND)).await?;
    pulls.copy_has(SECOND).await?;
    assert_eq!(pulls.verbs_of_secrets(mark)?, ["get", "patch"]);

    // When the API server says at which character the value is no JSON, then nobody sees that.
    admin.apply(&source(WRONG)).await?;
    let at = (PULL, &*pulls.home, "a");
    let is_refused = |one: &Value| says(one, "Synced", "False", "Invalid");
    let refused = admin.until("the copy is refused", SOON, at, is_refused).await?;
    let text = message(&refused, "Synced");
    assert!(text.contains("the API server's message is hidden"), "{text}");
    assert_quotes_no_value(&format!("{refused}\n{}", pulls.host.log().join("\n")));
    let kept = admin.must_get(Kind::SECRET, &pulls.home, "pull").await?;
    assert!(holds(&kept, SECOND), "the copy stays");
    Ok(())
}
