use serde::{Serialize, Serializer};

use super::PodTemplate;
use crate::{Apply, Labels, Metadata, Resource};

/// A Deployment.
#[derive(Clone, Debug, Serialize)]
pub struct Deployment {
    /// Its metadata.
    pub metadata: Metadata,
    /// What it runs.
    pub spec: DeploymentSpec,
}

/// What a Deployment runs.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentSpec {
    /// How many pods; left out where somebody else (an autoscaler) says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Which pods are its own. Immutable.
    pub selector: LabelSelector,
    /// How pods are replaced; the server's default is rolling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<DeploymentStrategy>,
    /// The pods.
    pub template: PodTemplate,
}

/// Objects by their labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that all must be there.
    pub match_labels: Labels,
}

/// How pods are replaced.
///
/// The server fills in parameters where a Deployment was made with a rolling update, and
/// refuses them beside `Recreate`; a server-side apply cannot take them away. So one that rolls
/// cannot be changed to `Recreate`, but to `InPlace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeploymentStrategy {
    /// New pods come before the old ones go.
    RollingUpdate,
    /// An old pod is told to go before a new one comes, which does not wait for its end.
    InPlace,
    /// The old pods are gone before new ones come.
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
    /// A Deployment of the pods that `selector` selects; the template must carry these labels.
    pub fn new(name: impl Into<String>, selector: &Labels, template: PodTemplate) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: DeploymentSpec {
                replicas: None,
                selector: LabelSelector { match_labels: selector.clone() },
                strategy: None,
                template,
            },
        }
    }

    /// This many pods.
    pub fn replicas(mut self, replicas: i32) -> Self {
        self.spec.replicas = Some(replicas);
        self
    }

    /// Replace pods this way.
    pub fn strategy(mut self, strategy: DeploymentStrategy) -> Self {
        self.spec.strategy = Some(strategy);
        self
    }
}

impl Resource for Deployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
    const PLURAL: &'static str = "deployments";
}

impl Apply for Deployment {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
