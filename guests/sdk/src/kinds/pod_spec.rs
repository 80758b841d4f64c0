use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{Affinity, Container, PodSecurityContext, Toleration, Volume};
use crate::Labels;

/// The spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct PodSpec {
    /// Containers.
    pub containers: Vec<Container>,
    /// Init containers, which end before the containers start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// ServiceAccount; the namespace's `default` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Seconds that the pod has to stop; the API server's default is 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// When to restart containers that have ended; `Always` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
    /// Scheduling constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Whether the containers get environment variables for the namespace's Services; they do if
    /// `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_service_links: Option<bool>,
    /// Whether the containers get the ServiceAccount's token; they do if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automount_service_account_token: Option<bool>,
    /// Volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// Labels that the pod's node must carry.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub node_selector: Labels,
    /// Taints of nodes on which the pod may run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// Rights of all containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<PodSecurityContext>,
    /// Secrets for pulling images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<ImagePullSecret>,
    /// Fields as JSON, to which the fields above are added: lists are appended, other fields
    /// replaced. See [`PodTemplate`](super::PodTemplate).
    #[serde(skip)]
    pub verbatim: Map<String, Value>,
}

/// The name of a Secret for pulling images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImagePullSecret {
    /// Name.
    pub name: String,
}

impl PodSpec {
    /// Returns whether no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// When the kubelet restarts containers that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RestartPolicy {
    /// Always.
    Always,
    /// If the container failed.
    OnFailure,
    /// Never.
    Never,
}

/// The fields without the verbatim ones.
struct Typed<'a>(&'a PodSpec);

impl Serialize for Typed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PodSpec::serialize(self.0, serializer)
    }
}

impl Serialize for PodSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.verbatim.is_empty() {
            return Self::serialize(self, serializer);
        }
        self.joined().map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl PodSpec {
    /// Returns the verbatim fields with the others added. By way of text: another serializer than
    /// that of desired objects would add 50 KB to every component.
    fn joined(&self) -> serde_json::Result<Map<String, Value>> {
        let typed: Map<String, Value> =
            serde_json::from_str(&serde_json::to_string(&Typed(self))?)?;
        let mut spec = self.verbatim.clone();
        for (key, value) in typed {
            match (spec.get_mut(&key), value) {
                (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
                (_, value) => {
                    spec.insert(key, value);
                }
            }
        }
        Ok(spec)
    }
}
