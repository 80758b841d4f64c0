use serde::Serialize;

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Volume {
    /// Its name, unique in the pod.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub source: VolumeSource,
}

/// What a volume is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum VolumeSource {
    /// A claim of the pod's namespace.
    #[serde(rename_all = "camelCase")]
    PersistentVolumeClaim {
        /// The claim.
        claim_name: String,
    },
    /// The texts of a ConfigMap, a file each.
    ConfigMap {
        /// The ConfigMap.
        name: String,
    },
    /// An empty folder that lives as long as the pod.
    EmptyDir {},
}

/// Where a container sees a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMount {
    /// The volume's name.
    pub name: String,
    /// The folder.
    pub mount_path: String,
    /// The container cannot write to it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

impl Volume {
    /// The volume behind a claim.
    pub fn of_claim(name: impl Into<String>, claim: impl Into<String>) -> Self {
        let source = VolumeSource::PersistentVolumeClaim { claim_name: claim.into() };
        Self { name: name.into(), source }
    }

    /// The texts of a ConfigMap.
    pub fn of_config_map(name: impl Into<String>, config_map: impl Into<String>) -> Self {
        Self { name: name.into(), source: VolumeSource::ConfigMap { name: config_map.into() } }
    }

    /// An empty folder.
    pub fn empty(name: impl Into<String>) -> Self {
        Self { name: name.into(), source: VolumeSource::EmptyDir {} }
    }
}
