use serde::Serialize;

use super::{LabelSelector, PortRef, Protocol};
use crate::Metadata;

/// A `NetworkPolicy`: which connections pods may accept and open.
///
/// ```
/// use innkeeper_sdk::kinds::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyRule};
/// use innkeeper_sdk::labels;
///
/// let web = labels([("app", "web")]);
/// let rule = NetworkPolicyRule::default()
///     .peer(NetworkPolicyPeer::pods(&labels([("app", "proxy")])))
///     .port(8080);
/// let policy = NetworkPolicy::new("web", &web).ingress(rule).deny_egress();
/// assert_eq!(policy.spec.policy_types, ["Ingress", "Egress"]);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct NetworkPolicy {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: NetworkPolicySpec,
}

/// The spec of a `NetworkPolicy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicySpec {
    /// Selects the pods; all pods of the namespace if empty.
    pub pod_selector: LabelSelector,
    /// `Ingress`, `Egress`: the directions that the policy restricts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy_types: Vec<String>,
    /// Connections that the pods may accept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<IngressPolicyRule>,
    /// Connections that the pods may open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<EgressPolicyRule>,
}

/// Peers and ports of connections, for either direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPolicyRule {
    /// Peers; all if empty.
    pub peers: Vec<NetworkPolicyPeer>,
    /// Ports; all if empty.
    pub ports: Vec<NetworkPolicyPort>,
}

/// A rule for connections that pods accept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IngressPolicyRule {
    /// Clients; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<NetworkPolicyPeer>,
    /// Ports of the selected pods; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPolicyPort>,
}

/// A rule for connections that pods open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EgressPolicyRule {
    /// Servers; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<NetworkPolicyPeer>,
    /// Ports of the servers; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<NetworkPolicyPort>,
}

/// The other end of a connection: pods, or addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkPolicyPeer {
    /// Selects pods; of the policy's namespace unless there is a selector of namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<LabelSelector>,
    /// Selects namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// Addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_block: Option<IpBlock>,
}

/// A range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IpBlock {
    /// Range (`10.0.0.0/8`).
    pub cidr: String,
    /// Ranges within it that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

/// A port of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkPolicyPort {
    /// Protocol.
    pub protocol: Protocol,
    /// Port by number, or by name of a container's port.
    pub port: PortRef,
}

impl NetworkPolicyRule {
    /// Adds a peer.
    pub fn peer(mut self, peer: NetworkPolicyPeer) -> Self {
        self.peers.push(peer);
        self
    }

    /// Adds a TCP port.
    pub fn port(mut self, port: impl Into<PortRef>) -> Self {
        self.ports.push(NetworkPolicyPort { protocol: Protocol::Tcp, port: port.into() });
        self
    }

    /// Adds a UDP port.
    pub fn udp_port(mut self, port: impl Into<PortRef>) -> Self {
        self.ports.push(NetworkPolicyPort { protocol: Protocol::Udp, port: port.into() });
        self
    }
}

impl NetworkPolicyPeer {
    /// Pods of the policy's namespace.
    pub fn pods(selector: impl Into<LabelSelector>) -> Self {
        Self { pod_selector: Some(selector.into()), ..Self::default() }
    }

    /// All pods of the selected namespaces.
    pub fn namespaces(selector: impl Into<LabelSelector>) -> Self {
        Self { namespace_selector: Some(selector.into()), ..Self::default() }
    }

    /// Addresses (`10.0.0.0/8`).
    pub fn addresses(cidr: impl Into<String>) -> Self {
        let ip_block = Some(IpBlock { cidr: cidr.into(), except: Vec::new() });
        Self { ip_block, ..Self::default() }
    }
}

impl NetworkPolicy {
    /// Creates a policy for the selected pods. Add rules, or deny a direction.
    pub fn new(name: impl Into<String>, pods: impl Into<LabelSelector>) -> Self {
        let spec = NetworkPolicySpec {
            pod_selector: pods.into(),
            policy_types: Vec::new(),
            ingress: Vec::new(),
            egress: Vec::new(),
        };
        Self { metadata: Metadata::named(name), spec }
    }

    /// Lets the pods accept these connections, and no others without a rule.
    pub fn ingress(self, rule: NetworkPolicyRule) -> Self {
        let mut policy = self.deny_ingress();
        policy.spec.ingress.push(IngressPolicyRule { from: rule.peers, ports: rule.ports });
        policy
    }

    /// Lets the pods open these connections, and no others without a rule.
    pub fn egress(self, rule: NetworkPolicyRule) -> Self {
        let mut policy = self.deny_egress();
        policy.spec.egress.push(EgressPolicyRule { to: rule.peers, ports: rule.ports });
        policy
    }

    /// Lets the pods accept no connections without a rule.
    pub fn deny_ingress(self) -> Self {
        self.restrict("Ingress")
    }

    /// Lets the pods open no connections without a rule.
    pub fn deny_egress(self) -> Self {
        self.restrict("Egress")
    }

    fn restrict(mut self, direction: &str) -> Self {
        if !self.spec.policy_types.iter().any(|one| one == direction) {
            self.spec.policy_types.push(direction.to_owned());
        }
        self
    }
}

crate::kind!(Apply for NetworkPolicy, "networking.k8s.io/v1", "networkpolicies");
