use serde::Serialize;

use super::{PortRef, Protocol};
use crate::{Apply, Labels, Metadata, Resource};

/// A Service.
#[derive(Clone, Debug, Serialize)]
pub struct Service {
    /// Its metadata.
    pub metadata: Metadata,
    /// Which pods it serves, and how.
    pub spec: ServiceSpec,
}

/// Which pods a Service serves, and how.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Pods with all of these labels.
    pub selector: Labels,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// From where it can be reached; inside the cluster if left out.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ServiceType>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Its name; needed where there are several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its number.
    pub port: u16,
    /// Its protocol. Always given: it is part of the port's identity in a server-side apply.
    pub protocol: Protocol,
    /// The pods' port.
    pub target_port: PortRef,
}

/// From where a Service can be reached.
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
    /// A Service of the pods that carry these labels. It needs at least one port.
    pub fn new(name: impl Into<String>, selector: &Labels) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: ServiceSpec { selector: selector.clone(), ports: Vec::new(), type_: None },
        }
    }

    /// With a TCP port without a name: `port` here leads to `target` of the pods.
    pub fn port(self, port: u16, target: impl Into<PortRef>) -> Self {
        self.named_port("", port, target)
    }

    /// With a named TCP port.
    pub fn named_port(mut self, name: &str, port: u16, target: impl Into<PortRef>) -> Self {
        self.spec.ports.push(ServicePort {
            name: name.to_owned(),
            port,
            protocol: Protocol::Tcp,
            target_port: target.into(),
        });
        self
    }

    /// Reachable from there.
    pub fn type_(mut self, type_: ServiceType) -> Self {
        self.spec.type_ = Some(type_);
        self
    }
}

impl Resource for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
    const PLURAL: &'static str = "services";
}

impl Apply for Service {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
