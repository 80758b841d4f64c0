//! The guest `typed` with the builders of the SDK, to compare the sizes of the components.

use innkeeper_sdk::kinds::{Container, Deployment, PodTemplate, Service};
use innkeeper_sdk::{
    Context, Describe, Desired, Manifest, Metadata, Observed, Outcome, Reconciler, kind, labels,
    read,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Web {
    metadata: Metadata,
    spec: WebSpec,
}

#[derive(Deserialize)]
struct WebSpec {
    image: String,
    replicas: i32,
}

kind!(Primary for Web, "example.com/v1", "webs");

struct Guest;

impl Reconciler for Guest {
    type Primary = Web;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Web>("typed", env!("CARGO_PKG_VERSION"))
            .owns::<Deployment>()
            .owns::<Service>()
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Web>) -> Outcome {
        let (name, spec) = (observed.name(), &observed.primary().spec);
        let labels = labels([("app", name)]);
        let ready = observed.owned::<read::Deployment>(name);
        let ready = ready.map_or(0, |found| found.object.status.ready_replicas);
        let template =
            PodTemplate::new(&labels).container(Container::new("web", &spec.image).port("", 8080));
        Desired::new()
            .object(Deployment::new(name, &labels, template).replicas(spec.replicas))
            .object(Service::new(name, &labels).port(80, 8080))
            .status(&innkeeper_sdk::serde_json::json!({ "readyReplicas": ready }))
            .ready_condition(observed)
            .complete()
    }
}

innkeeper_sdk::export!(Guest);
