use innkeeper_sdk::kinds::PortRef;
use innkeeper_sdk::{Metadata, kind};
use serde::Serialize;

/// An OpenShift Route: exposes a Service outside of the cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Route {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    pub spec: RouteSpec,
}

/// The spec of a Route.
#[derive(Clone, Debug, Serialize)]
pub struct RouteSpec {
    /// Target.
    pub to: RouteTarget,
    /// Port of the target.
    pub port: RoutePort,
}

/// The target of a Route.
#[derive(Clone, Debug, Serialize)]
pub struct RouteTarget {
    /// Kind: `Service`.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// A port of a Route's target.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutePort {
    /// Port of the pods.
    pub target_port: PortRef,
}

impl Route {
    /// Creates a Route to a port of the pods of a Service.
    pub fn to_service(
        name: impl Into<String>,
        service: impl Into<String>,
        target_port: impl Into<PortRef>,
    ) -> Self {
        Self {
            metadata: Metadata::named(name),
            spec: RouteSpec {
                to: RouteTarget { kind: "Service".to_owned(), name: service.into() },
                port: RoutePort { target_port: target_port.into() },
            },
        }
    }
}

kind!(Apply for Route, "route.openshift.io/v1", "routes");
