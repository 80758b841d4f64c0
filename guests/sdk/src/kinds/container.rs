use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::{EnvFrom, EnvSource, EnvVar, Probe, Resources, SecurityContext, VolumeMount};

/// A container. [`Container::field`] sets a field that has no method here.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, Probe, Resources};
///
/// let web = Container::new("web", "nginx:1")
///     .args(["-g", "daemon off;"])
///     .env("MODE", "fast")
///     .env_from_field("POD", "metadata.name")
///     .port("http", 8080)
///     .resources(Resources::default().limit("memory", "128Mi"))
///     .startup_probe(Probe::http("/", "http"));
/// assert_eq!(web.env.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container {
    /// Name, unique in the pod.
    pub name: String,
    /// Image.
    pub image: String,
    /// When to pull the image; if `None`, the API server sets it by the image's tag.
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Command; the image's entry point if empty.
    pub command: Vec<String>,
    /// Arguments.
    pub args: Vec<String>,
    /// Environment variables.
    pub env: Vec<EnvVar>,
    /// Ports that the container listens on.
    pub ports: Vec<ContainerPort>,
    /// Mounts of the pod's volumes.
    pub volume_mounts: Vec<VolumeMount>,
    /// Readiness probe; if `None`, the container is ready as soon as it runs.
    pub readiness_probe: Option<Probe>,
    /// Liveness probe; if it fails, the kubelet restarts the container.
    pub liveness_probe: Option<Probe>,
    /// Startup probe; the other probes start when it has succeeded.
    pub startup_probe: Option<Probe>,
    /// Working directory; the image's if `None`.
    pub working_dir: Option<String>,
    /// Further fields as JSON: those that few containers have, so that only guests that set one
    /// contain the code that serializes it. Environment variables, ports and mounts above are
    /// appended to the lists here; other fields above replace the ones here.
    pub verbatim: Map<String, Value>,
}

impl Container {
    /// Creates a container with a name and an image.
    pub fn new(name: impl Into<String>, image: impl Into<String>) -> Self {
        Self { name: name.into(), image: image.into(), ..Self::default() }
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
    pub fn env_from_secret(self, name: &str, secret: &str, key: &str) -> Self {
        self.env_source(name, EnvSource::of_secret(secret, key))
    }

    /// Adds an environment variable with the value of a ConfigMap's key.
    pub fn env_from_config_map(self, name: &str, config_map: &str, key: &str) -> Self {
        self.env_source(name, EnvSource::of_config_map(config_map, key))
    }

    /// Adds an environment variable with a field of the pod (`metadata.name`, `status.podIP`).
    pub fn env_from_field(self, name: &str, path: &str) -> Self {
        self.env_source(name, EnvSource::of_field(path))
    }

    /// Adds an environment variable with this source.
    pub fn env_source(mut self, name: &str, source: EnvSource) -> Self {
        let name = name.to_owned();
        self.env.push(EnvVar { name, value: None, value_from: Some(source) });
        self
    }

    /// Adds one environment variable per key of a Secret or ConfigMap.
    pub fn env_from(mut self, source: EnvFrom) -> Self {
        let list = self.verbatim.entry("envFrom").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(source.into());
        }
        self
    }

    /// Sets the compute resources.
    pub fn resources(self, resources: Resources) -> Self {
        self.field("resources", resources)
    }

    /// Sets the rights of the processes.
    pub fn security_context(self, context: SecurityContext) -> Self {
        self.field("securityContext", context)
    }

    /// Sets a field that has no method here, as JSON. See [`verbatim`](Self::verbatim) for a field
    /// that has one.
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.verbatim.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a TCP port; an empty `name` gives it none.
    pub fn port(self, name: &str, number: u16) -> Self {
        self.add_port(name, number, Protocol::Tcp)
    }

    /// Adds a UDP port; an empty `name` gives it none.
    pub fn udp_port(self, name: &str, number: u16) -> Self {
        self.add_port(name, number, Protocol::Udp)
    }

    fn add_port(mut self, name: &str, number: u16, protocol: Protocol) -> Self {
        self.ports.push(ContainerPort { name: name.to_owned(), container_port: number, protocol });
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

    setters! {
        /// Sets when to pull the image.
        image_pull_policy(image_pull_policy: ImagePullPolicy);
        /// Sets the readiness probe.
        readiness_probe(readiness_probe: Probe);
        /// Sets the liveness probe.
        liveness_probe(liveness_probe: Probe);
        /// Sets the startup probe.
        startup_probe(startup_probe: Probe);
        /// Sets the working directory.
        working_dir(working_dir: String);
    }
}

impl Serialize for Container {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Fields::new(serializer, &self.verbatim)?;
        let unless_empty = |list| Some(list).filter(|list: &&Vec<String>| !list.is_empty());
        fields.field("name", &self.name)?;
        fields.field("image", &self.image)?;
        fields.option("imagePullPolicy", self.image_pull_policy.as_ref())?;
        fields.option("command", unless_empty(&self.command))?;
        fields.option("args", unless_empty(&self.args))?;
        fields.list("env", &self.env, false)?;
        fields.list("ports", &self.ports, false)?;
        fields.list("volumeMounts", &self.volume_mounts, false)?;
        fields.option("readinessProbe", self.readiness_probe.as_ref())?;
        fields.option("livenessProbe", self.liveness_probe.as_ref())?;
        fields.option("startupProbe", self.startup_probe.as_ref())?;
        fields.option("workingDir", self.working_dir.as_ref())?;
        fields.end()
    }
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
