//! Writes and deletes the webhook configurations of all decided policies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_admission::webhook_configuration;
use innkeeper_cluster::client::Propagation;
use innkeeper_cluster::{ApiClient, ApiError};
use innkeeper_contract::PolicyKind;
use innkeeper_core::host_objects::POLICY_PREFIX;
use innkeeper_core::well_known::POLICY_LABEL;
use innkeeper_core::{Manager, Object};
use innkeeper_modules::module;
use serde_json::Value;
use tokio::time::Instant;

use super::webhook_kinds::webhook_kind;

/// How long the host leaves a configuration alone that somebody else has changed, after it has last
/// written it itself.
const REVERT_PERIOD: Duration = Duration::from_secs(10);

/// The kind of a policy and the name of its webhook configuration.
pub(super) type ConfigurationKey = (PolicyKind, String);

/// The webhook configurations of the cluster that belong to policies, as the caches have them.
pub(super) type LiveConfigurations = BTreeMap<ConfigurationKey, LiveConfiguration>;

/// One webhook configuration of the cluster.
#[derive(Clone)]
pub(super) struct LiveConfiguration {
    pub(super) object: Arc<Object>,
    pub(super) document: Value,
}

impl LiveConfiguration {
    /// A configuration with a name that belongs to a policy; `None` for others.
    pub(super) fn of(object: &Arc<Object>) -> Option<Self> {
        object.key.name().strip_prefix(POLICY_PREFIX)?;
        let document = serde_json::from_str(&object.text.read()).ok()?;
        Some(Self { object: object.clone(), document })
    }

    /// Whether the host has made the configuration: it has the label of the host, or a Module as
    /// its owner. The name alone is no proof, and the host changes no object of somebody else.
    pub(super) fn is_of_host(&self) -> bool {
        let module = self.object.key.name().strip_prefix(POLICY_PREFIX);
        let is_module = |owner: &innkeeper_core::object::OwnerReference| {
            *owner.api_version == *module::API_VERSION && Some(&*owner.name) == module
        };
        self.object.labels.get(POLICY_LABEL) == module || self.object.owners.iter().any(is_module)
    }

    /// Whether all webhooks trust this bundle.
    pub(super) fn trusts(&self, bundle: &str) -> bool {
        let bundle = STANDARD.encode(bundle);
        let mut webhooks = self.document["webhooks"].as_array().into_iter().flatten();
        webhooks.all(|webhook| webhook["clientConfig"]["caBundle"] == *bundle)
    }
}

/// Writes and deletes webhook configurations.
pub(super) struct Configurations {
    host: ApiClient,
    /// What the host wrote last, and when.
    written: BTreeMap<ConfigurationKey, (Value, Instant)>,
}

impl Configurations {
    /// A writer that sends as the host.
    pub(super) fn new(host: ApiClient) -> Self {
        Self { host, written: BTreeMap::new() }
    }

    /// Deletes the configuration of a policy of this kind.
    ///
    /// # Errors
    /// If the request fails.
    pub(super) async fn delete(
        &mut self,
        kind: PolicyKind,
        live: &LiveConfiguration,
    ) -> Result<(), ApiError> {
        let Object { key, uid, .. } = &*live.object;
        self.written.remove(&(kind, key.name().to_string()));
        match self.host.delete(webhook_kind(kind), key, uid, Propagation::Background).await {
            Ok(_) | Err(ApiError::UidMismatch { .. }) => {
                tracing::info!(configuration = %key, "webhook configuration deleted");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the configuration of a policy of this kind, unless `live` is as `expected`. Leaves a
    /// configuration that somebody else has changed for [`REVERT_PERIOD`].
    ///
    /// # Errors
    /// If the request fails, or somebody else has an object of this name.
    pub(super) async fn write(
        &mut self,
        kind: PolicyKind,
        live: Option<&LiveConfiguration>,
        expected: &Value,
    ) -> Result<(), ApiError> {
        let name = expected["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if live.is_some_and(|live| webhook_configuration::equals(&live.document, expected)) {
            return Ok(());
        }
        let key = (kind, name.clone());
        let now = self.host.env().instant();
        let is_recent = self.written.get(&key).is_some_and(|(document, at)| {
            document == expected && now.duration_since(*at) < REVERT_PERIOD
        });
        if is_recent {
            return Ok(());
        }
        let kind = webhook_kind(kind);
        let result = match live {
            None => self.host.create(kind, "", expected).await,
            Some(live) if !live.is_of_host() => {
                let message = format!(
                    "{} {name} has no label {POLICY_LABEL}, so somebody else has made it; delete it",
                    kind.kind
                );
                return Err(ApiError::Invalid { message });
            }
            Some(live) => {
                let mut body = expected.clone();
                body["metadata"]["resourceVersion"] = (*live.object.resource_version).into();
                let written =
                    self.host.merge_patch(kind, &live.object.key, &Manager::Host, &body).await;
                written.map(|_| ())
            }
        };
        match result {
            Ok(()) => {
                tracing::info!(configuration = name, "webhook configuration written");
                self.written.insert(key, (expected.clone(), now));
                Ok(())
            }
            // The caches are behind: the next round compares with what is there.
            Err(ApiError::Conflict { .. } | ApiError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
