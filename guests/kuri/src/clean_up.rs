use innkeeper_sdk::kinds::JOB_NAME_LABEL;
use innkeeper_sdk::{Condition, Context, Observed, Outcome, ReadError, condition, names, read};

use crate::Kuri;
use crate::job::ObservedJob;

/// What exists under the name of a Kuri's Job when the Kuri owns no Job.
pub(crate) enum Leftover {
    /// Neither a Job nor a pod of it.
    Nothing,
    /// A Job that the Kuri does not own: pods that carry its name belong to that Job.
    UnownedJob(Box<ObservedJob>),
    /// The pod with this name, whose Job is deleted.
    Pod(String),
}

/// Returns what exists under the name of the Job, for a Kuri that owns no Job.
///
/// # Errors
/// If the Job or its pods cannot be read.
pub(crate) fn leftover(
    context: &Context,
    observed: &Observed<Kuri>,
) -> Result<Leftover, ReadError> {
    let (namespace, name) = (observed.namespace(), observed.name());
    match context.get::<ObservedJob>(namespace, name) {
        Ok(job) => return Ok(Leftover::UnownedJob(Box::new(job.object))),
        Err(ReadError::NotFound) => {}
        Err(error) => return Err(error),
    }
    if !names::is_label_value(name) {
        // No Job can have this name.
        return Ok(Leftover::Nothing);
    }
    let pods = context.list::<read::Pod>(namespace, &format!("{JOB_NAME_LABEL}={name}"))?;
    let pod = pods.into_iter().next();
    Ok(pod.map_or(Leftover::Nothing, |pod| Leftover::Pod(pod.object.metadata.name)))
}

/// How far the clean-up of a Kuri is that desires no Job.
pub(crate) enum CleanUp {
    /// Neither the Job nor a pod of it exists.
    Done,
    /// The Job or a pod of it is being deleted.
    InProgress,
    /// The Job names the Kuri as its owner, but this module has never applied it: the host does
    /// not delete it, and the garbage collector does only when the Kuri is removed.
    JobNotApplied,
}

/// Returns how far the clean-up is.
///
/// # Errors
/// If the Job or its pods cannot be read.
pub(crate) fn clean_up(context: &Context, observed: &Observed<Kuri>) -> Result<CleanUp, ReadError> {
    if let Some(job) = observed.owned::<ObservedJob>(observed.name()).map(|job| job.object) {
        let is_deleted = job.is_applied() || job.is_terminating();
        return Ok(if is_deleted { CleanUp::InProgress } else { CleanUp::JobNotApplied });
    }
    Ok(match leftover(context, observed)? {
        Leftover::Pod(_) => CleanUp::InProgress,
        Leftover::Nothing | Leftover::UnownedJob(_) => CleanUp::Done,
    })
}

/// Returns the condition of a Kuri whose Job and pods are being deleted.
pub(crate) fn cleaning_up() -> Condition {
    condition::not_ready("CleaningUp", "the Job and its pods are being deleted")
}

/// Returns the condition of a Kuri whose Job the host does not delete.
pub(crate) fn job_not_applied(name: &str) -> Condition {
    let message = format!(
        "Job {name} names this Kuri as its owner, but this module has not applied it and does not delete it: delete it with `kubectl delete job {name}`"
    );
    condition::not_ready("JobNotApplied", message)
}

/// Returns the outcome when the Job or its pods cannot be read.
pub(crate) fn unreadable(error: &ReadError) -> Outcome {
    let message = format!("cannot check whether the Job and its pods are deleted: {error}");
    Outcome::failed("Unreadable", message.clone())
        .condition(condition::not_ready("Unreadable", message))
}
