//! The host's copies of components: what served last is to be had whatever becomes of its source.
//!
//! A copy is an immutable ConfigMap beside the sources, named by the module and the digest and
//! owned by the Module. There are two at most for each module: of what serves and of what served
//! before.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_cluster::session::Propagation;
use innkeeper_cluster::{ApiError, Cluster};
use innkeeper_core::{Key, Object};
use innkeeper_modules::driver::copy_name;
use innkeeper_modules::module::{self, NAMESPACE, SOURCE_KEY};
use innkeeper_modules::source::gzip;
use innkeeper_modules::{Again, Component, Digest, SourceError, Verdict};
use serde_json::json;

use crate::sources::{CONFIG_MAP, read_config_map};

/// The label of a copy: whose it is.
pub const COPY_LABEL: &str = "innkeeper.dev/copy-of";

/// Keeps a copy of a component.
///
/// # Errors
/// A verdict to be tried again later.
pub async fn keep(
    cluster: &Cluster,
    module: &Object,
    component: &Component,
) -> Result<(), Verdict> {
    let (owner, digest) = (module.key.name(), component.digest);
    let name = copy_name(owner, digest);
    let refused = |why: String| {
        let message =
            format!("the copy {NAMESPACE}/{name} of {} cannot be kept: {why}", digest.short());
        Verdict::new("CopyNotKept", message, Again::Later)
    };
    let body = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {COPY_LABEL: owner},
            "annotations": {"innkeeper.dev/digest": digest.to_string()},
            "ownerReferences": [{
                "apiVersion": module::API_VERSION, "kind": module::KIND,
                "name": owner, "uid": module.uid,
            }],
        },
        "immutable": true,
        "binaryData": {SOURCE_KEY: STANDARD.encode(gzip(&component.bytes))},
    });
    let host = cluster.host();
    match host.create(&CONFIG_MAP, NAMESPACE, &body).await {
        Ok(()) => Ok(()),
        Err(ApiError::AlreadyThere { .. }) => match fetch(cluster, owner, digest).await {
            Ok(found) if found.digest == digest => Ok(()),
            Ok(_) => Err(refused("something else has its name; delete it".to_owned())),
            Err(error) => Err(refused(format!("{error}; delete it"))),
        },
        Err(error) => Err(refused(error.to_string())),
    }
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
    read_config_map(cluster, &copy_name(module, digest), Some(SOURCE_KEY)).await
}

/// Deletes the copies of a module among these ConfigMaps, but for those with these names.
pub async fn sweep(
    cluster: &Cluster,
    module: &str,
    config_maps: &BTreeMap<Key, Box<str>>,
    kept: &[String],
) {
    for (key, uid) in config_maps {
        if kept.iter().any(|name| name == key.name()) {
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
