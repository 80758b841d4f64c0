//! Components in ConfigMaps of the modules' namespace.

use innkeeper_cluster::{ApiError, Cluster};
use innkeeper_core::{Object, ObjectKey};
use innkeeper_modules::chunks::{ChunkReader, ConfigMap, Layout};
use innkeeper_modules::module::NAMESPACE;
use innkeeper_modules::source::COMPONENT_BYTES_MAX;
use innkeeper_modules::{Component, SourceError};

use super::event::CONFIG_MAP;

/// The ConfigMaps of a source or a snapshot, by the first one; `None` if that cannot be read.
pub(super) fn chunks_of(first: &Object) -> Option<Layout> {
    let config_map: ConfigMap = serde_json::from_str(&first.text.read()).ok()?;
    config_map.chunks(first.key.name()).ok()
}

/// Reads the component in a ConfigMap of the modules' namespace, and in its further chunks.
///
/// # Errors
/// If the component is missing, malformed or cannot be read.
pub(super) async fn read_config_map(
    cluster: &Cluster,
    name: &str,
    key: Option<&str>,
) -> Result<Component, SourceError> {
    let missing = || SourceError::Missing(format!("ConfigMap {NAMESPACE}/{name}"));
    let first = get_config_map(cluster, name).await?.ok_or_else(missing)?;
    let mut reading = ChunkReader::begin(name, &first, key)?;
    while let Some(chunk) = reading.wanted() {
        let chunk = get_config_map(cluster, &chunk).await?.ok_or_else(|| reading.missing())?;
        reading.take(&chunk)?;
    }
    reading.component(COMPONENT_BYTES_MAX)
}

/// `None` if it is not there.
async fn get_config_map(cluster: &Cluster, name: &str) -> Result<Option<ConfigMap>, SourceError> {
    match cluster.host().get_as(&CONFIG_MAP, &ObjectKey::new(NAMESPACE, name)).await {
        Ok(config_map) => Ok(Some(config_map)),
        Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => Ok(None),
        Err(error) => Err(SourceError::Unreadable {
            what: format!("ConfigMap {NAMESPACE}/{name}"),
            why: error.to_string(),
        }),
    }
}
