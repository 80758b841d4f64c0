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
                let message = format!("the Module's parameters do not fit: {error}");
                return Outcome::refused("BadParameters", message);
            }
        };
        if observed.is_deleting() {
            return finalize(context, observed, &parameters);
        }
        if !names::is_label_value(observed.name()) {
            let message = format!(
                "the name of a Kuri is its Job's, which is the value of a label, so it has at most {} characters",
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

/// There is a Job.
fn deploy(observed: &Observed<Kuri>) -> Outcome {
    let (phase, ready) = progress(observed);
    Desired::new()
        // A Job's template is immutable: another command is another Job.
        .object_with(
            job(observed.name(), &observed.primary().spec),
            [Policy::RecreateWhenImmutable],
        )
        .status(&KuriStatus { phase })
        .condition(ready)
        .complete()
}

/// There is none.
fn cleanup(context: &Context, observed: &Observed<Kuri>) -> Outcome {
    match is_clean(context, observed) {
        Ok(true) => said(
            KuriPhase::Clean,
            condition::ready("Clean", "the Job and its pods are gone, as the Module wants it"),
        )
        .complete(),
        Ok(false) => said(KuriPhase::Cleanup, cleaning_up()).complete(),
        Err(error) => unreadable(&error),
    }
}

/// The Kuri is being deleted.
fn finalize(context: &Context, observed: &Observed<Kuri>, parameters: &Parameters) -> Outcome {
    if !parameters.has(Operation::Cleanup) {
        // What it owns goes after it.
        return said(KuriPhase::Cleanup, cleaning_up())
            .keep::<Job>("", observed.name())
            .finalized()
            .complete();
    }
    match is_clean(context, observed) {
        Ok(true) => said(KuriPhase::Clean, cleaning_up()).finalized().complete(),
        Ok(false) => said(KuriPhase::Cleanup, cleaning_up()).complete(),
        Err(error) => unreadable(&error),
    }
}

fn said(phase: KuriPhase, ready: Condition) -> Desired {
    Desired::new().status(&KuriStatus { phase }).condition(ready)
}

fn cleaning_up() -> Condition {
    condition::not_ready("CleaningUp", "the Job and its pods are going")
}

fn unreadable(error: &ReadError) -> Outcome {
    let message = format!("whether the Job and its pods are gone cannot be told: {error}");
    Outcome::failed("Unreadable", message.clone())
        .condition(condition::not_ready("Unreadable", message))
}

/// Whether neither the Job nor a pod of it is there any more.
fn is_clean(context: &Context, observed: &Observed<Kuri>) -> Result<bool, ReadError> {
    let (namespace, name) = (observed.namespace(), observed.name());
    if observed.owned::<read::Job>(name).is_some() {
        return Ok(false);
    }
    match context.get::<read::Job>(namespace, name) {
        // Somebody else's, as are the pods that carry its name.
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

/// How far the Job is, and whether the Kuri is ready with it.
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
