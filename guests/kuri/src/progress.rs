use innkeeper_sdk::{Condition, Observed, condition};

use crate::job::ObservedJob;
use crate::{Kuri, KuriPhase};

/// Returns the phase and the condition `Ready` from the state of the Job.
pub(crate) fn progress(observed: &Observed<Kuri>) -> (KuriPhase, Condition) {
    let name = observed.name();
    if let Some(unapplied) = observed.unapplied().first() {
        let message = format!("{}: {}", unapplied.reference, unapplied.message);
        return (KuriPhase::Setup, condition::not_ready(&unapplied.reason, message));
    }
    let Some(job) = observed.owned::<ObservedJob>(name).map(|job| job.object) else {
        let message = format!("Job {name} does not exist yet");
        return (KuriPhase::Setup, condition::not_ready("InProgress", message));
    };
    if let Some(failure) = job.failure() {
        let message = format!("Job {name} has failed: {failure}");
        return (KuriPhase::Failed, condition::not_ready("Failed", message));
    }
    if job.is_complete() {
        let message = format!("Job {name} has succeeded");
        return (KuriPhase::Done, condition::ready("Succeeded", message));
    }
    let message = format!("Job {name} has not ended yet");
    (KuriPhase::Setup, condition::not_ready("InProgress", message))
}
