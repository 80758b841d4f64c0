use innkeeper_sdk::kinds::PortRef;
use innkeeper_sdk::{Apply, Metadata, Resource};
use serde::Serialize;

/// An OpenShift Route: a way to a Service from outside of the cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Route {
    /// Its metadata.
    pub metadata: Metadata,
    /// Where it leads.
    pub spec: RouteSpec,
}

/// Where a Route leads.
#[derive(Clone, Debug, Serialize)]
pub struct RouteSpec {
    /// What it leads to.
    pub to: RouteTarget,
    /// Which port of it.
    pub port: RoutePort,
}

/// What a Route leads to.
#[derive(Clone, Debug, Serialize)]
pub struct RouteTarget {
    /// The kind: `Service`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// A port of a Route's target.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutePort {
    /// The pods' port.
    pub target_port: PortRef,
}

impl Route {
    /// A Route to this port of the pods behind a Service.
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

impl Resource for Route {
    const API_VERSION: &'static str = "route.openshift.io/v1";
    const KIND: &'static str = "Route";
    const PLURAL: &'static str = "routes";
}

impl Apply for Route {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}
