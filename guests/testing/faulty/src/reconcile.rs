//! The guest: its manifest, and the order in which it adds objects.

use innkeeper_sdk::kinds::{
    ConfigMap, Deployment, Job, PersistentVolumeClaim, Service, StatefulSet,
};
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read;
use innkeeper_sdk::serde_json::json;
use serde::Deserialize;

use crate::bug::Bug;
use crate::note::NotedNamespace;
use crate::run::Run;
use crate::shop::Shop;

/// The parameters of the Module.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    bug: Bug,
}

/// The guest.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Shop;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Shop>("faulty", env!("CARGO_PKG_VERSION"))
            .owns::<ConfigMap>()
            .owns::<Deployment>()
            .owns::<Service>()
            .owns::<StatefulSet>()
            .owns::<PersistentVolumeClaim>()
            .owns::<Job>()
            .reads::<read::Pod>()
            .reads::<read::Secret>()
            .reads::<NotedNamespace>()
            .finalizes("")
            .parameters(json!({"type": "object", "properties": {"bug": {"type": "string"}}}))
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Shop>) -> Outcome {
        let parameters: Parameters = observed.parameters().unwrap_or_default();
        let run = Run { bug: parameters.bug, context, observed };
        if observed.is_deleting() {
            return run.deleted();
        }
        run.misbehave();
        let mut desired = run.with_settings(Desired::new());
        desired = run.with_workload(desired);
        desired = run.with_pages(desired);
        desired = run.with_storage(desired);
        desired = run.with_job(desired);
        run.with_report(desired).complete()
    }
}
