//! The host's copies of components: what served last is to be had whatever becomes of its source.
//!
//! A copy is an immutable ConfigMap beside the sources, named by the module and the digest and
//! owned by the Module; of a large component it is several, the parts of one source. There are two
//! copies at most for each module: of what serves and of what served before.

use std::collections::BTreeMap;

use innkeeper_cluster::client::Propagation;
use innkeeper_cluster::{ApiError, Cluster};
use innkeeper_core::{Object, ObjectKey};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::{self, NAMESPACE, SOURCE_KEY};
use innkeeper_modules::{Component, Digest, Rejection, RetryPolicy, SourceError, chunks};
use serde_json::{Map, Value, json};

use crate::sources::{CONFIG_MAP, read_config_map};

/// The label of a copy: whose it is.
pub const SNAPSHOT_LABEL: &str = "innkeeper.dev/copy-of";

/// Keeps a copy of a component.
///
/// # Errors
/// A verdict to be tried again later.
pub async fn save(
    cluster: &Cluster,
    module: &Object,
    component: &Component,
) -> Result<(), Rejection> {
    let (owner, digest) = (module.key.name(), component.digest);
    let name = snapshot_name(owner, digest);
    let refused = |why: String| {
        let message =
            format!("the copy {NAMESPACE}/{name} of {} cannot be kept: {why}", digest.short());
        Rejection::new("SnapshotFailed", message, RetryPolicy::Later)
    };
    let host = cluster.host();
    let mut written = Vec::new();
    let mut was_there = false;
    for body in chunks::config_maps(&name, component, &metadata(module)) {
        written.extend(body["metadata"]["name"].as_str().map(str::to_owned));
        match host.create(&CONFIG_MAP, NAMESPACE, &body).await {
            Ok(()) => {}
            // From a time when the host was killed in between, or the whole of it.
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

/// What all ConfigMaps of a module's copies have in common.
fn metadata(module: &Object) -> Map<String, Value> {
    let owner = module.key.name();
    let labels = json!({SNAPSHOT_LABEL: owner});
    let owners = json!([{
        "apiVersion": module::API_VERSION, "kind": module::KIND, "name": owner, "uid": module.uid,
    }]);
    Map::from_iter([("labels".to_owned(), labels), ("ownerReferences".to_owned(), owners)])
}

/// Reads a copy.
///
/// # Errors
/// Why it cannot be had.
pub async fn fetch(
    cluster: &Cluster,
    module: &str,
    digest: Digest,
) -> Result<Component, SourceError> {
    read_config_map(cluster, &snapshot_name(module, digest), Some(SOURCE_KEY)).await
}

/// Deletes the copies of a module among these ConfigMaps, but for those with these names and their
/// further parts.
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
            Ok(_) => tracing::debug!(module, copy = key.name(), "an old copy is deleted"),
            // It costs room and nothing else; the next swap tries again.
            Err(error) => {
                tracing::warn!(module, copy = key.name(), "an old copy cannot be deleted: {error}");
            }
        }
    }
}
