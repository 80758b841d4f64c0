//! Writes everything that it reads to its status, for tests of what a module can read.
//!
//! `spec.reads` lists objects: the status contains the text of each as the host returned it, or the
//! error. `spec.looksFor` lists texts that the guest searches in its own memory. `spec.writes`
//! names a ConfigMap that the guest creates.

mod memory;

use innkeeper_sdk::kinds::ConfigMap;
use innkeeper_sdk::{
    Context, CustomResource, Describe, Desired, Manifest, Metadata, Observed, Outcome, Reconciler,
    Resource, kind,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A Reader, as the guest reads it.
#[derive(Clone, Debug, Deserialize)]
pub struct Reader {
    /// Metadata.
    pub metadata: Metadata,
    /// Spec.
    #[serde(default)]
    pub spec: ReaderSpec,
}

/// Desired state of a Reader.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ReaderSpec {
    /// Objects to read.
    #[serde(default)]
    pub reads: Vec<Read>,
    /// Texts, written backwards, that the guest searches in its whole memory after the reads.
    #[serde(default)]
    pub looks_for: Vec<String>,
    /// Name of a ConfigMap to create; none if left out.
    #[serde(default)]
    pub writes: Option<String>,
}

/// An object to read.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Read {
    /// Whether to read a Secret instead of a ConfigMap.
    #[serde(default)]
    pub secret: bool,
    /// Namespace.
    pub namespace: String,
    /// Name; all objects of the namespace if left out.
    #[serde(default)]
    pub name: Option<String>,
}

/// Observed state of a Reader.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct ReaderStatus {
    /// For each read, the text that the host returned, or the error.
    pub seen: Vec<String>,
    /// For each text of `looksFor`, whether it is in the guest's memory.
    pub held: Vec<bool>,
}

kind!(Primary for Reader, "example.innkeeper.dev/v1", "readers");

impl CustomResource for Reader {
    type Spec = ReaderSpec;
    type Status = ReaderStatus;
}

/// A Secret or a ConfigMap with all its fields.
macro_rules! whole {
    ($name:ident, $kind:literal, $plural:literal) => {
        /// All fields that the host returns.
        #[derive(Deserialize, Serialize)]
        #[serde(transparent)]
        struct $name(Value);

        kind!(Resource for $name = $kind, "v1", $plural);
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
