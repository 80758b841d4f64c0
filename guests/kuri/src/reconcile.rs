use innkeeper_sdk::kinds::Job;
use innkeeper_sdk::{
    Condition, Context, Describe, Desired, Manifest, Observed, Outcome, Policy, Reconciler,
    condition, names, read,
};

use crate::clean_up::{CleanUp, clean_up, cleaning_up, job_not_applied, unreadable};
use crate::job::job;
use crate::period::Period;
use crate::periodic::{PERIODIC, PeriodicKuri};
use crate::progress::progress;
use crate::{Kuri, KuriPhase, KuriSpec, Operation, Parameters};

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
        if !parameters.has(Operation::Deploy) {
            return cleanup(context, observed);
        }
        let spec = &observed.primary().spec;
        let deadline_seconds = match deadline(spec, &parameters) {
            Ok(deadline_seconds) => deadline_seconds,
            Err(message) => return Outcome::refused("InvalidDeadline", message),
        };
        match Period::of(spec.period.as_deref(), parameters.period.as_deref()) {
            Ok(Some(period)) if parameters.has(Operation::Cleanup) => {
                PeriodicKuri { context, observed, period, deadline_seconds }.outcome()
            }
            Ok(Some(period)) => deploy(observed, deadline_seconds).condition(needs_cleanup(period)),
            Ok(None) => {
                let outcome = deploy(observed, deadline_seconds);
                no_longer_periodic(observed, outcome, "RunsOnce", "no period is set")
            }
            Err(message) => Outcome::refused("InvalidPeriod", message.clone())
                .condition(condition::is_false(PERIODIC, "InvalidPeriod", message)),
        }
    }
}

/// Returns the seconds until a run fails; `None` if it may take any time.
///
/// # Errors
/// What is wrong with the deadline, for users.
fn deadline(spec: &KuriSpec, parameters: &Parameters) -> Result<Option<i64>, String> {
    match spec.deadline_seconds.or(parameters.deadline_seconds) {
        Some(seconds) if seconds < 1 => Err(format!(
            "deadlineSeconds {seconds} is too short: use at least 1, or leave it out for no limit"
        )),
        seconds => Ok(seconds),
    }
}

/// Desires the Job.
fn deploy(observed: &Observed<Kuri>, deadline_seconds: Option<i64>) -> Outcome {
    let (phase, ready) = progress(observed);
    let (name, primary) = (observed.name(), observed.primary());
    Desired::new()
        // The pod template of a Job is immutable.
        .object_with(job(name, &primary.spec, deadline_seconds), [Policy::RecreateWhenImmutable])
        .status(&primary.previous_status.status(phase))
        .condition(ready)
        .complete()
}

/// Returns the condition of a Kuri with a period in a module that does not clean up.
fn needs_cleanup(period: Period) -> Condition {
    let message = format!(
        "the Job runs once and not every {period}: a run after the first needs the operation `cleanup`; add it to the Module's spec.parameters.operations"
    );
    condition::is_false(PERIODIC, "PeriodNeedsCleanup", message)
}

/// Adds the condition `Periodic` with the status `False` if the Kuri has had it.
fn no_longer_periodic(
    observed: &Observed<Kuri>,
    outcome: Outcome,
    reason: &str,
    message: &str,
) -> Outcome {
    if observed.primary().previous_status.has_periodic {
        outcome.condition(condition::is_false(PERIODIC, reason, message))
    } else {
        outcome
    }
}

/// Deletes the Job, and reports when its pods are deleted too.
fn cleanup(context: &Context, observed: &Observed<Kuri>) -> Outcome {
    let outcome = match clean_up(context, observed) {
        Ok(CleanUp::Done) => with_status(
            observed,
            KuriPhase::Clean,
            condition::ready(
                "Clean",
                "the Job and its pods are deleted; the Module has no operation `deploy`",
            ),
        )
        .complete(),
        Ok(CleanUp::InProgress) => {
            with_status(observed, KuriPhase::Cleanup, cleaning_up()).complete()
        }
        Ok(CleanUp::JobNotApplied) => {
            with_status(observed, KuriPhase::Cleanup, job_not_applied(observed.name())).complete()
        }
        Err(error) => return unreadable(&error),
    };
    no_longer_periodic(observed, outcome, "Stopped", "the Module has no operation `deploy`")
}

/// Deletes the Job of a deleted Kuri, and ends the finalization when its pods are deleted too.
fn finalize(context: &Context, observed: &Observed<Kuri>, parameters: &Parameters) -> Outcome {
    let outcome = if parameters.has(Operation::Cleanup) {
        match clean_up(context, observed) {
            // If the Kuri waited for a Job that the host does not delete, it would wait for ever.
            Ok(CleanUp::Done | CleanUp::JobNotApplied) => {
                with_status(observed, KuriPhase::Clean, cleaning_up()).finalized().complete()
            }
            Ok(CleanUp::InProgress) => {
                with_status(observed, KuriPhase::Cleanup, cleaning_up()).complete()
            }
            Err(error) => return unreadable(&error),
        }
    } else {
        // The garbage collector deletes the Job after the Kuri.
        with_status(observed, KuriPhase::Cleanup, cleaning_up())
            .keep::<Job>("", observed.name())
            .finalized()
            .complete()
    };
    no_longer_periodic(observed, outcome, "Stopped", "the Kuri is being deleted")
}

fn with_status(observed: &Observed<Kuri>, phase: KuriPhase, ready: Condition) -> Desired {
    Desired::new().status(&observed.primary().previous_status.status(phase)).condition(ready)
}
