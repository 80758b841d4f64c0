use innkeeper_sdk::kinds::{Container, Deployment, ImagePullPolicy, PodTemplate, Service};
use innkeeper_sdk::{
    Apply, Context, Describe, Desired, Labels, Manifest, Observed, Outcome, Reconciler, labels,
    names, read,
};

use crate::{Podroute, PodrouteStatus, Route};

/// Name of the Deployment.
pub const DEPLOYMENT: &str = "pod-route";
/// Name of the Service.
pub const SERVICE: &str = "podroute-service";
/// Name of the Route.
pub const ROUTE: &str = "podroute-route";

const PORT: u16 = 8080;

/// The reconcile logic of podroute.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Podroute;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Podroute>("podroute", env!("CARGO_PKG_VERSION"))
            .owns::<Deployment>()
            .owns::<Service>()
            .owns_if_served::<Route>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Podroute>) -> Outcome {
        if !names::is_label_value(observed.name()) {
            let message = format!(
                "the name of a Podroute is the value of a label, so it has at most {} characters",
                names::LABEL_MAX
            );
            return Outcome::refused("NameTooLong", message);
        }
        let spec = &observed.primary().spec;
        let labels = labels_of(observed.name());
        Desired::new()
            .object(deployment(&spec.image, spec.replicas, &labels))
            .object(Service::new(SERVICE, &labels).port(PORT, PORT).labels(&labels))
            .object(Route::to_service(ROUTE, SERVICE, PORT).labels(&labels))
            .status(&status(observed))
            .ready_condition(observed)
            // The set of objects never changes, so the host has nothing to prune too early.
            .complete()
    }
}

/// Returns the labels of all objects of a Podroute.
fn labels_of(podroute: &str) -> Labels {
    labels([("app", "PodRoute"), ("podroute_cr", podroute), ("tier", "backend-podroute")])
}

fn deployment(image: &str, replicas: i32, labels: &Labels) -> Deployment {
    let container = Container::new("podroute-pod", image)
        .image_pull_policy(ImagePullPolicy::Always)
        .port("podroute", PORT);
    Deployment::new(DEPLOYMENT, labels, PodTemplate::new(labels).container(container))
        .replicas(replicas)
        .labels(labels)
}

fn status(observed: &Observed<Podroute>) -> PodrouteStatus {
    let deployment = observed.owned::<read::Deployment>(DEPLOYMENT);
    let status = deployment.map(|deployment| deployment.object.status).unwrap_or_default();
    PodrouteStatus { replicas: status.replicas, ready_replicas: status.ready_replicas }
}
