use serde::Serialize;

/// A volume of a pod. Set one of the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Name, unique in the pod.
    pub name: String,
    /// A `PersistentVolumeClaim` of the pod's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A ConfigMap of the pod's namespace: one file per key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An empty directory that lives as long as the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirSource>,
}

/// A `PersistentVolumeClaim` as the source of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// Name of the claim.
    pub claim_name: String,
}

/// A ConfigMap as the source of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigMapSource {
    /// Name of the ConfigMap.
    pub name: String,
}

/// An empty directory as the source of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EmptyDirSource {}

/// A mount of a volume in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMount {
    /// Name of the volume.
    pub name: String,
    /// Directory in the container.
    pub mount_path: String,
    /// Whether the mount is read-only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Directory of the volume to mount, in place of its root; the kubelet creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<String>,
}

impl Volume {
    /// Creates a volume from a `PersistentVolumeClaim`.
    pub fn of_claim(name: impl Into<String>, claim: impl Into<String>) -> Self {
        let persistent_volume_claim = Some(ClaimSource { claim_name: claim.into() });
        Self { name: name.into(), persistent_volume_claim, ..Self::default() }
    }

    /// Creates a volume from a ConfigMap: one file per key.
    pub fn of_config_map(name: impl Into<String>, config_map: impl Into<String>) -> Self {
        let config_map = Some(ConfigMapSource { name: config_map.into() });
        Self { name: name.into(), config_map, ..Self::default() }
    }

    /// Creates an empty volume that lives as long as the pod.
    pub fn empty(name: impl Into<String>) -> Self {
        Self { name: name.into(), empty_dir: Some(EmptyDirSource {}), ..Self::default() }
    }
}
