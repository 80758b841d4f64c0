use innkeeper_sdk::kinds::{Container, JOB_NAME_LABEL, Job, JobSpec, PodTemplate, RestartPolicy};
use innkeeper_sdk::{
    Condition, Context, Describe, Desired, Manifest, Observed, Outcome, Policy, ReadError,
    Reconciler, condition, names, read,
};

use crate::{Kuri, KuriPhase, KuriSpec, KuriStatus, Operation, Parameters};

/// The reconcile logic of kuri.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = Kuri;

    fn describe() -> Manifest {
        Describe::reconciler_of::<Kuri>("kuri", env!("CARGO_PKG_VERSION"))
            .owns::<Job>()
            .reads::<read::Pod>()
            .installs(include_str!("../crd.json"))
            .parameters(Parameters::schema())
            .finalizes("")
            .resync_seconds(30)
            .manifest()
    }

    fn reconcile(context: &Context, observed: &Observed<Kuri>) -> Outcome {
        let parameters: Parameters = match observed.parameters() {
            Ok(parameters) => parameters,
            Err(error) => {
                let message = format!("the Module's spec.parameters are invalid: {error}");
                return Outcome::refused("BadParameters", message);
            }
        };
        if observed.is_deleting() {
            return finalize(context, observed, &parameters);
        }
        if !names::is_label_value(observed.name()) {
            let message = format!(
                "the name of a Kuri names its Job, which is also the value of a label: use at most {} characters",
                names::LABEL_MAX
            );
            return Outcome::refused("NameTooLong", message);
        }
        if parameters.has(Operation::Deploy) {
            deploy(observed)
        } else {
            cleanup(context, observed)
        }
    }
}

/// Desires the Job.
fn deploy(observed: &Observed<Kuri>) -> Outcome {
    let (phase, ready) = progress(observed);
    Desired::new()
        // The pod template of a Job is immutable.
        .object_with(
            job(observed.name(), &observed.primary().spec),
            [Policy::RecreateWhenImmutable],
        )
        .status(&KuriStatus { phase })
        .condition(ready)
        .complete()
}

/// Deletes the Job, and reports when its pods are deleted too.
fn cleanup(context: &Context, observed: &Observed<Kuri>) -> Outcome {
    match is_clean(context, observed) {
        Ok(true) => with_status(
            KuriPhase::Clean,
            condition::ready(
                "Clean",
                "the Job and its pods are deleted; the Module has no operation `deploy`",
            ),
        )
        .complete(),
        Ok(false) => with_status(KuriPhase::Cleanup, cleaning_up()).complete(),
        Err(error) => unreadable(&error),
    }
}

/// Deletes the Job of a deleted Kuri, and ends the finalization when its pods are deleted too.
fn finalize(context: &Context, observed: &Observed<Kuri>, parameters: &Parameters) -> Outcome {
    if !parameters.has(Operation::Cleanup) {
        // The garbage collector deletes the Job after the Kuri.
        return with_status(KuriPhase::Cleanup, cleaning_up())
            .keep::<Job>("", observed.name())
            .finalized()
            .complete();
    }
    match is_clean(context, observed) {
        Ok(true) => with_status(KuriPhase::Clean, cleaning_up()).finalized().complete(),
        Ok(false) => with_status(KuriPhase::Cleanup, cleaning_up()).complete(),
        Err(error) => unreadable(&error),
    }
}

fn with_status(phase: KuriPhase, ready: Condition) -> Desired {
    Desired::new().status(&KuriStatus { phase }).condition(ready)
}

fn cleaning_up() -> Condition {
    condition::not_ready("CleaningUp", "the Job and its pods are being deleted")
}

fn unreadable(error: &ReadError) -> Outcome {
    let message = format!("cannot check whether the Job and its pods are deleted: {error}");
    Outcome::failed("Unreadable", message.clone())
        .condition(condition::not_ready("Unreadable", message))
}

/// Returns whether neither the Job nor a pod of it exists.
fn is_clean(context: &Context, observed: &Observed<Kuri>) -> Result<bool, ReadError> {
    let (namespace, name) = (observed.namespace(), observed.name());
    if observed.owned::<read::Job>(name).is_some() {
        return Ok(false);
    }
    match context.get::<read::Job>(namespace, name) {
        // The Job of another client: pods that carry its name belong to that Job.
        Ok(_) => return Ok(true),
        Err(ReadError::NotFound) => {}
        Err(error) => return Err(error),
    }
    if !names::is_label_value(name) {
        // No Job can have this name.
        return Ok(true);
    }
    let pods = context.list::<read::Pod>(namespace, &format!("{JOB_NAME_LABEL}={name}"))?;
    Ok(pods.is_empty())
}

/// Returns the phase and the condition `Ready` from the state of the Job.
fn progress(observed: &Observed<Kuri>) -> (KuriPhase, Condition) {
    let name = observed.name();
    if let Some(unapplied) = observed.unapplied().first() {
        let message = format!("{}: {}", unapplied.reference, unapplied.message);
        return (KuriPhase::Setup, condition::not_ready(&unapplied.reason, message));
    }
    let Some(job) = observed.owned::<read::Job>(name).map(|job| job.object) else {
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

fn job(name: &str, spec: &KuriSpec) -> Job {
    let container = Container::new("kuri", &spec.image).command(&spec.command);
    let template = PodTemplate::new(&innkeeper_sdk::labels([("app", "kuri")]))
        .container(container)
        .restart_policy(RestartPolicy::Never);
    Job::new(name, JobSpec::new(template))
}
