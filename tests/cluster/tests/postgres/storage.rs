//! Volumes without a default storage class, of different classes, and on existing claims.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::{Admin, Kind};
use serde_json::{Value, json};

use crate::stage::{
    CLAIMS, KEPT_FOR, NAME, OLD, OLD_SECRET, POSTGRESQL, claims, delete, made, stage, synced,
};

/// A storage class with one volume, which the controller manager binds.
async fn class(admin: &Admin, name: &str) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name}, "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "Immediate"});
    admin.apply(&class.to_string()).await?;
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": name, "hostPath": {"path": format!("/nowhere/{name}")}}});
    admin.apply(&volume.to_string()).await.map(drop)
}

/// The manifest of the original operator with more fields of the spec.
fn with(fields: &str) -> String {
    OLD.replace("  db: foo\n", &format!("  db: foo\n{fields}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_without_a_default_class_says_what_to_set_and_binds_once_it_is_set() -> Result<()>
{
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    class(admin, "fast").await?;
    class(admin, "cheap").await?;
    admin.apply_in(ns, OLD_SECRET).await?;
    admin.apply_in(ns, OLD).await?;
    synced(&stage, ns).await?;
    let message = stage.says(at, ("StorageReady", "False", "NoStorageClass")).await?;
    for text in ["foodb-data", "set spec.storage.className", "kubectl get storageclass"] {
        assert!(message.contains(text), "{message}");
    }
    stage.says(at, ("Ready", "False", "NoStorageClass")).await?;
    for claim in claims(admin, ns).await? {
        assert!(claim["spec"]["storageClassName"].is_null(), "{claim:#}");
    }

    // The user follows the message: the same claims get their classes and are bound.
    let before = claims(admin, ns).await?;
    admin
        .apply_in(ns, &with("  storage: {className: fast}\n  backup: {className: cheap}\n"))
        .await?;
    stage.says(at, ("StorageReady", "True", "Bound")).await?;
    let after = claims(admin, ns).await?;
    for ((before, after), class) in before.iter().zip(&after).zip(["fast", "cheap"]) {
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(after["spec"]["storageClassName"], class);
        assert_eq!(after["status"]["phase"], "Bound");
    }

    // Another class cannot be had on the same claim: nothing fails, and nothing is lost.
    admin
        .apply_in(ns, &with("  storage: {className: other}\n  backup: {className: cheap}\n"))
        .await?;
    let message = stage.says(at, ("StorageReady", "False", "ClassUnchanged")).await?;
    assert!(message.contains("has the storage class fast, which cannot change to other"));
    synced(&stage, ns).await?;
    assert_eq!(claims(admin, ns).await?[0]["metadata"]["uid"], before[0]["metadata"]["uid"]);

    // Without a class in the spec the claim keeps its class, which the server lets nobody remove.
    admin.apply_in(ns, &with("  backup: {className: cheap}\n")).await?;
    stage.says(at, ("StorageReady", "True", "Bound")).await?;
    synced(&stage, ns).await?;
    assert_eq!(claims(admin, ns).await?[0]["spec"]["storageClassName"], "fast");
    Ok(())
}

/// The claims of the deployed pods, null for an emptyDir.
async fn deployed(admin: &Admin, ns: &str) -> Result<[Value; 2]> {
    let deployment = admin.must_get(Kind::DEPLOYMENT, ns, NAME).await?;
    let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
    Ok([0, 1].map(|index| volumes[index]["persistentVolumeClaim"]["claimName"].clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_claim_is_used_as_it_is_and_data_leaves_its_claim_only_when_allowed() -> Result<()>
{
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    let at = (POSTGRESQL, ns, NAME);
    class(admin, "fast").await?;
    class(admin, "cheap").await?;
    admin.apply_in(ns, OLD_SECRET).await?;
    let on_shared = "  storage: {className: fast}\n  backup: {claimName: shared}\n";
    admin.apply_in(ns, &with(on_shared)).await?;
    stage.says(at, ("Ready", "False", "ClaimMissing")).await?;
    assert_eq!(made(admin, ns).await?, [] as [&str; 0], "nothing is half-made");

    let shared = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared", "namespace": ns},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "cheap",
            "resources": {"requests": {"storage": "1Gi"}}}});
    admin.create(&shared.to_string()).await?;
    stage.says(at, ("StorageReady", "True", "Bound")).await?;
    assert_eq!(deployed(admin, ns).await?, [CLAIMS[0], "shared"]);
    assert!(admin.get(Kind::CLAIM, ns, CLAIMS[1]).await?.is_none());

    // The data stays where it is until the user allows it.
    let in_pod = "  storage: {ephemeral: true}\n  backup: {claimName: shared}\n";
    admin.apply_in(ns, &with(in_pod)).await?;
    stage.says(at, ("StorageReady", "False", "ClaimInUse")).await?;
    assert_eq!(deployed(admin, ns).await?, [CLAIMS[0], "shared"]);
    let leave = json!({"metadata": {"annotations": {"exp.wheel.jp/leave-claim": CLAIMS[0]}}});
    admin.edit(at, &leave).await?;
    stage.says(at, ("DataPersistent", "False", "InPod")).await?;
    synced(&stage, ns).await?;
    assert_eq!(deployed(admin, ns).await?, [Value::Null, json!("shared")]);

    // Whatever becomes of the PostgreSQL, both claims stay.
    let seen = admin.must_get(Kind::CLAIM, ns, "shared").await?;
    assert!(seen["metadata"]["ownerReferences"].is_null(), "{seen:#}");
    assert!(seen["metadata"]["labels"][KEPT_FOR].is_null(), "{seen:#}");
    admin.edit(at, &json!({"spec": {"deletionPolicy": "Delete"}})).await?;
    synced(&stage, ns).await?;
    delete(admin, ns).await?;
    stage.quiet(Duration::from_secs(1)).await?;
    for name in [CLAIMS[0], "shared"] {
        let claim = admin.must_get(Kind::CLAIM, ns, name).await?;
        assert!(claim["metadata"]["deletionTimestamp"].is_null(), "{claim:#}");
    }
    Ok(())
}
