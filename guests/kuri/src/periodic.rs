//! A periodic Kuri: when its Job has ended and the period since the Job's start has passed, the
//! guest deletes the Job, waits until the pods are deleted too, and creates the Job again.
//!
//! The times come from the Job: the CustomResourceDefinition of the original operator may prune the
//! status. A run that an outage has delayed starts once.

use std::time::Duration;

use innkeeper_sdk::{Condition, Context, Desired, Observed, Outcome, Time, condition};

use crate::clean_up::{Leftover, leftover, unreadable};
use crate::job::{self, ObservedJob};
use crate::period::Period;
use crate::previous_status::PreviousStatus;
use crate::progress::progress;
use crate::{Kuri, KuriPhase, KuriResult, KuriRun};

/// Type of the condition that tells whether the Job runs once each period.
pub(crate) const PERIODIC: &str = "Periodic";

/// Seconds until the next run of the guest when the status has to show the ended run first.
const UNTIL_REPORTED_SECONDS: u32 = 1;

/// How long the Job of an ended run is kept when the status never shows a run.
const UNREPORTED: Duration = Duration::from_secs(10);

/// A Kuri with a period.
pub(crate) struct PeriodicKuri<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) observed: &'a Observed<'a, Kuri>,
    pub(crate) period: Period<'a>,
    pub(crate) deadline_seconds: Option<i64>,
}

impl PeriodicKuri<'_> {
    /// Returns the outcome.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.observed.owned::<ObservedJob>(self.observed.name()).map(|job| job.object) {
            None => self.without_job(),
            Some(job) if job.is_terminating() => {
                let job = format!("Job {}", self.observed.name());
                self.waits_for(&self.previous_status(), &job).complete()
            }
            Some(job) => self.with_job(&job),
        }
    }

    /// Creates the Job when no pod of the one before is left.
    fn without_job(&self) -> Outcome {
        let (name, spec) = (self.observed.name(), &self.observed.primary().spec);
        let job = match leftover(self.context, self.observed) {
            Ok(Leftover::Nothing) => match self.next_after_last() {
                Some((phase, due)) => return self.waits_until(phase, due),
                None => job::periodic(job::job(name, spec, self.deadline_seconds)),
            },
            // The host reports that the name is taken, or adopts the Job.
            Ok(Leftover::UnownedJob(found)) => found.desired(self.deadline_seconds),
            Ok(Leftover::Pod(pod)) => {
                return self.waits_for(&self.previous_status(), &format!("Pod {pod}")).complete();
            }
            Err(error) => return unreadable(&error),
        };
        let status = self.previous_status().status(KuriPhase::Setup);
        Desired::new()
            .object(job)
            .status(&status)
            .condition(self.last_result())
            .condition(self.scheduled())
            .complete()
    }

    /// Returns how the last run ended, and when the next one is due if that is in the future:
    /// somebody else has deleted the Job of the last run.
    fn next_after_last(&self) -> Option<(KuriPhase, Time)> {
        let last = self.observed.primary().previous_status.history.first()?;
        let (now, start) = (self.context.now(), Time::parse(&last.start)?);
        let due = start.after(self.period.length);
        // A time in the future is not one that this guest has reported.
        (start <= now && now < due).then_some((phase_of(last), due))
    }

    /// Desires no Job until the next run is due.
    fn waits_until(&self, phase: KuriPhase, due: Time) -> Outcome {
        let mut status = self.previous_status().status(phase);
        status.next_run = Some(due.to_string());
        Desired::new()
            .status(&status)
            .condition(self.last_result())
            .condition(self.scheduled())
            .requeue_after(seconds(self.context.now().until(due)))
            .complete()
    }

    fn with_job(&self, job: &ObservedJob) -> Outcome {
        let mut reported = self.previous_status();
        let (phase, ready, run) = match job.run() {
            Some(run) => {
                let (phase, ready) = progress(self.observed);
                (phase, ready, Some(run))
            }
            None => (KuriPhase::Setup, self.last_result(), None),
        };
        if let Some(run) = &run {
            reported.add(run.clone());
        }
        let now = self.context.now();
        let due = job.created().and_then(Time::parse).map(|start| start.after(self.period.length));
        let wait = due.map(|due| now.until(due)).filter(|wait| !wait.is_zero());
        if let (Some(due), Some(run), None) = (due, &run, wait)
            && job.is_periodic()
            && self.is_reported(due, run)
        {
            return self.waits_for(&reported, &format!("Job {}", self.observed.name())).complete();
        }
        let periodic = if run.is_none() && wait.is_none() {
            let message = format!(
                "the run has not ended within the period {}; the next run starts when it has ended; to limit a run, set spec.deadlineSeconds",
                self.period
            );
            condition::is_false(PERIODIC, "RunExceedsPeriod", message)
        } else {
            self.scheduled()
        };
        let mut status = reported.status(phase);
        status.next_run = due.filter(|_| wait.is_some()).map(|due| due.to_string());
        let desired = Desired::new()
            // A changed image or command is that of the next run.
            .object(job.desired(self.deadline_seconds))
            .status(&status)
            .condition(ready)
            .condition(periodic);
        match (wait, run) {
            (Some(wait), _) => desired.requeue_after(seconds(wait)),
            (None, Some(_)) => desired.requeue_after(UNTIL_REPORTED_SECONDS),
            (None, None) => desired,
        }
        .complete()
    }

    /// Returns whether the Job of an ended run can go, since an earlier run of the guest has
    /// reported its end. A status that the CustomResourceDefinition prunes never shows it.
    fn is_reported(&self, due: Time, run: &KuriRun) -> bool {
        let reported = &self.observed.primary().previous_status;
        let ended = Time::parse(&run.end).map_or(due, |end| end.max(due));
        reported.has(run)
            || reported.has_ended_phase
            || (reported.runs.is_none() && ended.after(UNREPORTED) <= self.context.now())
    }

    /// Desires no Job: the next run starts when `left` is deleted.
    fn waits_for(&self, reported: &PreviousStatus, left: &str) -> Desired {
        let message = format!(
            "the Job runs every {}; the next run starts when {left} is deleted",
            self.period
        );
        Desired::new()
            .status(&reported.status(KuriPhase::Cleanup))
            .condition(self.last_result())
            .condition(condition::is_true(PERIODIC, "CleaningUp", message))
    }

    fn scheduled(&self) -> Condition {
        let message = format!("the Job runs every {}", self.period);
        condition::is_true(PERIODIC, "Scheduled", message)
    }

    /// Returns the condition `Ready` while no run has ended since the last report.
    fn last_result(&self) -> Condition {
        if let Some(unapplied) = self.observed.unapplied().first() {
            let message = format!("{}: {}", unapplied.reference, unapplied.message);
            return condition::not_ready(&unapplied.reason, message);
        }
        let last = self.observed.primary().previous_status.ready.clone();
        last.unwrap_or_else(|| {
            condition::not_ready("InProgress", "the first run has not ended yet")
        })
    }

    fn previous_status(&self) -> PreviousStatus {
        let mut reported = self.observed.primary().previous_status.clone();
        reported.runs.get_or_insert(0);
        reported
    }
}

fn phase_of(run: &KuriRun) -> KuriPhase {
    match run.result {
        KuriResult::Succeeded => KuriPhase::Done,
        KuriResult::Failed => KuriPhase::Failed,
    }
}

fn seconds(wait: Duration) -> u32 {
    u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1)
}
