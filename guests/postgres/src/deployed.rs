use innkeeper_sdk::{Context, Labels, Observed, kind, read};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::PostgreSQL;
use crate::password::DIGEST_ANNOTATION;

/// The template of the Deployment's pods, as the guest reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Deployed {
    metadata: DeployedMetadata,
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct DeployedMetadata {
    annotations: Labels,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    template: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    metadata: TemplateMetadata,
    spec: TemplateSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateMetadata {
    annotations: Labels,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateSpec {
    volumes: Vec<TemplateVolume>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TemplateVolume {
    name: String,
    persistent_volume_claim: Option<ClaimSource>,
    empty_dir: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    claim_name: String,
}

impl Deployed {
    /// Returns the Deployment; `None` if the primary has none.
    pub(crate) fn of(observed: &Observed<PostgreSQL>) -> Option<Self> {
        Some(observed.owned::<Self>(observed.name())?.object)
    }

    /// Returns the value of this annotation of the Deployment.
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.get(key).map(String::as_str)
    }

    /// Returns the digest of the password that the pods have.
    pub(crate) fn password_digest(&self) -> Option<&str> {
        self.spec.template.metadata.annotations.get(DIGEST_ANNOTATION).map(String::as_str)
    }

    /// Returns the claim on which the volume of this name is.
    pub(crate) fn claim(&self, volume: &str) -> Option<&str> {
        let claim = self.volume(volume)?.persistent_volume_claim.as_ref()?;
        Some(&claim.claim_name)
    }

    /// Returns whether the volume of this name is in the pod (emptyDir).
    pub(crate) fn is_ephemeral(&self, volume: &str) -> bool {
        let is_ephemeral = |volume: &TemplateVolume| {
            volume.persistent_volume_claim.is_none() && volume.empty_dir.is_some()
        };
        self.volume(volume).is_some_and(is_ephemeral)
    }

    fn volume(&self, name: &str) -> Option<&TemplateVolume> {
        self.spec.template.spec.volumes.iter().find(|volume| volume.name == name)
    }
}

kind!(Resource for Deployed = "Deployment", "apps/v1", "deployments");

/// Returns whether an existing Deployment has the strategy `RollingUpdate`, because the original
/// operator created it. Its strategy cannot change to `Recreate`.
pub(crate) fn is_rolling(context: &Context, observed: &Observed<PostgreSQL>) -> bool {
    context
        .get::<read::Deployment>(observed.namespace(), observed.name())
        .is_ok_and(|deployed| deployed.object.spec.strategy.type_ == "RollingUpdate")
}
