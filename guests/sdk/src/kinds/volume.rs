use serde::Serialize;

/// A volume of a pod: one of the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Its name, unique in the pod.
    pub name: String,
    /// A claim of the pod's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
    /// The texts of a ConfigMap, a file each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An empty folder that lives as long as the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirSource>,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSource {
    /// The claim.
    pub claim_name: String,
}

/// A ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigMapSource {
    /// The ConfigMap.
    pub name: String,
}

/// An empty folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EmptyDirSource {}

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
        let persistent_volume_claim = Some(ClaimSource { claim_name: claim.into() });
        Self { name: name.into(), persistent_volume_claim, ..Self::default() }
    }

    /// The texts of a ConfigMap.
    pub fn of_config_map(name: impl Into<String>, config_map: impl Into<String>) -> Self {
        let config_map = Some(ConfigMapSource { name: config_map.into() });
        Self { name: name.into(), config_map, ..Self::default() }
    }

    /// An empty folder.
    pub fn empty(name: impl Into<String>) -> Self {
        Self { name: name.into(), empty_dir: Some(EmptyDirSource {}), ..Self::default() }
    }
}
