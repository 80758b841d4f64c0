//! What the demo creates in a cluster: the definition of Module, and the guests as Modules with
//! their rights and components.

use std::path::Path;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use innkeeper_lab::Guests;
use innkeeper_modules::module;
use serde_json::{Value, json};

use crate::objects;

/// The guests: name, and Module with account and rights.
const GUESTS: [(&str, &str); 6] = [
    ("imo", include_str!("../../../../deploy/samples/module-imo.yaml")),
    ("kabocha", include_str!("../../../../deploy/samples/module-kabocha.yaml")),
    ("kuri", include_str!("../../../../deploy/samples/module-kuri.yaml")),
    ("maintpage", include_str!("../../../../deploy/samples/module-maintpage.yaml")),
    ("podroute", include_str!("../../../../deploy/samples/module-podroute.yaml")),
    ("postgres", include_str!("../../../../deploy/samples/module-postgres.yaml")),
];
/// The candidate revision of podroute: it adds a label to every object.
const CANDIDATE: &str = "podroute-labelled";

/// The components of the guests.
pub(super) struct Components {
    guests: Vec<(&'static str, Vec<u8>)>,
    /// The candidate revision of podroute.
    candidate: Vec<u8>,
}

impl Components {
    /// Reads them from a folder.
    ///
    /// # Errors
    /// If one is missing: the command that builds it.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = folder.join(format!("{name}.wasm"));
            std::fs::read(&path).with_context(|| {
                format!(
                    "the demo cannot read the component {}; `cargo xtask guests` builds it",
                    path.display()
                )
            })
        };
        let mut guests = Vec::new();
        for (name, _) in GUESTS {
            guests.push((name, read(name)?));
        }
        Ok(Self { guests, candidate: read(CANDIDATE)? })
    }

    /// The number of components.
    pub(super) fn len(&self) -> usize {
        self.guests.len() + 1
    }

    /// Compiles each component into the folder of `guests`, and calls `step` before each.
    ///
    /// # Errors
    /// That of `step`, or the component that does not compile.
    pub(super) fn compile(
        &self,
        guests: &Guests,
        step: &mut dyn FnMut(&str) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let all = self.guests.iter().map(|(name, component)| (*name, component));
        for (index, (name, component)) in all.chain([(CANDIDATE, &self.candidate)]).enumerate() {
            step(&format!("Compiling guest {} of {}: {name}", index + 1, self.len()))?;
            guests
                .compile(component)
                .with_context(|| format!("the guest {name} does not compile"))?;
        }
        Ok(())
    }

    /// The ConfigMap of podroute with the candidate revision.
    pub(super) fn candidate(&self) -> Value {
        config_map("podroute", &self.candidate)
    }
}

/// The definition of Module.
///
/// # Errors
/// If the definition is no YAML.
pub(super) fn definition() -> anyhow::Result<Vec<Value>> {
    objects::parse(&innkeeper_modules::crd_yaml()?, "the definition of Module")
}

/// The guests: components, Modules, accounts and rights.
///
/// # Errors
/// If a manifest is no YAML.
pub(super) fn modules(components: &Components) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (name, component) in &components.guests {
        objects.push(config_map(name, component));
    }
    for (name, module) in GUESTS {
        let parsed = objects::parse(module, name)?;
        if parsed.is_empty() {
            bail!("the manifest of the Module {name} has no objects");
        }
        objects.extend(parsed);
    }
    Ok(objects)
}

/// A Namespace.
pub(super) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn config_map(name: &str, component: &[u8]) -> Value {
    let text = base64::engine::general_purpose::STANDARD.encode(component);
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": module::NAMESPACE},
        "binaryData": {"guest.wasm": text}})
}
