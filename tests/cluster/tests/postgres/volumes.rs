//! Volumes that outlive their PostgreSQL.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Kind, Stage, eventually};
use serde_json::{Value, json};

use crate::stage::{
    ALL, CLAIMS, KEPT_FOR, NAME, OLD_SECRET, POSTGRESQL, SECRET, claims, delete, is_owned, made,
    stage, synced,
};

/// A class whose volumes can grow, with two volumes, which the controller manager binds.
async fn volumes(admin: &Admin) -> Result<()> {
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "growing"}, "provisioner": "kubernetes.io/no-provisioner",
        "allowVolumeExpansion": true, "volumeBindingMode": "Immediate"});
    admin.apply(&class.to_string()).await?;
    for name in ["one", "two"] {
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
                "storageClassName": "growing", "hostPath": {"path": format!("/nowhere/{name}")}}});
        admin.apply(&volume.to_string()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_grow_and_survive_their_postgresql_and_are_adopted_by_the_same_identity()
-> Result<()> {
    let (stage, _host, namespace) = stage().await?;
    let (admin, ns) = (&stage.admin, &*namespace);
    volumes(admin).await?;
    admin.apply_in(ns, OLD_SECRET).await?;
    admin.apply_in(ns, &of_size("1Gi")).await?;
    synced(&stage, ns).await?;
    for claim in CLAIMS {
        let bound = |one: &Value| one["status"]["phase"] == "Bound";
        admin.until("the claim is bound", SOON, (Kind::CLAIM, ns, claim), bound).await?;
    }
    let before = claims(admin, ns).await?;

    volume_grows_in_place_and_does_not_shrink(&stage, ns).await?;
    claims_stay_when_the_postgresql_is_deleted(&stage, ns, &before).await?;
    claim_of_another_identity_is_a_conflict(&stage, ns).await?;
    claims_are_adopted_by_the_same_identity(&stage, ns, &before).await?;
    policy_delete_deletes_the_claims(&stage, ns).await
}

/// The `PostgreSQL`, with volumes of this size.
fn of_size(size: &str) -> String {
    json!({"apiVersion": POSTGRESQL.api_version, "kind": POSTGRESQL.kind,
        "metadata": {"name": NAME},
        "spec": {"db": "foo", "user": "foo", "password": SECRET,
            "storage": {"size": size, "className": "growing"}}})
    .to_string()
}

async fn volume_grows_in_place_and_does_not_shrink(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    admin.apply_in(ns, &of_size("2Gi")).await?;
    let larger = |one: &Value| one["spec"]["resources"]["requests"]["storage"] == "2Gi";
    admin.until("the volume grows", SOON, (Kind::CLAIM, ns, CLAIMS[0]), larger).await?;
    synced(stage, ns).await?;
    let shrunk = admin.apply_in(ns, &of_size("1Gi")).await.map_err(|error| format!("{error:#}"));
    assert!(
        shrunk.as_ref().is_err_and(|error| error.contains("a volume cannot shrink")),
        "{shrunk:?}"
    );
    Ok(())
}

/// Data and backups stay, without an owner, and are labelled with the identity they belong to.
async fn claims_stay_when_the_postgresql_is_deleted(
    stage: &Stage,
    ns: &str,
    before: &[Value; 2],
) -> Result<()> {
    delete(&stage.admin, ns).await?;
    stage.quiet(Duration::from_secs(2)).await?;
    for (claim, before) in claims(&stage.admin, ns).await?.iter().zip(before) {
        assert_eq!(claim["metadata"]["uid"], before["metadata"]["uid"]);
        assert!(claim["metadata"]["deletionTimestamp"].is_null(), "{claim:#}");
        assert!(claim["metadata"]["ownerReferences"].is_null(), "{claim:#}");
        assert!(claim["metadata"]["labels"][KEPT_FOR].is_string(), "{claim:#}");
        assert_eq!(claim["status"]["phase"], "Bound");
    }
    Ok(())
}

async fn label_data(admin: &Admin, ns: &str, identity: &Value) -> Result<()> {
    let label = json!({"metadata": {"labels": {KEPT_FOR: identity}}});
    admin.edit((Kind::CLAIM, ns, CLAIMS[0]), &label).await.map(drop)
}

/// The claim of the data is labelled as one of another namespace would be.
async fn claim_of_another_identity_is_a_conflict(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let other = json!("0".repeat(32));
    label_data(admin, ns, &other).await?;
    admin.apply_in(ns, &of_size("2Gi")).await?;
    let at = (POSTGRESQL, ns, NAME);
    let message = stage.says(at, ("Synced", "False", "Conflict")).await?;
    assert!(message.contains("PersistentVolumeClaim") && message.contains(CLAIMS[0]), "{message}");
    assert!(admin.get(Kind::DEPLOYMENT, ns, NAME).await?.is_none(), "nothing serves");
    let [data, _] = claims(admin, ns).await?;
    assert_eq!(data["metadata"]["labels"][KEPT_FOR], other, "left alone");
    Ok(())
}

async fn claims_are_adopted_by_the_same_identity(
    stage: &Stage,
    ns: &str,
    before: &[Value; 2],
) -> Result<()> {
    let label = &before[0]["metadata"]["labels"][KEPT_FOR];
    label_data(&stage.admin, ns, label).await?;
    synced(stage, ns).await?;
    for (claim, before) in claims(&stage.admin, ns).await?.iter().zip(before) {
        assert_eq!(claim["metadata"]["uid"], before["metadata"]["uid"], "the same volume");
        assert_eq!(claim["metadata"]["labels"][KEPT_FOR], *label);
    }
    assert_eq!(made(&stage.admin, ns).await?, ALL);
    Ok(())
}

async fn policy_delete_deletes_the_claims(stage: &Stage, ns: &str) -> Result<()> {
    let admin = &stage.admin;
    let policy = json!({"spec": {"deletionPolicy": "Delete"}});
    admin.edit((POSTGRESQL, ns, NAME), &policy).await?;
    for claim in CLAIMS {
        admin.until("it is owned", SOON, (Kind::CLAIM, ns, claim), is_owned).await?;
    }
    synced(stage, ns).await?;
    delete(admin, ns).await?;
    for claim in CLAIMS {
        admin.until_gone(2 * SOON, (Kind::CLAIM, ns, claim)).await?;
    }
    eventually("nothing is left", 2 * SOON, async || {
        let left = made(admin, ns).await?;
        Ok(if left.is_empty() { Ok(()) } else { Err(left.join(", ")) })
    })
    .await
}
