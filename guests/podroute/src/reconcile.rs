use innkeeper_sdk::kinds::{Container, Deployment, ImagePullPolicy, PodTemplate, Service};
use innkeeper_sdk::{
    Apply, Condition, Context, Describe, Desired, Labels, Manifest, Observed, Outcome, Reconciler,
    condition, labels, names, read,
};

use crate::{Parameters, Podroute, PodrouteStatus, Route};

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
            .parameters(Parameters::schema())
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
        let parameters: Parameters = match observed.parameters() {
            Ok(parameters) => parameters,
            Err(error) => {
                let message = format!("the Module's spec.parameters are invalid: {error}");
                return Outcome::refused("BadParameters", message);
            }
        };
        let spec = &observed.primary().spec;
        let Some(image) = spec.image() else { return without_image(observed) };
        let replicas = spec.replicas.unwrap_or(parameters.replicas_when_left_out);
        let labels = labels_of(observed.name());
        let desired = Desired::new()
            // As in the original, only the Route has labels of its own.
            .object(deployment(image, replicas, &labels))
            .object(Service::new(SERVICE, &labels).port(PORT, PORT))
            .object(Route::to_service(ROUTE, SERVICE, PORT).labels(&labels))
            .status(&status(observed));
        if spec.replicas.is_none() && replicas == 0 && is_ready(observed) {
            desired.condition(no_pods(observed)).complete()
        } else {
            // The set of objects never changes, so the host has nothing to prune too early.
            desired.ready_condition(observed).complete()
        }
    }
}

/// Desires nothing, and deletes nothing: the API server refuses a Deployment without an image.
fn without_image(observed: &Observed<Podroute>) -> Outcome {
    let exists = observed.owned::<read::Deployment>(DEPLOYMENT).is_some();
    let consequence =
        if exists { "the existing objects stay as they are" } else { "no object is created" };
    let message = format!(
        "spec.image is left out or empty, and a Deployment needs an image: {consequence}; set it: {}",
        patch(observed, r#""image":"REGISTRY/NAME:TAG""#)
    );
    Desired::new()
        .status(&status(observed))
        .condition(condition::not_ready("ImageMissing", message))
        .partial()
}

/// Returns whether all objects are applied and ready.
fn is_ready(observed: &Observed<Podroute>) -> bool {
    observed.unapplied().is_empty()
        && observed.is_ready::<Deployment>(DEPLOYMENT)
        && observed.is_ready::<Service>(SERVICE)
        && (!observed.is_served::<Route>() || observed.is_ready::<Route>(ROUTE))
}

/// Returns the condition `Ready` of a Podroute that has no pods because nobody asked for some.
fn no_pods(observed: &Observed<Podroute>) -> Condition {
    let message = format!(
        "all desired objects are ready, with 0 pods because spec.replicas is left out; for pods set it: {}, or set the Module's spec.parameters.replicasWhenLeftOut",
        patch(observed, r#""replicas":1"#)
    );
    condition::ready("NoPods", message)
}

/// Returns the command that sets a field of the spec.
fn patch(observed: &Observed<Podroute>, field: &str) -> String {
    let (namespace, name) = (observed.namespace(), observed.name());
    format!(
        "kubectl -n {namespace} patch podroute {name} --type merge -p '{{\"spec\":{{{field}}}}}'"
    )
}

/// Returns the labels of the pods and of the Route.
fn labels_of(podroute: &str) -> Labels {
    labels([("app", "PodRoute"), ("podroute_cr", podroute), ("tier", "backend-podroute")])
}

fn deployment(image: &str, replicas: i32, labels: &Labels) -> Deployment {
    let container = Container::new("podroute-pod", image)
        .image_pull_policy(ImagePullPolicy::Always)
        .port("podroute", PORT);
    Deployment::new(DEPLOYMENT, labels, PodTemplate::new(labels).container(container))
        .replicas(replicas)
}

fn status(observed: &Observed<Podroute>) -> PodrouteStatus {
    let deployment = observed.owned::<read::Deployment>(DEPLOYMENT);
    let status = deployment.map(|deployment| deployment.object.status).unwrap_or_default();
    PodrouteStatus { replicas: status.replicas, ready_replicas: status.ready_replicas }
}
