use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Affinity, Container, PodSecurityContext, PodSpec, RestartPolicy, Toleration, Volume};
use crate::{Labels, Metadata};

/// The template of a workload's pods.
///
/// It is also a field type for the spec of a custom resource: then it holds what the user wrote,
/// verbatim, and the methods add to it.
///
/// ```
/// use innkeeper_sdk::kinds::{PodTemplate, Volume};
/// use innkeeper_sdk::serde_json::{self, json};
///
/// let template: PodTemplate = serde_json::from_value(json!({
///     "metadata": { "labels": { "app": "web" } },
///     "spec": { "hostNetwork": true, "containers": [{ "name": "web", "image": "nginx:1" }] },
/// })).unwrap();
/// let template = template.label("color", "blue").volume(Volume::empty("tmp"));
/// assert_eq!(serde_json::to_value(&template).unwrap(), json!({
///     "metadata": { "labels": { "app": "web", "color": "blue" } },
///     "spec": {
///         "hostNetwork": true,
///         "containers": [{ "name": "web", "image": "nginx:1" }],
///         "volumes": [{ "name": "tmp", "emptyDir": {} }],
///     },
/// }));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(skip_serializing_if = "Metadata::is_empty")]
    pub metadata: Metadata,
    /// Spec of the pods.
    pub spec: PodSpec,
}

impl PodTemplate {
    /// Creates a template with these labels.
    pub fn new(labels: &Labels) -> Self {
        let metadata = Metadata { labels: labels.clone(), ..Metadata::default() };
        Self { metadata, spec: PodSpec::default() }
    }

    /// Adds a container.
    pub fn container(mut self, container: Container) -> Self {
        self.spec.containers.push(container);
        self
    }

    /// Adds an init container.
    pub fn init_container(mut self, container: Container) -> Self {
        self.spec.init_containers.push(container);
        self
    }

    /// Sets the ServiceAccount.
    pub fn service_account(mut self, name: impl Into<String>) -> Self {
        self.spec.service_account_name = Some(name.into());
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.metadata.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds an annotation. Changing its value rolls out new pods.
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.metadata.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a volume.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.spec.volumes.push(volume);
        self
    }

    /// Sets the seconds that the pod has to stop.
    pub fn grace_seconds(mut self, seconds: i64) -> Self {
        self.spec.termination_grace_period_seconds = Some(seconds);
        self
    }

    /// Sets when to restart containers that have ended. Not `Always` in a Job.
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Self {
        self.spec.restart_policy = Some(policy);
        self
    }

    /// Sets the scheduling constraints.
    pub fn affinity(mut self, affinity: Affinity) -> Self {
        self.spec.affinity = Some(affinity);
        self
    }

    /// Gives the containers no environment variables of Services and no ServiceAccount token.
    pub fn isolated(mut self) -> Self {
        self.spec.enable_service_links = Some(false);
        self.spec.automount_service_account_token = Some(false);
        self
    }

    /// Requires a node with this label.
    pub fn node_label(mut self, key: &str, value: &str) -> Self {
        let selector = self.spec.verbatim.entry("nodeSelector").or_insert_with(empty_object);
        if let Value::Object(labels) = selector {
            labels.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Lets the pods run on nodes with a taint.
    pub fn toleration(self, toleration: Toleration) -> Self {
        self.append("tolerations", toleration.into())
    }

    /// Sets the rights of all containers.
    pub fn security_context(self, context: PodSecurityContext) -> Self {
        self.field("securityContext", context)
    }

    /// Adds a Secret for pulling images.
    pub fn image_pull_secret(self, name: &str) -> Self {
        self.append("imagePullSecrets", serde_json::json!({ "name": name }))
    }

    fn append(mut self, list: &str, element: Value) -> Self {
        let list = self.spec.verbatim.entry(list).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(element);
        }
        self
    }

    /// Sets a field of the spec that has no method here, as JSON. Containers and volumes of the
    /// other methods are appended to its lists.
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.spec.verbatim.insert(name.to_owned(), value.into());
        self
    }
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

impl<'de> Deserialize<'de> for PodTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Verbatim {
            #[serde(default)]
            metadata: Metadata,
            #[serde(default)]
            spec: Map<String, Value>,
        }
        let Verbatim { metadata, spec } = Verbatim::deserialize(deserializer)?;
        Ok(Self { metadata, spec: PodSpec { verbatim: spec, ..PodSpec::default() } })
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl schemars::JsonSchema for PodTemplate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PodTemplate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let free = |description: &str| {
            serde_json::json!({
                "description": description,
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            })
        };
        schemars::json_schema!({
            "type": "object",
            "properties": {
                "metadata": free("Labels and annotations of the pods."),
                "spec": free("Spec of the pods, as in a Deployment."),
            },
        })
    }
}
