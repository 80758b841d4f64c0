use serde::Serialize;

use super::{PortRef, Protocol};
use crate::{Labels, Metadata};

/// A Service.
#[derive(Clone, Debug, Serialize)]
pub struct Service {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: ServiceSpec,
}

/// The spec of a Service.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Selects pods with all of these labels.
    pub selector: Labels,
    /// Ports.
    pub ports: Vec<ServicePort>,
    /// Type; `ClusterIP` if `None`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ServiceType>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name; required if the Service has several ports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Port number of the Service.
    pub port: u16,
    /// Protocol. Always serialized: it is a merge key of the list in a server-side apply.
    pub protocol: Protocol,
    /// Port of the pods.
    pub target_port: PortRef,
}

/// From where clients can reach a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ServiceType {
    /// From inside the cluster.
    ClusterIP,
    /// At a port of every node.
    NodePort,
    /// Through a load balancer of the cluster's provider.
    LoadBalancer,
}

impl Service {
    /// Creates a Service for the pods with these labels. Add at least one port.
    pub fn new(name: impl Into<String>, selector: &Labels) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: ServiceSpec { selector: selector.clone(), ports: Vec::new(), type_: None },
        }
    }

    /// Adds a TCP port without a name. `target` is the port of the pods.
    pub fn port(self, port: u16, target: impl Into<PortRef>) -> Self {
        self.named_port("", port, target)
    }

    /// Adds a named TCP port. `target` is the port of the pods.
    pub fn named_port(mut self, name: &str, port: u16, target: impl Into<PortRef>) -> Self {
        self.spec.ports.push(ServicePort {
            name: name.to_owned(),
            port,
            protocol: Protocol::Tcp,
            target_port: target.into(),
        });
        self
    }

    /// Sets the type.
    pub fn type_(mut self, type_: ServiceType) -> Self {
        self.spec.type_ = Some(type_);
        self
    }
}

crate::kind!(Apply for Service, "v1", "services");
