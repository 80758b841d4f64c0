//! How the API server reaches the replicas of the host, and which certificates they show.

use innkeeper_admission::certificates::Lifetimes;
use innkeeper_admission::webhook_configuration::ClientConfig;

/// How the API server reaches the replicas of the host, and which certificates they show.
#[derive(Clone, Debug)]
pub struct AdmissionSettings {
    /// Where the replicas are reached.
    pub endpoint: AdmissionEndpoint,
    /// How long certificates are valid.
    pub lifetimes: Lifetimes,
}

/// Where the API server reaches the replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionEndpoint {
    /// At a Service in the namespace of the host.
    Service {
        /// Its name.
        name: String,
        /// Its port.
        port: u16,
    },
    /// At a URL: one host outside of the cluster. A request that it does not answer is always
    /// allowed, since nothing starts such a host again.
    Url {
        /// The URL, without the path of a policy.
        url: String,
        /// The host in it: a DNS name or an IP address.
        host: String,
    },
}

impl AdmissionSettings {
    /// The names by which the API server calls the replicas of a host in this namespace.
    pub(super) fn names(&self, namespace: &str) -> Vec<String> {
        match &self.endpoint {
            AdmissionEndpoint::Service { name, .. } => vec![format!("{name}.{namespace}.svc")],
            AdmissionEndpoint::Url { host, .. } => vec![host.clone()],
        }
    }

    /// The same for a webhook configuration.
    pub(super) fn client<'a>(&'a self, namespace: &'a str) -> ClientConfig<'a> {
        match &self.endpoint {
            AdmissionEndpoint::Service { name, port } => {
                ClientConfig::Service { namespace, name, port: *port }
            }
            AdmissionEndpoint::Url { url, .. } => ClientConfig::Url(url),
        }
    }
}
