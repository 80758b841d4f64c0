use serde::Deserialize;

use crate::Metadata;

/// An Ingress: its metadata and the addresses of its load balancer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ingress {
    /// Metadata.
    pub metadata: Metadata,
    /// Status.
    pub status: IngressStatus,
}

/// The status of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressStatus {
    /// The load balancer.
    pub load_balancer: LoadBalancer,
}

/// A load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// Its addresses.
    pub ingress: Vec<LoadBalancerAddress>,
}

/// An address of a load balancer: an IP address or a host name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LoadBalancerAddress {
    /// IP address; empty for none.
    pub ip: String,
    /// Host name; empty for none.
    pub hostname: String,
}

crate::kind!(Primary for Ingress, "networking.k8s.io/v1", "ingresses");
