use serde::Serialize;
use serde_json::{Map, Value};

/// A volume of a pod. Set one of the sources; [`Volume::of_source`] takes any other one as JSON.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, PodTemplate, Volume};
///
/// let template = PodTemplate::new(&innkeeper_sdk::labels([("app", "web")]))
///     .container(Container::new("web", "nginx:1").mount_read_only("tls", "/tls").mount("tmp", "/tmp"))
///     .volume(Volume::of_secret("tls", "web-tls"))
///     .volume(Volume::in_memory("tmp", "64Mi"));
/// assert_eq!(template.spec.volumes.len(), 2);
/// ```
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
    /// A Secret of the pod's namespace: one file per key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretSource>,
    /// A path of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathSource>,
    /// Sources that have no field here, by the name of their field in Kubernetes.
    #[serde(flatten)]
    pub other_source: Map<String, Value>,
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
#[serde(rename_all = "camelCase")]
pub struct EmptyDirSource {
    /// `Memory` for the node's memory; the node's disk if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<String>,
    /// Maximum size, a quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<String>,
}

/// A Secret as the source of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretSource {
    /// Name of the Secret.
    pub secret_name: String,
}

/// A path of the node as the source of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPathSource {
    /// Path.
    pub path: String,
}

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
        Self { name: name.into(), empty_dir: Some(EmptyDirSource::default()), ..Self::default() }
    }

    /// Creates an empty volume in the node's memory. `size` is a quantity (`64Mi`).
    pub fn in_memory(name: impl Into<String>, size: impl Into<String>) -> Self {
        let source =
            EmptyDirSource { medium: Some("Memory".to_owned()), size_limit: Some(size.into()) };
        Self { name: name.into(), empty_dir: Some(source), ..Self::default() }
    }

    /// Creates a volume from a Secret: one file per key.
    pub fn of_secret(name: impl Into<String>, secret: impl Into<String>) -> Self {
        let secret = Some(SecretSource { secret_name: secret.into() });
        Self { name: name.into(), secret, ..Self::default() }
    }

    /// Creates a volume from a path of the node.
    pub fn of_host_path(name: impl Into<String>, path: impl Into<String>) -> Self {
        let host_path = Some(HostPathSource { path: path.into() });
        Self { name: name.into(), host_path, ..Self::default() }
    }

    /// Creates a volume from a source that has no method here, or with fields that none sets:
    /// `field` is the name of the source in Kubernetes, `source` its value as JSON.
    ///
    /// ```
    /// use innkeeper_sdk::kinds::Volume;
    /// use innkeeper_sdk::serde_json::json;
    ///
    /// let token = json!({ "serviceAccountToken": { "path": "token", "audience": "vault" } });
    /// let volume = Volume::of_source("token", "projected", json!({ "sources": [token] }));
    /// let secret = json!({ "secretName": "web-tls", "optional": true, "defaultMode": 256 });
    /// let optional = Volume::of_source("tls", "secret", secret);
    /// ```
    pub fn of_source(name: impl Into<String>, field: &str, source: impl Into<Value>) -> Self {
        let other_source = Map::from_iter([(field.to_owned(), source.into())]);
        Self { name: name.into(), other_source, ..Self::default() }
    }
}
