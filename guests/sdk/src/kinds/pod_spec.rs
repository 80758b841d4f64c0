use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::{Affinity, Container, Volume};

/// The spec of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSpec {
    /// Containers.
    pub containers: Vec<Container>,
    /// Init containers, which end before the containers start.
    pub init_containers: Vec<Container>,
    /// ServiceAccount; the namespace's `default` if `None`.
    pub service_account_name: Option<String>,
    /// Seconds that the pod has to stop; the API server's default is 30.
    pub termination_grace_period_seconds: Option<i64>,
    /// When to restart containers that have ended; `Always` if `None`.
    pub restart_policy: Option<RestartPolicy>,
    /// Scheduling constraints.
    pub affinity: Option<Affinity>,
    /// Whether the containers get environment variables for the namespace's Services; they do if
    /// `None`.
    pub enable_service_links: Option<bool>,
    /// Whether the containers get the ServiceAccount's token; they do if `None`.
    pub automount_service_account_token: Option<bool>,
    /// Volumes.
    pub volumes: Vec<Volume>,
    /// Further fields as JSON. Containers, init containers and volumes above are appended to the
    /// lists here; other fields above replace the ones here. See
    /// [`PodTemplate`](super::PodTemplate).
    pub verbatim: Map<String, Value>,
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

impl Serialize for PodSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, &self.verbatim)?;
        fields.list("containers", &self.containers, true)?;
        fields.list("initContainers", &self.init_containers, false)?;
        fields.option("serviceAccountName", self.service_account_name.as_ref())?;
        fields.option(
            "terminationGracePeriodSeconds",
            self.termination_grace_period_seconds.as_ref(),
        )?;
        fields.option("restartPolicy", self.restart_policy.as_ref())?;
        fields.option("affinity", self.affinity.as_ref())?;
        fields.option("enableServiceLinks", self.enable_service_links.as_ref())?;
        fields.option(
            "automountServiceAccountToken",
            self.automount_service_account_token.as_ref(),
        )?;
        fields.list("volumes", &self.volumes, false)?;
        fields.end()
    }
}
