use serde::Serialize;

use super::{Probe, VolumeMount};

/// A container.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Name, unique in the pod.
    pub name: String,
    /// Image.
    pub image: String,
    /// When to pull the image; if `None`, the API server sets it by the image's tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Command; the image's entry point if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Ports that the container listens on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ContainerPort>,
    /// Mounts of the pod's volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// Readiness probe; if `None`, the container is ready as soon as it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
}

impl Container {
    /// Creates a container with a name and an image.
    pub fn new(name: impl Into<String>, image: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            image: image.into(),
            image_pull_policy: None,
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            ports: Vec::new(),
            volume_mounts: Vec::new(),
            readiness_probe: None,
        }
    }

    /// Sets when to pull the image.
    pub fn image_pull_policy(mut self, policy: ImagePullPolicy) -> Self {
        self.image_pull_policy = Some(policy);
        self
    }

    /// Sets the command, which replaces the image's entry point.
    pub fn command<S: Into<String>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.command = command.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the arguments.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push(EnvVar {
            name: name.to_owned(),
            value: Some(value.into()),
            value_from: None,
        });
        self
    }

    /// Adds an environment variable with the value of a Secret's key. The kubelet reads the Secret;
    /// the guest does not.
    pub fn env_from_secret(mut self, name: &str, secret: &str, key: &str) -> Self {
        let secret_key_ref = SecretKey { name: secret.to_owned(), key: key.to_owned() };
        self.env.push(EnvVar {
            name: name.to_owned(),
            value: None,
            value_from: Some(EnvSource { secret_key_ref }),
        });
        self
    }

    /// Adds a TCP port; an empty `name` gives it none.
    pub fn port(mut self, name: &str, number: u16) -> Self {
        self.ports.push(ContainerPort {
            name: name.to_owned(),
            container_port: number,
            protocol: Protocol::Tcp,
        });
        self
    }

    /// Mounts a volume of the pod at `path`.
    pub fn mount(mut self, volume: &str, path: &str) -> Self {
        self.volume_mounts.push(VolumeMount {
            name: volume.to_owned(),
            mount_path: path.to_owned(),
            read_only: false,
            sub_path: None,
        });
        self
    }

    /// Mounts a volume of the pod at `path`, read-only.
    pub fn mount_read_only(mut self, volume: &str, path: &str) -> Self {
        self.volume_mounts.push(VolumeMount {
            name: volume.to_owned(),
            mount_path: path.to_owned(),
            read_only: true,
            sub_path: None,
        });
        self
    }

    /// Mounts a volume of the pod as given.
    pub fn volume_mount(mut self, mount: VolumeMount) -> Self {
        self.volume_mounts.push(mount);
        self
    }

    /// Sets the readiness probe.
    pub fn readiness_probe(mut self, probe: Probe) -> Self {
        self.readiness_probe = Some(probe);
        self
    }
}

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

/// The source of an environment variable's value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvSource {
    /// Key of a Secret.
    pub secret_key_ref: SecretKey,
}

/// A key of a Secret in the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretKey {
    /// Name of the Secret.
    pub name: String,
    /// Key.
    pub key: String,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    /// Name, unique in the pod; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Port number.
    pub container_port: u16,
    /// Protocol. Always serialized: it is a merge key of the list in a server-side apply.
    pub protocol: Protocol,
}

/// A port's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Protocol {
    /// TCP.
    #[serde(rename = "TCP")]
    Tcp,
    /// UDP.
    #[serde(rename = "UDP")]
    Udp,
}

/// When the kubelet pulls an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ImagePullPolicy {
    /// At every start of the container.
    Always,
    /// If the node does not have it.
    IfNotPresent,
    /// Never: the node must have it.
    Never,
}
