use innkeeper_sdk::kinds::{Container, Deployment, PodTemplate};
use innkeeper_sdk::{
    Context, Describe, Desired, Manifest, Observed, Outcome, Reconciler, labels, read,
};

use crate::{Imo, ImoPhase, ImoStatus};

const PORT: u16 = 80;

/// The reconcile logic of imo.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Imo;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Imo>("imo", env!("CARGO_PKG_VERSION"))
            .owns::<Deployment>()
            .installs(include_str!("../crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<Imo>) -> Outcome {
        Desired::new()
            .object(deployment(observed.primary()))
            .status(&status(observed))
            .ready_condition(observed)
            .complete()
    }
}

fn deployment(imo: &Imo) -> Deployment {
    // The same label for every Imo, as in the original operator: a Deployment counts only the pods
    // of its own ReplicaSets, so equal selectors do no harm.
    let labels = labels([("app", "imo")]);
    let template =
        PodTemplate::new(&labels).container(Container::new("imo", "nginx").port("", PORT));
    Deployment::new(&imo.metadata.name, &labels, template).replicas(imo.spec.size)
}

fn status(observed: &Observed<Imo>) -> ImoStatus {
    let name = observed.name();
    let deployment = observed.owned::<read::Deployment>(name);
    let status = deployment.map(|deployment| deployment.object.status).unwrap_or_default();
    ImoStatus {
        phase: if observed.is_ready::<Deployment>(name) {
            ImoPhase::Ready
        } else {
            ImoPhase::Setup
        },
        replicas: status.replicas,
        ready_replicas: status.ready_replicas,
    }
}
