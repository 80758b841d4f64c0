//! The snapshot of an earlier revision, which a rollback makes the source of a Module.

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_core::ObjectKey;
use innkeeper_modules::chunks::{ChunkReader, ConfigMap};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::{EarlierRevision, NAMESPACE, SOURCE_KEY};
use innkeeper_modules::source::COMPONENT_BYTES_MAX;
use innkeeper_modules::{Component, Digest};

use crate::push::config_map_kind;

/// Checks that the ConfigMap of an earlier revision holds its component: a user with the right to
/// write the status of a Module must not choose its source.
///
/// # Errors
/// If it is not the module's snapshot, cannot be read, or holds another component.
pub(super) async fn check(
    client: &ApiClient,
    module: &str,
    earlier: &EarlierRevision,
) -> anyhow::Result<()> {
    let digest = check_name(module, earlier)?;
    let name = &earlier.config_map;
    let component = read(client, name).await.with_context(|| {
        format!("cannot roll back {module}: the snapshot {NAMESPACE}/{name} cannot be read")
    })?;
    if component.digest != digest {
        bail!(
            "cannot roll back {module}: the snapshot {NAMESPACE}/{name} holds {}, not {digest}, so somebody changed it; run `innkeeper push` with the component instead",
            component.digest
        );
    }
    Ok(())
}

/// Checks that the status names the ConfigMap that the host keeps the component in.
fn check_name(module: &str, earlier: &EarlierRevision) -> anyhow::Result<Digest> {
    let EarlierRevision { digest, config_map, .. } = earlier;
    let parsed = digest.parse::<Digest>().ok();
    match parsed.filter(|digest| *config_map == snapshot_name(module, *digest)) {
        Some(digest) => Ok(digest),
        None => bail!(
            "cannot roll back {module}: its status names ConfigMap {config_map} for revision {digest}, which is not its snapshot, so somebody changed the status; run `innkeeper push` with the component instead"
        ),
    }
}

async fn read(client: &ApiClient, name: &str) -> anyhow::Result<Component> {
    let first = get(client, name).await?;
    let mut reader = ChunkReader::begin(name, &first, Some(SOURCE_KEY))?;
    while let Some(chunk) = reader.wanted() {
        reader.take(&get(client, &chunk).await?)?;
    }
    Ok(reader.component(COMPONENT_BYTES_MAX)?)
}

async fn get(client: &ApiClient, name: &str) -> Result<ConfigMap, ApiError> {
    client.get_as(&config_map_kind(), &ObjectKey::new(NAMESPACE, name)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_that_names_another_config_map_is_refused() {
        let digest = "a".repeat(64);
        let earlier = |config_map: &str| EarlierRevision {
            digest: digest.clone(),
            config_map: config_map.to_owned(),
            version: String::new(),
        };
        assert!(check_name("web", &earlier("web-copy-aaaaaaaaaaaa")).is_ok());
        for config_map in ["other-copy-aaaaaaaaaaaa", "web-copy-bbbbbbbbbbbb", "web"] {
            let refused = check_name("web", &earlier(config_map)).unwrap_err().to_string();
            assert!(refused.contains("is not its snapshot"), "{refused}");
        }
    }
}
