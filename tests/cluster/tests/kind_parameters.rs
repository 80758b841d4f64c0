//! Kinds that the parameters of a Module name, on a real API server: its discovery says what they
//! are, and the rights are those that `innkeeper rbac` prints.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use innkeeper_cluster_tests::stage::{SOON, output};
use innkeeper_cluster_tests::{AuditFilter, Kind, Stage};
use innkeeper_tiny_guests::Tiny;
use serde_json::{Value, json};
use tempfile::TempDir;

const VERSION: &str = "orchard.example.com/v1";

/// The kinds, whose plurals a host can only learn from the API server.
const CHERRY: Orchard = Orchard { kind: "Cherry", plural: "cherries", module: "cherry" };
const MANGO: Orchard = Orchard { kind: "Mango", plural: "mangoes", module: "mango" };
const GOOSEBERRY: Orchard = Orchard { kind: "Gooseberry", plural: "goosefruit", module: "late" };

/// A kind of this test, and the Module whose parameters name it.
struct Orchard {
    kind: &'static str,
    plural: &'static str,
    module: &'static str,
}

impl Orchard {
    fn definition(&self) -> Value {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"apiVersion": Kind::CRD.api_version, "kind": Kind::CRD.kind,
            "metadata": {"name": format!("{}.orchard.example.com", self.plural)},
            "spec": {"group": "orchard.example.com", "scope": "Namespaced",
                "names": {"kind": self.kind, "plural": self.plural},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any}}}}]}})
    }

    async fn define(&self, stage: &Stage) -> Result<()> {
        let definition = self.definition();
        stage.admin.apply(&definition.to_string()).await?;
        stage.admin.until_established(&definition).await
    }

    fn parameters(&self) -> Value {
        json!({"target": {"apiVersion": VERSION, "kind": self.kind}})
    }

    fn object(&self, namespace: &str) -> String {
        json!({"apiVersion": VERSION, "kind": self.kind,
            "metadata": {"name": "first", "namespace": namespace}})
        .to_string()
    }
}

/// A guest that decorates the kind of the parameter `target`, and makes a ConfigMap for it.
fn guest() -> Vec<u8> {
    let config_maps = json!({"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"});
    let manifest = json!({"name": "decorator", "version": "1.0.0", "decorates": true,
        "primary": {"apiVersion": "apps/v1", "kind": "StatefulSet", "plural": "statefulsets"},
        "owned": [{"kind": config_maps}],
        "parametersSchema": {"type": "object", "properties": {"target": {}}},
        "kindParameters": [{"parameter": "target", "role": "Primary"}]});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}});
    let desired = json!({"objects": [{ "object": object }]});
    Tiny::default().manifest(&manifest.to_string()).outcome(0, &desired.to_string()).component()
}

/// The component and the definitions as files, as an administrator has them.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Result<Self> {
        let folder = TempDir::new()?;
        fs::write(folder.path().join("guest.wasm"), guest())?;
        Ok(Self { folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What `innkeeper rbac` prints for a Module whose parameters name this kind.
    async fn rights(&self, kind: &Orchard) -> Result<String> {
        let (guest, crd) = (self.path("guest.wasm"), self.path(kind.plural));
        fs::write(&crd, kind.definition().to_string())?;
        let parameters = kind.parameters().to_string();
        let (guest, crd) = (guest.to_string_lossy(), crd.to_string_lossy());
        let options = ["--module", kind.module, "--parameters", &parameters, "--crd", &crd];
        output(&[&["rbac", &*guest][..], &options].concat()).await
    }
}

/// Makes the Module of a kind in a namespace of its own. Returns the namespace.
async fn module(stage: &Stage, files: &Files, kind: &Orchard) -> Result<String> {
    let namespace = stage.admin.namespace(kind.module).await?;
    stage.admin.apply(&files.rights(kind).await?).await?;
    let spec = json!({"parameters": kind.parameters(), "namespaces": [namespace],
        "rollout": {"strategy": "Immediate"}});
    stage.module_of_bytes(kind.module, &guest(), &spec).await?;
    Ok(namespace)
}

/// Waits until the ConfigMap of a namespace belongs to an object of this kind, and is not the one
/// with the uid `other`. Returns its uid.
async fn made(stage: &Stage, namespace: &str, kind: &Orchard, other: &Value) -> Result<Value> {
    let at = (Kind::CONFIG_MAP, namespace, "made");
    let is_new = |one: &Value| one["metadata"]["uid"] != *other;
    let what = format!("there is a ConfigMap of the {}", kind.kind);
    let config_map = stage.admin.until(&what, SOON, at, is_new).await?;
    let owner = &config_map["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["apiVersion"], &owner["kind"]), (&json!(VERSION), &json!(kind.kind)));
    Ok(config_map["metadata"]["uid"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_guest_serves_in_each_module_the_kind_that_its_parameters_name() -> Result<()> {
    let stage = Stage::new().await?;
    let files = Files::new()?;
    let mark = stage.plane.audit()?.mark()?;
    let kinds = [CHERRY, MANGO, GOOSEBERRY];
    let mut namespaces = Vec::new();
    for kind in &kinds {
        namespaces.push(module(&stage, &files, kind).await?);
    }
    CHERRY.define(&stage).await?;
    MANGO.define(&stage).await?;
    let _host = stage.host().await?;
    stage.ready(CHERRY.module).await?;
    stage.ready(MANGO.module).await?;

    // The third waits for its definition.
    let message = stage.module_says(GOOSEBERRY.module, "Loaded", "False", "KindNotServed").await?;
    let missing = format!("the API server does not serve {VERSION} Gooseberry");
    assert!(message.contains(&missing), "{message}");
    GOOSEBERRY.define(&stage).await?;
    stage.ready(GOOSEBERRY.module).await?;

    // Objects of all kinds are in every namespace, and each Module sees those of its own.
    for namespace in &namespaces {
        for kind in &kinds {
            stage.admin.apply(&kind.object(namespace)).await?;
        }
    }
    for (kind, namespace) in kinds.iter().zip(&namespaces) {
        let uid = made(&stage, namespace, kind, &Value::Null).await?;
        stage.admin.delete(Kind::CONFIG_MAP, namespace, "made").await?;
        made(&stage, namespace, kind, &uid).await?;
        let module = stage.admin.must_get(Kind::MODULE, "", kind.module).await?;
        let primary = &module["status"]["primary"];
        assert_eq!(
            (&primary["kind"], &primary["plural"]),
            (&json!(kind.kind), &json!(kind.plural))
        );
    }
    for kind in &kinds {
        let account = format!("system:serviceaccount:innkeeper-modules:{}", kind.module);
        for other in kinds.iter().filter(|other| other.kind != kind.kind) {
            let filter = AuditFilter::new().resource(other.plural);
            let events = stage.plane.audit()?.since(mark, &filter)?;
            let of_account =
                events.iter().filter(|one| one.impersonated.as_deref() == Some(&account));
            assert_eq!(of_account.count(), 0, "{account} asks for {}", other.plural);
        }
    }
    Ok(())
}
