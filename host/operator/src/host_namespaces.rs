//! The namespaces of a namespaced host: one that has Roles in these namespaces and no ClusterRole.

use std::collections::BTreeSet;

/// The namespaces of a namespaced host.
#[derive(Clone, Debug)]
pub struct HostNamespaces {
    /// Its own namespace: the ServiceAccounts of the modules are here.
    pub own: String,
    /// The namespaces of all primaries.
    pub primaries: BTreeSet<String>,
    /// The Pod of the host, for Events about modules.
    pub pod: Option<HostPod>,
}

/// The Pod of the host.
#[derive(Clone, Debug)]
pub struct HostPod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}
