//! Says in its status all that it is given and can read: to see what a module may see.
//!
//! `spec.reads` names objects; of each the status has the whole text that the host gave, or why it
//! gave none. `spec.looksFor` has the guest look through its own memory. `spec.writes` names a
//! ConfigMap that is made.

mod memory;

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
    Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed, Outcome, Primary,
    Reconciler, Resource,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A Reader, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Reader {
    /// Its metadata.
    pub metadata: Metadata,
    /// What is wanted.
    #[serde(default)]
    pub spec: ReaderSpec,
}

/// What is wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ReaderSpec {
    /// What to read.
    #[serde(default)]
    pub reads: Vec<Read>,
    /// Texts, written backwards, for which the guest looks in all of its memory when it has read.
    #[serde(default)]
    pub looks_for: Vec<String>,
    /// The name of a ConfigMap to make; none if left out.
    #[serde(default)]
    pub writes: Option<String>,
}

/// An object to read.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Read {
    /// Secret, or ConfigMap if left out.
    #[serde(default)]
    pub secret: bool,
    /// Its namespace.
    pub namespace: String,
    /// Its name; all of the namespace if left out.
    #[serde(default)]
    pub name: Option<String>,
}

/// What is.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ReaderStatus {
    /// For each read, what was given.
    pub seen: Vec<String>,
    /// For each text that was looked for, whether it is in the guest's memory.
    pub held: Vec<bool>,
}

impl Resource for Reader {
    const API_VERSION: &'static str = "example.innkeeper.dev/v1";
    const KIND: &'static str = "Reader";
    const PLURAL: &'static str = "readers";
}

impl Primary for Reader {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl CustomResource for Reader {
    type Spec = ReaderSpec;
    type Status = ReaderStatus;
}

/// A Secret or a ConfigMap, whole.
macro_rules! whole {
    ($name:ident, $kind:literal, $plural:literal) => {
        /// All that the host gives of it.
        #[derive(Deserialize, Serialize)]
        #[serde(transparent)]
        struct $name(Value);

        impl Resource for $name {
            const API_VERSION: &'static str = "v1";
            const KIND: &'static str = $kind;
            const PLURAL: &'static str = $plural;
        }
    };
}

whole!(Secret, "Secret", "secrets");
whole!(Map, "ConfigMap", "configmaps");

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Reader;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Reader>("reader", env!("CARGO_PKG_VERSION"))
            .owns::<ConfigMap>()
            .reads::<Secret>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Reader>) -> Outcome {
        let spec = &observed.primary().spec;
        let seen = spec.reads.iter().map(|read| {
            if read.secret { look::<Secret>(context, read) } else { look::<Map>(context, read) }
        });
        let seen = seen.collect();
        let held = spec.looks_for.iter().map(|text| memory::holds(text)).collect();
        let mut desired = Desired::new().status(&ReaderStatus { seen, held });
        if let Some(name) = &spec.writes {
            desired = desired.object(ConfigMap::new(name).data("by", observed.name()));
        }
        desired.complete()
    }
}

fn look<R>(context: &Context, read: &Read) -> String
where
    R: Resource + serde::de::DeserializeOwned + Serialize,
{
    let text = |value: &R| serde_json::to_string(value).unwrap_or_default();
    match &read.name {
        Some(name) => match context.get::<R>(&read.namespace, name) {
            Ok(found) => text(&found.object),
            Err(error) => error.to_string(),
        },
        None => match context.list::<R>(&read.namespace, "") {
            Ok(found) => found.iter().map(|one| text(&one.object)).collect::<Vec<_>>().join("\n"),
            Err(error) => error.to_string(),
        },
    }
}

innkeeper_sdk::export!(Guest);
