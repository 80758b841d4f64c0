use serde::Serialize;

use super::{Probe, VolumeMount};

/// A container.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Its name, unique in the pod.
    pub name: String,
    /// Its image.
    pub image: String,
    /// When the image is pulled; the server decides by the image's tag if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// What it runs instead of the image's entry point.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// Ports that it listens on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ContainerPort>,
    /// Volumes of the pod that it sees, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_mounts: Vec<VolumeMount>,
    /// What tells whether it can serve; without it, it can as soon as it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
}

impl Container {
    /// A container of an image.
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

    /// Pull the image then.
    pub fn image_pull_policy(mut self, policy: ImagePullPolicy) -> Self {
        self.image_pull_policy = Some(policy);
        self
    }

    /// Run this instead of the image's entry point.
    pub fn command<S: Into<String>>(mut self, command: impl IntoIterator<Item = S>) -> Self {
        self.command = command.into_iter().map(Into::into).collect();
        self
    }

    /// With these arguments.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// With this variable too.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push(EnvVar {
            name: name.to_owned(),
            value: Some(value.into()),
            value_from: None,
        });
        self
    }

    /// With this variable too, whose value is one of a Secret. The kubelet reads it: the
    /// guest never does.
    pub fn env_from_secret(mut self, name: &str, secret: &str, key: &str) -> Self {
        let secret_key_ref = SecretKey { name: secret.to_owned(), key: key.to_owned() };
        self.env.push(EnvVar {
            name: name.to_owned(),
            value: None,
            value_from: Some(EnvSource { secret_key_ref }),
        });
        self
    }

    /// Listening on this TCP port too.
    pub fn port(mut self, name: &str, number: u16) -> Self {
        self.ports.push(ContainerPort {
            name: name.to_owned(),
            container_port: number,
            protocol: Protocol::Tcp,
        });
        self
    }

    /// Seeing this volume of the pod there too.
    pub fn mount(mut self, volume: &str, path: &str) -> Self {
        self.volume_mounts.push(VolumeMount {
            name: volume.to_owned(),
            mount_path: path.to_owned(),
            read_only: false,
        });
        self
    }

    /// Seeing this volume of the pod there too, without writing to it.
    pub fn mount_read_only(mut self, volume: &str, path: &str) -> Self {
        self.volume_mounts.push(VolumeMount {
            name: volume.to_owned(),
            mount_path: path.to_owned(),
            read_only: true,
        });
        self
    }

    /// Ready when this succeeds.
    pub fn readiness_probe(mut self, probe: Probe) -> Self {
        self.readiness_probe = Some(probe);
        self
    }
}

/// A variable of a container's environment: a value, or where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where its value comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvSource>,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvSource {
    /// A Secret's value.
    pub secret_key_ref: SecretKey,
}

/// A key of a Secret in the pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretKey {
    /// The Secret.
    pub name: String,
    /// The key.
    pub key: String,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    /// Its name, unique in the pod; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its number.
    pub container_port: u16,
    /// Its protocol. Always given: it is part of the port's identity in a server-side apply.
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

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ImagePullPolicy {
    /// At every start of a container.
    Always,
    /// Where the node lacks it.
    IfNotPresent,
    /// Not at all: the node must have it.
    Never,
}
