//! A Service for each pod of a `StatefulSet` whose annotations ask for it.
//!
//! `service-per-pod-label` names the label that holds a pod's name, `service-per-pod-ports` the
//! ports of each Service and of the pod: `80:8080,443:8443`.

use innkeeper_sdk::kinds::Service;
use innkeeper_sdk::prelude::*;
use innkeeper_sdk::read::StatefulSet;

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = StatefulSet;

    fn describe() -> Manifest {
        Describe::reconciler_of::<StatefulSet>("service-per-pod", "1.0.0")
            .owns::<Service>()
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<StatefulSet>) -> Outcome {
        let set = observed.primary();
        let annotation = |key| set.metadata.annotations.get(key);
        let (Some(label), Some(text)) =
            (annotation("service-per-pod-label"), annotation("service-per-pod-ports"))
        else {
            return Desired::new().complete();
        };
        let Some(ports) = ports(text) else {
            let message = format!("cannot read the annotation service-per-pod-ports `{text}`");
            return Outcome::failed_permanently(
                "InvalidPorts",
                message + ": write 80:8080,443:8443",
            );
        };
        let services = (0..set.spec.replicas.unwrap_or(1)).map(|index| {
            let pod = format!("{}-{index}", observed.name());
            let service =
                Service::new(&pod, &labels([(label, &pod)])).label("app", "service-per-pod");
            ports.iter().fold(service, |service, (port, target)| {
                service.named_port(&format!("port-{port}"), *port, *target)
            })
        });
        Desired::new().objects(services).complete()
    }
}

/// Reads pairs of ports; `None` if one is not a pair of numbers.
fn ports(text: &str) -> Option<Vec<(u16, u16)>> {
    let pair = |pair: &str| {
        let (port, target) = pair.split_once(':')?;
        Some((port.trim().parse().ok()?, target.trim().parse().ok()?))
    };
    text.split(',').map(pair).collect()
}

innkeeper_sdk::export!(Guest);
