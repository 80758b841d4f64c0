use serde::Serialize;

use crate::{Labels, Metadata};

/// The pods of a workload.
#[derive(Clone, Debug, Serialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    pub metadata: Metadata,
    /// What they run.
    pub spec: PodSpec,
}

/// What a pod runs.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Its containers.
    pub containers: Vec<Container>,
    /// Containers that end before the others start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init_containers: Vec<Container>,
    /// The account that it runs as; the namespace's default if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// How long it may take to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
}

impl PodTemplate {
    /// Pods with these labels.
    pub fn new(labels: &Labels) -> Self {
        let metadata = Metadata { labels: labels.clone(), ..Metadata::default() };
        Self { metadata, spec: PodSpec::default() }
    }

    /// With this container too.
    pub fn container(mut self, container: Container) -> Self {
        self.spec.containers.push(container);
        self
    }

    /// With this init container too.
    pub fn init_container(mut self, container: Container) -> Self {
        self.spec.init_containers.push(container);
        self
    }

    /// Run as this ServiceAccount.
    pub fn service_account(mut self, name: impl Into<String>) -> Self {
        self.spec.service_account_name = Some(name.into());
        self
    }

    /// With this annotation too: a changed one rolls the pods out anew.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.insert(key.to_owned(), value.to_owned());
        self
    }
}

/// A container.
#[derive(Clone, Debug, Serialize)]
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
        self.env.push(EnvVar { name: name.to_owned(), value: value.into() });
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
}

/// A variable of a container's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvVar {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerPort {
    /// Its name, unique in the pod.
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
