use innkeeper_sdk::kinds::Pod;
use innkeeper_sdk::{Apply as _, Context, Desired, Observed, Policy, ReadError, read};

use crate::PostgreSQL;
use crate::server::PREPARE;

/// The label that the original operator put on a pod whose data it had restored.
const LABEL: (&str, &str) = ("appReady", "ok");

/// The server's pods.
pub(crate) struct Pods(Vec<read::Pod>);

impl Pods {
    /// Looks for them.
    pub(crate) fn read(
        context: &Context,
        observed: &Observed<PostgreSQL>,
    ) -> Result<Self, ReadError> {
        let selector = format!("name={}", observed.name());
        let pods = context.list::<read::Pod>(observed.namespace(), &selector)?;
        let pods = pods.into_iter().map(|pod| pod.object);
        // One that is going says nothing about the one that comes.
        Ok(Self(pods.filter(|pod| !pod.is_terminating()).collect()))
    }

    /// The pod that serves or will, and whether its data has been prepared.
    pub(crate) fn first(&self) -> Option<(&str, bool)> {
        let pod = self.0.iter().find(|pod| is_prepared(pod)).or_else(|| self.0.first())?;
        Some((&pod.metadata.name, is_prepared(pod)))
    }

    /// The label on each pod whose data has been prepared. It informs, as in the original, and
    /// gates nothing: what is not prepared does not start to serve.
    pub(crate) fn label(&self, desired: Desired) -> Desired {
        self.0.iter().filter(|pod| is_prepared(pod)).fold(desired, |desired, pod| {
            let (key, value) = LABEL;
            let labelled = Pod::of_others(&pod.metadata.name).label(key, value);
            desired.object_with(labelled, [Policy::Merge])
        })
    }
}

fn is_prepared(pod: &read::Pod) -> bool {
    pod.init_exit_code(PREPARE) == Some(0)
}
