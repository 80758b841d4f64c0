use serde::Serialize;

/// An environment variable: a value or the source of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name.
    pub name: String,
    /// Value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Source of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvSource>,
}

/// The source of an environment variable's value. Set one of the sources.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, EnvSource};
///
/// let web = Container::new("web", "nginx:1").env_source("IP", EnvSource::of_field("status.podIP"));
/// assert!(web.env[0].value_from.is_some());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvSource {
    /// Key of a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// Key of a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// Field of the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
}

/// A key of a Secret or ConfigMap in the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyRef {
    /// Name of the Secret or ConfigMap.
    pub name: String,
    /// Key.
    pub key: String,
}

/// A field of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// Path: `metadata.name`.
    pub field_path: String,
}

/// A Secret or ConfigMap whose keys become environment variables. Set one of the references.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, EnvFrom};
///
/// let web = Container::new("web", "nginx:1").env_from(EnvFrom::config_map("settings"));
/// assert_eq!(web.verbatim["envFrom"][0]["configMapRef"]["name"], "settings");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvFrom {
    /// A ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<EnvFromRef>,
    /// A Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<EnvFromRef>,
}

/// The name of a Secret or ConfigMap in the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvFromRef {
    /// Name.
    pub name: String,
}

impl EnvSource {
    /// Takes the value of a Secret's key.
    pub fn of_secret(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { secret_key_ref: Some(KeyRef::new(name, key)), ..Self::default() }
    }

    /// Takes the value of a ConfigMap's key.
    pub fn of_config_map(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { config_map_key_ref: Some(KeyRef::new(name, key)), ..Self::default() }
    }

    /// Takes a field of the pod.
    pub fn of_field(path: impl Into<String>) -> Self {
        Self { field_ref: Some(FieldRef { field_path: path.into() }), ..Self::default() }
    }
}

impl KeyRef {
    /// Refers to a key that must exist.
    pub fn new(name: impl Into<String>, key: impl Into<String>) -> Self {
        Self { name: name.into(), key: key.into() }
    }
}

into_json!(EnvFrom);

impl EnvFrom {
    /// Takes the keys of a ConfigMap.
    pub fn config_map(name: impl Into<String>) -> Self {
        let config_map_ref = Some(EnvFromRef { name: name.into() });
        Self { config_map_ref, ..Self::default() }
    }

    /// Takes the keys of a Secret. The kubelet reads the Secret; the guest does not.
    pub fn secret(name: impl Into<String>) -> Self {
        Self { secret_ref: Some(EnvFromRef { name: name.into() }), ..Self::default() }
    }
}
