use serde::Serialize;

use super::PortRef;
use crate::Metadata;

/// An Ingress: HTTP routes from outside the cluster to Services.
///
/// ```
/// use innkeeper_sdk::kinds::Ingress;
///
/// let web = Ingress::new("web")
///     .class("nginx")
///     .route("example.com", "/", "web", 80)
///     .route("example.com", "/api", "api", "http")
///     .tls("example-com", ["example.com"]);
/// assert_eq!(web.spec.rules[0].http.paths.len(), 2);
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Ingress {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: IngressSpec,
}

/// The spec of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressSpec {
    /// Name of the `IngressClass`; the cluster's default class if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_class_name: Option<String>,
    /// Service for requests that match no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_backend: Option<IngressBackend>,
    /// Rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<IngressRule>,
    /// Certificates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls: Vec<IngressTls>,
}

/// The routes of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IngressRule {
    /// Host name; all hosts if empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Routes.
    pub http: IngressPaths,
}

/// Routes by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IngressPaths {
    /// Routes.
    pub paths: Vec<IngressPath>,
}

/// The route of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressPath {
    /// Path.
    pub path: String,
    /// `Prefix`, `Exact` or `ImplementationSpecific`.
    pub path_type: String,
    /// Where requests go.
    pub backend: IngressBackend,
}

/// The target of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IngressBackend {
    /// Service.
    pub service: IngressService,
}

/// A Service and its port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IngressService {
    /// Name of the Service.
    pub name: String,
    /// Port of the Service.
    pub port: IngressPort,
}

/// A port of a Service, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum IngressPort {
    /// Port number.
    Number(u16),
    /// Name of the port.
    Name(String),
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressTls {
    /// Hosts of the certificate.
    pub hosts: Vec<String>,
    /// Secret with the certificate and its key.
    pub secret_name: String,
}

impl IngressBackend {
    /// Creates a backend: a port of a Service.
    pub fn new(service: impl Into<String>, port: impl Into<PortRef>) -> Self {
        let port = match port.into() {
            PortRef::Number(number) => IngressPort::Number(number),
            PortRef::Name(name) => IngressPort::Name(name),
        };
        Self { service: IngressService { name: service.into(), port } }
    }
}

impl Ingress {
    /// Creates an Ingress without routes.
    pub fn new(name: impl Into<String>) -> Self {
        Self { metadata: Metadata::named(name), spec: IngressSpec::default() }
    }

    /// Routes requests for a host (all hosts if empty) whose path begins with `prefix` to a port of
    /// a Service.
    pub fn route(
        mut self,
        host: &str,
        prefix: &str,
        service: &str,
        port: impl Into<PortRef>,
    ) -> Self {
        let path = IngressPath {
            path: prefix.to_owned(),
            path_type: "Prefix".to_owned(),
            backend: IngressBackend::new(service, port),
        };
        match self.spec.rules.iter_mut().find(|rule| rule.host == host) {
            Some(rule) => rule.http.paths.push(path),
            None => self.spec.rules.push(IngressRule {
                host: host.to_owned(),
                http: IngressPaths { paths: vec![path] },
            }),
        }
        self
    }

    /// Adds the Secret with the certificate of these hosts.
    pub fn tls<S: Into<String>>(
        mut self,
        secret: &str,
        hosts: impl IntoIterator<Item = S>,
    ) -> Self {
        let hosts = hosts.into_iter().map(Into::into).collect();
        self.spec.tls.push(IngressTls { hosts, secret_name: secret.to_owned() });
        self
    }

    setters! {
        /// Sets the class.
        class(spec.ingress_class_name: String);
        /// Sets the Service for requests that match no rule.
        default_backend(spec.default_backend: IngressBackend);
    }
}

crate::kind!(Apply for Ingress, "networking.k8s.io/v1", "ingresses");
