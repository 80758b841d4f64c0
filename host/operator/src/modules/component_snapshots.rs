//! Snapshots of components, so that the active revision survives the loss of its source.
//!
//! A snapshot is an immutable ConfigMap in the namespace of the sources, named by the module and
//! the digest and owned by the Module; a large component takes several ConfigMaps, its chunks. A
//! module has three snapshots at most: of the active revision and of those in its history.

use std::collections::BTreeMap;

use innkeeper_cluster::client::Propagation;
use innkeeper_cluster::{ApiError, Cluster};
use innkeeper_core::{Object, ObjectKey};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::{self, NAMESPACE, SOURCE_KEY};
use innkeeper_modules::{Component, Digest, Rejection, RetryPolicy, SourceError, chunks};
use serde_json::{Map, Value, json};

use super::config_maps::read_config_map;
use super::event::CONFIG_MAP;

/// The label of a snapshot: the module that it belongs to.
pub const SNAPSHOT_LABEL: &str = "innkeeper.dev/copy-of";

/// Saves a snapshot of a component.
///
/// # Errors
/// If it cannot be saved; another try may help.
pub async fn save(
    cluster: &Cluster,
    module: &Object,
    component: &Component,
) -> Result<(), Rejection> {
    let (owner, digest) = (module.key.name(), component.digest);
    let name = snapshot_name(owner, digest);
    let refused = |why: String| {
        let message =
            format!("snapshot {NAMESPACE}/{name} of {} cannot be saved: {why}", digest.short());
        Rejection::new("SnapshotFailed", message, RetryPolicy::Later)
    };
    let host = cluster.host();
    let mut written = Vec::new();
    let mut was_there = false;
    for body in chunks::config_maps(&name, component, &metadata(module)) {
        written.extend(body["metadata"]["name"].as_str().map(str::to_owned));
        match host.create(&CONFIG_MAP, NAMESPACE, &body).await {
            Ok(()) => {}
            // A host that was killed may have written some chunks, or all.
            Err(ApiError::AlreadyExists { .. }) => was_there = true,
            Err(error) => return Err(refused(error.to_string())),
        }
    }
    if !was_there {
        return Ok(());
    }
    let all = written.join(", ");
    match fetch(cluster, owner, digest).await {
        Ok(found) if found.digest == digest => Ok(()),
        Ok(_) => Err(refused(format!("something else has its name; delete {all}"))),
        Err(error) => Err(refused(format!("{error}; delete {all}"))),
    }
}

/// The labels and the owner of each ConfigMap of a module's snapshots.
fn metadata(module: &Object) -> Map<String, Value> {
    let owner = module.key.name();
    let labels = json!({SNAPSHOT_LABEL: owner});
    let owners = json!([{
        "apiVersion": module::API_VERSION, "kind": module::KIND, "name": owner, "uid": module.uid,
    }]);
    Map::from_iter([("labels".to_owned(), labels), ("ownerReferences".to_owned(), owners)])
}

/// Reads a snapshot.
///
/// # Errors
/// If it is missing, malformed or cannot be read.
pub async fn fetch(
    cluster: &Cluster,
    module: &str,
    digest: Digest,
) -> Result<Component, SourceError> {
    read_config_map(cluster, &snapshot_name(module, digest), Some(SOURCE_KEY)).await
}

/// Deletes the snapshots of a module among these ConfigMaps, except those with the names in `kept`
/// and their further chunks.
pub async fn sweep(
    cluster: &Cluster,
    module: &str,
    config_maps: &BTreeMap<ObjectKey, Box<str>>,
    kept: &[String],
) {
    for (key, uid) in config_maps {
        let name = key.name();
        if kept.iter().any(|kept| kept == name || chunks::first_of(name) == Some(kept)) {
            continue;
        }
        let host = cluster.host();
        match host.delete(&CONFIG_MAP, key, uid, Propagation::Background).await {
            Ok(_) => tracing::debug!(module, snapshot = key.name(), "old snapshot deleted"),
            // It only takes space; the next swap tries again.
            Err(error) => {
                tracing::warn!(
                    module,
                    snapshot = key.name(),
                    "an old snapshot cannot be deleted: {error}"
                );
            }
        }
    }
}
