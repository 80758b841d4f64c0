//! OpenShift's router, as far as the scenarios need it: nginx that forwards by Routes.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{Kind, NodeStage};

/// The definition of Routes, which plain Kubernetes does not have, as OpenShift publishes it.
pub const ROUTES: &str = include_str!("../openshift/routes.crd.yaml");

/// The domain of hosts that a Route does not name, as an OpenShift cluster has one.
const DOMAIN: &str = "apps.example.com";

/// The pod, the ConfigMap of its configuration, and the Service by which it is reached.
const NAME: &str = "router";

/// A router for the Routes of one namespace.
pub struct Router {
    namespace: String,
    configuration: String,
}

impl Router {
    /// One that has no Route yet.
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), configuration: String::new() }
    }

    /// Follows the Routes as they are now; gives their hosts, in order. nginx is started again if
    /// they have changed.
    ///
    /// # Errors
    /// If a Route or its Service cannot be read, or nginx does not start.
    pub async fn follow(&mut self, stage: &NodeStage) -> Result<Vec<String>> {
        let (admin, ns) = (&stage.admin, &*self.namespace);
        let mut hosts = Vec::new();
        let mut configuration = String::new();
        for route in admin.list(Kind::ROUTE, ns).await? {
            let service = route["spec"]["to"]["name"].as_str().unwrap_or_default();
            let Some(service) = admin.get(Kind::SERVICE, ns, service).await? else { continue };
            let Some(port) = port(&service, &route["spec"]["port"]["targetPort"]) else { continue };
            let address = service["spec"]["clusterIP"].as_str().unwrap_or_default();
            let host = host(&route);
            // Writing into a String cannot fail.
            let _ = writeln!(
                configuration,
                "server {{ listen 80; server_name {host}; location / {{ proxy_pass http://{address}:{port}; }} }}"
            );
            hosts.push(host);
        }
        if configuration != self.configuration {
            self.start(stage, &configuration).await?;
            self.configuration = configuration;
        }
        Ok(hosts)
    }

    async fn start(&self, stage: &NodeStage, configuration: &str) -> Result<()> {
        let (admin, ns) = (&stage.admin, &*self.namespace);
        if admin.get(Kind::POD, ns, NAME).await?.is_some() {
            admin.delete(Kind::POD, ns, NAME).await?;
            admin.until_gone(2 * crate::stage::SOON, (Kind::POD, ns, NAME)).await?;
        }
        let metadata = json!({"name": NAME, "namespace": ns, "labels": {"app": NAME}});
        let objects = [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
                "data": {"routes.conf": configuration}}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
                "spec": {"selector": {"app": NAME}, "ports": [{"port": 80}]}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}],
                    "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1},
                    "volumeMounts": [{"name": "routes", "mountPath": "/etc/nginx/conf.d"}]}],
                "volumes": [{"name": "routes", "configMap": {"name": NAME}}]}}),
        ];
        for object in objects {
            admin.apply(&object.to_string()).await?;
        }
        stage.until_ready(ns, NAME).await.map(drop)
    }
}

/// The host of a Route: its own, or the one that OpenShift gives it.
fn host(route: &Value) -> String {
    if let Some(host) = route["spec"]["host"].as_str() {
        return host.to_owned();
    }
    let text = |name: &str| route["metadata"][name].as_str().unwrap_or_default();
    format!("{}-{}.{DOMAIN}", text("name"), text("namespace"))
}

/// The Service's port in front of this port of its pods: a number or a name.
fn port(service: &Value, target: &Value) -> Option<u64> {
    let ports = service["spec"]["ports"].as_array()?;
    ports.iter().find(|port| port["targetPort"] == *target)?["port"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_its_own_host_or_openshifts() {
        let mut route = json!({"metadata": {"name": "podroute-route", "namespace": "web"}});
        assert_eq!(host(&route), "podroute-route-web.apps.example.com");
        route["spec"]["host"] = "www.example.com".into();
        assert_eq!(host(&route), "www.example.com");
    }

    #[test]
    fn a_route_leads_to_the_port_whose_target_it_names() {
        let service = json!({"spec": {"ports": [
            {"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": "podroute"}]}});
        assert_eq!(port(&service, &json!(8080)), Some(80));
        assert_eq!(port(&service, &json!("podroute")), Some(81));
        assert_eq!(port(&service, &json!(9)), None);
    }
}
