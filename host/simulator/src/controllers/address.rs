//! Addresses of Services.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::server::Ask;

impl Cluster {
    /// Gives a Service the addresses that it asks for.
    pub(crate) fn allocate(&mut self, ask: &Ask<'_>, object: &mut Value, old: Option<&Value>) {
        if !ask.kind.is("", "Service") || !ask.target.subresource.is_empty() {
            return;
        }
        let spec = &mut object["spec"];
        if spec["type"] == "ExternalName" {
            return;
        }
        let was = old.map(|old| &old["spec"]);
        for name in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if spec.get(name).is_none()
                && let Some(value) = was.and_then(|was| was.get(name))
            {
                spec[name] = value.clone();
            }
        }
        let address = match spec["clusterIP"].as_str() {
            Some(address) if !address.is_empty() => address.to_owned(),
            _ => self.free_address(),
        };
        spec["clusterIP"] = address.as_str().into();
        spec["clusterIPs"] = json!([address]);
        if spec["ipFamilies"].is_null() {
            spec["ipFamilies"] = json!(["IPv4"]);
        }
        if spec["ipFamilyPolicy"].is_null() {
            spec["ipFamilyPolicy"] = "SingleStack".into();
        }
        let balanced =
            spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] != false;
        if balanced || spec["type"] == "NodePort" {
            self.node_ports(spec, was);
        }
    }

    fn free_address(&self) -> String {
        // By the version, so that it is the same in each run and another each time.
        let number = self.store.version() % 65_000 + 10;
        format!("10.96.{}.{}", number / 256, number % 256)
    }

    fn node_ports(&self, spec: &mut Value, was: Option<&Value>) {
        let base = 30_000 + self.store.version() % 2_000;
        let Some(ports) = spec["ports"].as_array_mut() else { return };
        for (index, port) in ports.iter_mut().enumerate() {
            if port["nodePort"].as_u64().unwrap_or(0) == 0 {
                let known = was.and_then(|was| {
                    let ports = was["ports"].as_array()?;
                    let same = ports.iter().find(|one| {
                        one["port"] == port["port"] && one["protocol"] == port["protocol"]
                    })?;
                    same["nodePort"].as_u64()
                });
                port["nodePort"] = known.unwrap_or(base + index as u64).into();
            }
        }
    }
}
