use innkeeper_sdk::kinds::Volume;

/// Where the content of a volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeSource {
    /// On a claim that the guest creates.
    Own {
        /// Name of the claim.
        name: String,
        /// Storage class; the cluster's default if `None`.
        class: Option<String>,
    },
    /// On a claim of this name that the guest only mounts.
    Existing(String),
    /// In the pod (emptyDir).
    Ephemeral,
}

impl VolumeSource {
    /// Returns the name of the claim.
    pub(crate) fn claim(&self) -> Option<&str> {
        match self {
            Self::Own { name, .. } | Self::Existing(name) => Some(name),
            Self::Ephemeral => None,
        }
    }

    /// Returns the volume of a pod.
    pub(crate) fn volume(&self, name: &str) -> Volume {
        match self.claim() {
            Some(claim) => Volume::of_claim(name, claim),
            None => Volume::empty(name),
        }
    }
}

impl std::fmt::Display for VolumeSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.claim() {
            Some(claim) => write!(f, "on PersistentVolumeClaim {claim}"),
            None => f.write_str("in the pod"),
        }
    }
}
