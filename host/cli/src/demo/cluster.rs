//! What the demo puts into a cluster: Innkeeper's definition, the guests as Modules with their rights and
//! components; and the simulated cluster.

use std::path::Path;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use innkeeper_lab::{Guests, Lab, Modules, Setup};
use innkeeper_modules::module::NAMESPACE;
use innkeeper_simulator::{Controllers, Simulator};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::teller::EARLIER;
use crate::objects;

/// A guest: its name, and its Module with account and rights.
const GUESTS: [(&str, &str); 6] = [
    ("imo", include_str!("../../../../deploy/samples/module-imo.yaml")),
    ("kabocha", include_str!("../../../../deploy/samples/module-kabocha.yaml")),
    ("kuri", include_str!("../../../../deploy/samples/module-kuri.yaml")),
    ("maintpage", include_str!("../../../../deploy/samples/module-maintpage.yaml")),
    ("podroute", include_str!("../../../../deploy/samples/module-podroute.yaml")),
    ("postgres", include_str!("../../../../deploy/samples/module-postgres.yaml")),
];
/// podroute with one more label on everything.
const SECOND: &str = "podroute-labelled";

/// The components of the guests.
pub(super) struct Components {
    guests: Vec<(&'static str, Vec<u8>)>,
    /// What replaces podroute.
    second: Vec<u8>,
}

impl Components {
    /// Those of a folder.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = folder.join(format!("{name}.wasm"));
            std::fs::read(&path).with_context(|| {
                format!("{} cannot be read: `cargo xtask guests` builds it", path.display())
            })
        };
        let mut guests = Vec::new();
        for (name, _) in GUESTS {
            guests.push((name, read(name)?));
        }
        Ok(Self { guests, second: read(SECOND)? })
    }

    /// Compiles all into the folder of `guests`.
    pub(super) fn compile(&self, guests: &Guests) -> anyhow::Result<()> {
        for (name, component) in
            self.guests.iter().map(|(name, one)| (*name, one)).chain([(SECOND, &self.second)])
        {
            guests.compile(component).with_context(|| format!("{name} cannot be compiled"))?;
        }
        Ok(())
    }

    /// The ConfigMap of podroute's second version.
    pub(super) fn second(&self) -> Value {
        config_map("podroute", &self.second)
    }
}

/// A cluster with all controllers, a little before the present time.
pub(super) fn simulator(seed: u64) -> Simulator {
    Simulator::with(seed, Timestamp::now() - EARLIER, Controllers::all())
}

/// Puts all into the cluster, and starts the operator on it.
pub(super) async fn start(
    simulator: Simulator,
    guests: &Guests,
    components: &Components,
    seed: u64,
) -> anyhow::Result<Lab> {
    let mut objects = Vec::new();
    for namespace in [innkeeper_core::host_objects::HOST_NAMESPACE, super::stories::NAMESPACE] {
        objects.push(namespace_named(namespace));
    }
    objects.extend(definition()?);
    objects.extend(modules(components)?);
    let setup = Setup { modules: Modules::OfCluster, objects, ..Setup::new(seed) };
    Ok(Lab::on(simulator, guests, setup).await?)
}

/// The definition of Module.
pub(super) fn definition() -> anyhow::Result<Vec<Value>> {
    objects::parse(&innkeeper_modules::crd_yaml()?, "the definition of Module")
}

/// The guests: components, Modules, accounts and rights.
pub(super) fn modules(components: &Components) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (name, component) in &components.guests {
        objects.push(config_map(name, component));
    }
    for (name, module) in GUESTS {
        let made = objects::parse(module, name)?;
        if made.is_empty() {
            bail!("the Module {name} has no objects");
        }
        objects.extend(made);
    }
    Ok(objects)
}

/// A namespace.
pub(super) fn namespace_named(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map(name: &str, component: &[u8]) -> Value {
    let text = base64::engine::general_purpose::STANDARD.encode(component);
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE}, "binaryData": {"guest.wasm": text}})
}
