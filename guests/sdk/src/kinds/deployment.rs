use serde::{Serialize, Serializer};

use super::{LabelSelector, PodTemplate};
use crate::Metadata;

/// A Deployment.
#[derive(Clone, Debug, Serialize)]
pub struct Deployment {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: DeploymentSpec,
}

/// The spec of a Deployment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// Number of pods; `None` if another field manager (an autoscaler) sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Selects the pods of the Deployment. Immutable.
    pub selector: LabelSelector,
    /// How to replace pods; the API server's default is `RollingUpdate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<DeploymentStrategy>,
    /// Template of the pods.
    pub template: PodTemplate,
}

/// How a Deployment replaces pods.
///
/// An existing Deployment with `RollingUpdate` cannot change to `Recreate`: the API server has
/// defaulted the parameters of the rolling update, rejects them together with `Recreate`, and a
/// server-side apply cannot remove them. Use `InPlace` instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentStrategy {
    /// Starts new pods before it deletes the old ones.
    RollingUpdate,
    /// Deletes an old pod first, but does not wait until it has ended (rolling update with
    /// `maxSurge: 0`, `maxUnavailable: 1`).
    InPlace,
    /// Waits until the old pods have ended before it starts new ones.
    Recreate,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StrategyFields {
    #[serde(rename = "type")]
    type_: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rolling_update: Option<RollingUpdateFields>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RollingUpdateFields {
    max_surge: i32,
    max_unavailable: i32,
}

impl Serialize for DeploymentStrategy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (type_, rolling_update) = match self {
            Self::RollingUpdate => ("RollingUpdate", None),
            Self::InPlace => {
                ("RollingUpdate", Some(RollingUpdateFields { max_surge: 0, max_unavailable: 1 }))
            }
            Self::Recreate => ("Recreate", None),
        };
        StrategyFields { type_, rolling_update }.serialize(serializer)
    }
}

impl Deployment {
    /// Creates a Deployment. The template must carry the labels of `selector`.
    pub fn new(
        name: impl Into<String>,
        selector: impl Into<LabelSelector>,
        template: PodTemplate,
    ) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: DeploymentSpec {
                replicas: None,
                selector: selector.into(),
                strategy: None,
                template,
            },
        }
    }

    /// Sets the number of pods.
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.spec.replicas = Some(replicas);
        self
    }

    /// Sets how to replace pods.
    pub fn strategy(mut self, strategy: DeploymentStrategy) -> Self {
        self.spec.strategy = Some(strategy);
        self
    }
}

crate::kind!(Apply for Deployment, "apps/v1", "deployments");
