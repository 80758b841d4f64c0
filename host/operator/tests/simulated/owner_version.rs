//! A guest that moves to another version of its primary kind: the owner reference of each object
//! names the version.

use serde_json::Value;

use crate::revision_versions::{move_to, serve_second_version};
use crate::support::{GROUP, Script, Stage, block_on};
use crate::updates::{NAMES, group, maps, stage_with_maps, writes};

/// The ConfigMaps `a` to `c`: their uids, and the versions in which they name their owner.
async fn uids_and_versions(stage: &Stage) -> (Vec<Value>, Vec<Value>) {
    let (mut uids, mut versions) = (Vec::new(), Vec::new());
    for name in NAMES {
        let metadata = stage.config_map(name).await.unwrap()["metadata"].clone();
        uids.push(metadata["uid"].clone());
        versions.push(metadata["ownerReferences"][0]["apiVersion"].clone());
    }
    (uids, versions)
}

/// The applies of the ConfigMaps `a` to `c`.
fn applies() -> Vec<String> {
    NAMES.map(|name| format!("apply configmaps/{name}")).into()
}

#[test]
fn move_to_another_version_of_the_primary_kind_recreates_no_object() {
    for method in ["OnDelete", "Recreate", "RollingInPlace", "RollingRecreate"] {
        block_on(async {
            // Given a group whose objects name their owner in v1.
            let stage = stage_with_maps(&group(method)).await;
            let (uids, _) = uids_and_versions(&stage).await;
            serve_second_version(&stage).await;
            writes(&stage);

            // When the guest moves to v2, then the host applies each object once, and deletes none.
            move_to(&stage, Script::new(), "v2").await;
            assert_eq!(writes(&stage), applies(), "{method}");
            let (now, versions) = uids_and_versions(&stage).await;
            assert_eq!(now, uids, "{method}");
            assert_eq!(versions, NAMES.map(|_| format!("{GROUP}/v2")), "{method}");
            stage.until_primary("one", "Synced", "True", "Applied").await;
        });
    }
}

#[test]
fn change_together_with_the_move_waits_for_its_turn() {
    block_on(async {
        // Given a paused group whose objects name their owner in v1, and a change of them.
        let mut paused = group("RollingInPlace");
        paused["paused"] = true.into();
        let stage = stage_with_maps(&paused).await;
        serve_second_version(&stage).await;
        stage.set_spec("one", &maps(&paused, "2")).await;
        stage.until_primary("one", "Synced", "False", "UpdatePaused").await;
        writes(&stage);

        // When the guest moves to v2, then the pause holds.
        move_to(&stage, Script::new(), "v2").await;
        assert_eq!(writes(&stage), Vec::<String>::new());

        // When the group goes on, then each object is applied once, with both changes.
        stage.set_spec("one", &maps(&group("RollingInPlace"), "2")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(writes(&stage), applies());
        let (_, versions) = uids_and_versions(&stage).await;
        assert_eq!(versions, NAMES.map(|_| format!("{GROUP}/v2")));
    });
}
