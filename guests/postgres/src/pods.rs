use innkeeper_sdk::kinds::Pod;
use innkeeper_sdk::{Apply as _, Context, Desired, Observed, Policy, ReadError, one_line, read};

use crate::PostgreSQL;
use crate::server::PREPARE;

/// The label that the original operator put on a pod after restoring its data.
const LABEL: (&str, &str) = ("appReady", "ok");

/// Maximum length of the shown message of a failed init container, in characters.
const MESSAGE_MAX: usize = 1000;

/// The pods of the server that are not being deleted.
pub(crate) struct Pods(Vec<read::Pod>);

impl Pods {
    /// Lists the pods.
    ///
    /// # Errors
    /// If the pods cannot be listed.
    pub(crate) fn read(
        context: &Context,
        observed: &Observed<PostgreSQL>,
    ) -> Result<Self, ReadError> {
        let selector = format!("name={}", observed.name());
        let pods = context.list::<read::Pod>(observed.namespace(), &selector)?;
        let pods = pods.into_iter().map(|pod| pod.object);
        // A pod that is being deleted says nothing about its successor.
        Ok(Self(pods.filter(|pod| !pod.is_terminating()).collect()))
    }

    /// Returns the name of the first prepared pod, else of the first pod, and whether its data has
    /// been prepared.
    pub(crate) fn first(&self) -> Option<(&str, bool)> {
        let pod = self.0.iter().find(|pod| is_prepared(pod)).or_else(|| self.0.first())?;
        Some((&pod.metadata.name, is_prepared(pod)))
    }

    /// Returns the termination message of `prepare` in the first prepared pod; `None` if no pod is
    /// prepared.
    pub(crate) fn prepare_message(&self) -> Option<&str> {
        self.0.iter().find(|pod| is_prepared(pod))?.init_message(PREPARE)
    }

    /// Returns what the init container wrote when it failed; `None` if a pod is prepared.
    pub(crate) fn failure(&self) -> Option<String> {
        if self.0.iter().any(is_prepared) {
            return None;
        }
        let statuses = self.0.iter().flat_map(|pod| &pod.status.init_container_statuses);
        let ended = statuses
            .filter(|status| status.name == PREPARE)
            .flat_map(|status| [&status.state.terminated, &status.last_state.terminated]);
        let messages = ended.flatten().filter(|ended| ended.exit_code != 0);
        messages
            .map(|ended| one_line(&ended.message, MESSAGE_MAX))
            .find(|message| !message.is_empty())
    }

    /// Desires the label on each pod whose data has been prepared. The label is only information,
    /// as in the original operator: the server starts only after its init container.
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
