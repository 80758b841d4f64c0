use innkeeper_sdk::kinds::JOB_NAME_LABEL;
use innkeeper_sdk::{Condition, Context, Observed, Outcome, ReadError, condition, names, read};

use crate::Kuri;
use crate::job::ObservedJob;

/// What is left of a Job that the Kuri does not own.
pub(crate) enum Remains {
    /// Neither the Job nor a pod of it exists.
    Nothing,
    /// Another client's Job has the name: pods that carry its name belong to that Job.
    JobOfAnother(Box<ObservedJob>),
    /// The Job is deleted, and a pod of this name still exists.
    Pod(String),
}

/// Looks for the Job and its pods, for a Kuri that owns no Job.
pub(crate) fn remains(context: &Context, observed: &Observed<Kuri>) -> Result<Remains, ReadError> {
    let (namespace, name) = (observed.namespace(), observed.name());
    match context.get::<ObservedJob>(namespace, name) {
        Ok(job) => return Ok(Remains::JobOfAnother(Box::new(job.object))),
        Err(ReadError::NotFound) => {}
        Err(error) => return Err(error),
    }
    if !names::is_label_value(name) {
        // No Job can have this name.
        return Ok(Remains::Nothing);
    }
    let pods = context.list::<read::Pod>(namespace, &format!("{JOB_NAME_LABEL}={name}"))?;
    let pod = pods.into_iter().next();
    Ok(pod.map_or(Remains::Nothing, |pod| Remains::Pod(pod.object.metadata.name)))
}

/// Returns whether neither the Job nor a pod of it exists.
pub(crate) fn is_clean(context: &Context, observed: &Observed<Kuri>) -> Result<bool, ReadError> {
    if observed.owned::<ObservedJob>(observed.name()).is_some() {
        return Ok(false);
    }
    Ok(!matches!(remains(context, observed)?, Remains::Pod(_)))
}

/// Returns the condition of a Kuri whose Job and pods are being deleted.
pub(crate) fn cleaning_up() -> Condition {
    condition::not_ready("CleaningUp", "the Job and its pods are being deleted")
}

/// Returns the outcome when the Job or its pods cannot be read.
pub(crate) fn unreadable(error: &ReadError) -> Outcome {
    let message = format!("cannot check whether the Job and its pods are deleted: {error}");
    Outcome::failed("Unreadable", message.clone())
        .condition(condition::not_ready("Unreadable", message))
}
