//! Claims and the volumes that the binder gives them.

use anyhow::Result;
use serde_json::json;

use crate::lines::compare;
use crate::world::{VOLUMES, World, sides};

const CLAIMED: [&str; 3] = ["api/v1 persistentvolumeclaims", VOLUMES, "api/v1 events"];

impl World {
    /// Waits until so many volumes are in this phase.
    async fn until_volumes(&self, phase: &str, count: usize) -> Result<()> {
        self.until_all(&format!("{count} volumes are {phase}"), VOLUMES, |volumes| {
            volumes.iter().filter(|one| one["status"]["phase"] == phase).count() == count
        })
        .await
    }

    /// Claims of different sorts find the volumes that are meant for them, and leave them.
    async fn play_claims(&self) -> Result<Vec<String>> {
        self.begin().await?;
        let kept = json!({"namespace": self.namespace, "name": "kept-for"});
        for (name, size, modes, more) in [
            ("small", "1Gi", json!(["ReadWriteOnce"]), json!({})),
            ("smaller-but-for-more", "800Mi", json!(["ReadWriteOnce", "ReadOnlyMany"]), json!({})),
            ("large", "5Gi", json!(["ReadWriteOnce"]), json!({})),
            ("gold", "2Gi", json!(["ReadWriteOnce"]), json!({})),
            ("kept", "3Gi", json!(["ReadWriteOnce"]), json!({ "claimRef": kept })),
            ("other", "600Mi", json!(["ReadWriteOnce"]), json!({"storageClassName": "other"})),
        ] {
            let mut volume = json!({"metadata": {"name": name, "labels": {"tier": name}}, "spec": {
                "capacity": {"storage": size}, "accessModes": modes, "storageClassName": "static",
                "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/none"}}});
            for (member, value) in more.as_object().into_iter().flatten() {
                volume["spec"][member] = value.clone();
            }
            self.create(VOLUMES, &volume).await?;
        }
        self.until_volumes("Available", 6).await?;
        for (name, size, mode, more) in [
            ("any", "500Mi", "ReadWriteOnce", json!({})),
            ("read", "500Mi", "ReadOnlyMany", json!({})),
            (
                "selects",
                "1Gi",
                "ReadWriteOnce",
                json!({"selector": {"matchLabels": {"tier": "gold"}}}),
            ),
            ("kept-for", "1Gi", "ReadWriteOnce", json!({})),
            ("named", "1Gi", "ReadWriteOnce", json!({"volumeName": "large"})),
            ("none", "1Gi", "ReadWriteOnce", json!({"storageClassName": ""})),
        ] {
            let mut claim = json!({"metadata": {"name": name}, "spec": {"accessModes": [mode],
                "storageClassName": "static", "resources": {"requests": {"storage": size}}}});
            for (member, value) in more.as_object().into_iter().flatten() {
                claim["spec"][member] = value.clone();
            }
            self.create(CLAIMED[0], &claim).await?;
        }
        self.until_all("five are bound", CLAIMED[0], |claims| {
            claims.iter().filter(|one| one["status"]["phase"] == "Bound").count() == 5
        })
        .await?;
        self.until_all("one has an Event that says why not", CLAIMED[1], |events| {
            !events.is_empty()
        })
        .await?;
        self.delete("api/v1 persistentvolumeclaims/any").await?;
        self.until_volumes("Released", 1).await?;
        // Free, it goes; in use, it waits.
        for name in ["small", "large"] {
            self.delete(&format!("{VOLUMES}/{name}")).await?;
        }
        self.until_volumes("Released", 0).await?;
        self.all(&CLAIMED).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_get_the_volumes_of_the_real_binder() -> Result<()> {
    let [real, simulated] = sides("claims").await?;
    compare(&real.play_claims().await?, &simulated.play_claims().await?);
    Ok(())
}
