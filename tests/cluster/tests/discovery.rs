//! Kinds that a guest invents, on a real API server: its discovery, its rights and its garbage
//! collection of definitions take part.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{SOON, message, says};
use innkeeper_cluster_tests::{AuditFilter, Kind, Stage, eventually};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};

const GROUP: &str = "discovery.example.com";
const CRD: &str = "gadgets.discovery.example.com";
const GADGET: Kind = Kind::new("discovery.example.com/v1", "Gadget");

/// The definition of gadgets, with this kind and scope.
fn definition(kind: &str, scope: &str) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": Kind::CRD.api_version, "kind": Kind::CRD.kind,
        "metadata": {"name": CRD},
        "spec": {"group": GROUP, "scope": scope,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": "gadgets", "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}]}})
}

/// A guest of gadgets that reads these kinds too.
fn guest(reads: &Value) -> Vec<u8> {
    let manifest = json!({"name": "gadgets", "version": "1.0.0", "reads": reads,
        "primary": {"apiVersion": GADGET.api_version, "kind": GADGET.kind, "plural": "gadgets"}});
    let status = json!({"status": {"served": true}});
    Tiny::default().manifest(&manifest.to_string()).outcome(0, &status.to_string()).component()
}

/// A module of that guest, whose account may do everything.
async fn module(stage: &Stage, name: &str, component: &[u8]) -> Result<()> {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("everything-{name}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "innkeeper-modules"}]});
    stage.admin.apply(&binding.to_string()).await?;
    stage.module_of_bytes(name, component, &json!({})).await
}

async fn until_reported(
    stage: &Stage,
    name: &str,
    condition: (&str, &str, &str),
    words: &str,
) -> Result<()> {
    let (type_, status, reason) = condition;
    let is_reported =
        |one: &Value| says(one, type_, status, reason) && message(one, type_).contains(words);
    let what = format!("Module {name} says {reason} {words:?}");
    stage.admin.until(&what, SOON, (Kind::MODULE, "", name), is_reported).await?;
    Ok(())
}

/// Replaces the definition of gadgets.
async fn replace(stage: &Stage, kind: &str, scope: &str) -> Result<()> {
    stage.admin.delete(Kind::CRD, "", CRD).await?;
    stage.admin.until_gone(SOON, (Kind::CRD, "", CRD)).await?;
    let definition = definition(kind, scope);
    stage.admin.apply(&definition.to_string()).await?;
    stage.admin.until_established(&definition).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_is_replaced_closes_its_kind_until_it_is_corrected() -> Result<()> {
    let stage = Stage::new().await?;
    let first = definition("Gadget", "Namespaced");
    stage.admin.apply(&first.to_string()).await?;
    stage.admin.until_established(&first).await?;
    module(&stage, "gadgets", &guest(&json!([]))).await?;
    let _host = stage.host().await?;
    let namespace = stage.admin.namespace("discovery").await?;
    stage.ready("gadgets").await?;
    until_reported(&stage, "gadgets", ("KindsAvailable", "True", "AllKindsServed"), "").await?;

    for (kind, scope) in [("Gadget", "Cluster"), ("Gizmo", "Namespaced")] {
        replace(&stage, kind, scope).await?;
        let words = format!("serves {GROUP}/v1 {kind} (plural gadgets, scope {scope})");
        until_reported(&stage, "gadgets", ("KindsAvailable", "False", "KindMismatch"), &words)
            .await?;
    }
    replace(&stage, "Gadget", "Namespaced").await?;
    until_reported(&stage, "gadgets", ("KindsAvailable", "True", "AllKindsServed"), "").await?;
    let gadget = json!({"apiVersion": GADGET.api_version, "kind": GADGET.kind,
        "metadata": {"name": "a", "namespace": namespace}, "spec": {}});
    eventually("gadgets are served", SOON, async || {
        Ok(stage.admin.create(&gadget.to_string()).await.map_err(|error| format!("{error:#}")))
    })
    .await?;
    let is_served = |one: &Value| one["status"]["served"] == true;
    stage.admin.until("it is reconciled", SOON, (GADGET, &namespace, "a"), is_served).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_under_another_kind_are_never_listed() -> Result<()> {
    let stage = Stage::new().await?;
    let definition = definition("Gadget", "Namespaced");
    stage.admin.apply(&definition.to_string()).await?;
    stage.admin.until_established(&definition).await?;
    let reads = json!([{"apiVersion": "v1", "kind": "Sekret", "plural": "secrets"}]);
    module(&stage, "sekret", &guest(&reads)).await?;
    let mark = stage.plane.audit()?.mark()?;
    let _host = stage.host().await?;
    let words = "serves v1 Secret (plural secrets, scope Namespaced)";
    until_reported(&stage, "sekret", ("Loaded", "False", "KindMismatch"), words).await?;
    let account = "system:serviceaccount:innkeeper-modules:sekret";
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().resource("secrets"))?;
    let of_account: Vec<_> =
        events.iter().filter(|one| one.impersonated.as_deref() == Some(account)).collect();
    assert!(of_account.is_empty(), "{of_account:#?}");
    Ok(())
}
