//! Facts about the host that do not change while it runs.

use std::collections::BTreeSet;

use innkeeper_core::ObjectKey;
use innkeeper_modules::module;

/// Facts about the host that do not change while it runs.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// Its namespaces; `None` for a host with cluster-wide rights.
    namespaces: Option<HostNamespaces>,
}

/// The namespaces of a namespaced host: one that has Roles in them and no ClusterRole.
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

impl HostFacts {
    /// The facts about a namespaced host.
    pub fn within(namespaces: HostNamespaces) -> Self {
        Self { namespaces: Some(namespaces) }
    }

    /// The namespace of the ServiceAccounts that Modules name.
    pub fn account_namespace(&self) -> &str {
        self.namespaces.as_ref().map_or(module::NAMESPACE, |namespaces| &*namespaces.own)
    }

    /// Whether the host may have the right to read CustomResourceDefinitions.
    pub fn reads_definitions(&self) -> bool {
        self.namespaces.is_none()
    }

    /// The namespaces of all primaries; empty for all.
    pub fn primary_namespaces(&self) -> BTreeSet<String> {
        self.namespaces.as_ref().map(|one| one.primaries.clone()).unwrap_or_default()
    }

    /// The key and the uid of the host's Pod, if it is known.
    pub fn pod(&self) -> Option<(ObjectKey, &str)> {
        let namespaces = self.namespaces.as_ref()?;
        let pod = namespaces.pod.as_ref()?;
        Some((ObjectKey::new(&namespaces.own, &pod.name), &pod.uid))
    }
}
