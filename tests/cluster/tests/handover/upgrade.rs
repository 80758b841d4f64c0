//! From an earlier version of a guest.

use std::fs;

use anyhow::Result;
use innkeeper_cluster_tests::readme::Readme;
use innkeeper_cluster_tests::stage::{SOON, component_path};
use innkeeper_cluster_tests::{Kind, Stage, UserFolder};
use innkeeper_tiny_guests::earlier_podroute;
use serde_json::{Value, json};

const NAME: &str = "test-podroute";
const SECTION: &str = "Upgrade from a CRD with a default for `replicas`";
const PATCH_CRD: &str = "kubectl patch crd podroutes.quay.io";

/// A Podroute that leaves `replicas` out.
fn podroute(ns: &str) -> String {
    json!({"apiVersion": Kind::PODROUTE.api_version, "kind": Kind::PODROUTE.kind,
        "metadata": {"name": NAME, "namespace": ns},
        "spec": {"image": "quay.io/austincunningham/always200:latest"}})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn podroute_is_upgraded_from_a_definition_with_default_replicas() -> Result<()> {
    let (stage, user) = (Stage::new().await?, UserFolder::new()?);
    let admin = &stage.admin;
    stage.module("podroute", "podroute", &json!({"allowedCRDGroups": ["quay.io"]})).await?;
    let today = fs::read(component_path("podroute")?)?;
    stage.push_bytes("podroute", &earlier_podroute(&today)).await?;
    let _host = stage.host().await?;
    stage.ready("podroute").await?;
    let (before, after) = (admin.namespace("before").await?, admin.namespace("after").await?);
    admin.apply(&podroute(&before)).await?;
    let stored = stage.synced((Kind::PODROUTE, &before, NAME)).await?;
    assert_eq!(stored["spec"]["replicas"], 1, "the default of the earlier definition");

    let parameters = json!({"spec": {"parameters": {"replicasWhenLeftOut": 1}}});
    admin.edit((Kind::MODULE, "", "podroute"), &parameters).await?;
    stage.push_bytes("podroute", &today).await?;
    stage.module_says("podroute", "Blocked", "True", "CRDIncompatible").await?;
    stage.module_says("podroute", "Serving", "True", "RevisionActive").await?;

    let readme = Readme::of("podroute", SECTION, &[PATCH_CRD])?;
    user.run(&stage.plane, readme.block(PATCH_CRD)?).await?;
    stage.module_says("podroute", "Blocked", "False", "CRDsCompatible").await?;
    stage.ready("podroute").await?;

    // A stored default stays; without it the parameter applies.
    admin.apply(&podroute(&after)).await?;
    for (ns, replicas) in [(&before, json!(1)), (&after, Value::Null)] {
        let podroute = stage.synced((Kind::PODROUTE, ns, NAME)).await?;
        assert_eq!(podroute["spec"]["replicas"], replicas);
        let has_one = |one: &Value| one["spec"]["replicas"] == 1;
        let deployment = (Kind::DEPLOYMENT, ns.as_str(), "pod-route");
        admin.until("the Deployment has one pod", SOON, deployment, has_one).await?;
    }
    Ok(())
}
