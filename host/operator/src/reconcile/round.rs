//! How a round ends, and what it found for the primary's status.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_contract::{Desired, Failure};
use innkeeper_core::desired::InvalidDesired;
use innkeeper_core::{Object, foreign, guest_status};
use innkeeper_sandbox::CallError;

use crate::evaluate::EvaluationError;
use crate::modules::granted_secrets::GrantedSecrets;
use crate::modules::health::Failing;
use crate::queue::ReconcileResult;
use crate::reconcile::problem::{Problem, Retry};
use crate::reconcile::refusal::RefusalCause;
use crate::reconcile::status_input::StatusInput;

/// The reason of a guest's failure whose own reason cannot be written to a condition.
const GUEST_FAILED: &str = "GuestFailed";

/// How a round ended.
pub enum RoundEnd {
    /// With something to report.
    ToReport(Box<RoundReport>, AfterRound),
    /// Without: the primary is gone, cannot be read yet, is not this module's, or has lost the
    /// module's finalizer.
    NothingToReport(ReconcileResult),
}

/// What follows a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRound {
    /// Another round at once: this one wrote something, or found that its snapshot was outdated.
    AnotherRound,
    /// A later turn, since the write rate allows no more writes now.
    LaterTurn,
    /// The report: nothing is left to write for now.
    Report,
}

/// What a round found.
pub struct RoundReport {
    /// The primary in the round's snapshot.
    pub primary: Arc<Object>,
    /// What the status is made from.
    pub status_input: StatusInput,
    /// How the guest failed, if it did.
    pub failing: Option<Failing>,
    /// After which time the guest asked to run again.
    pub requeue: Option<Duration>,
    /// Whether the round ended before the guest was asked: it says nothing about the health of the
    /// module.
    pub is_blocked: bool,
    /// Whether the guest has nothing left to do for a primary that is being deleted.
    pub finalized: bool,
    /// Why the finalizer of a primary that is being deleted has to stay: kinds of which objects may
    /// exist that the host cannot see.
    pub finalizer_blockers: Vec<Problem>,
    /// Why deletions of a primary that is being deleted wait, if they do: kinds that cannot be
    /// read.
    pub prune_blockers: Vec<Problem>,
}

impl RoundReport {
    /// The report of a round that has found nothing yet.
    pub fn new(primary: &Arc<Object>) -> Box<Self> {
        Box::new(Self {
            primary: primary.clone(),
            status_input: StatusInput::default(),
            failing: None,
            requeue: None,
            is_blocked: false,
            finalized: false,
            finalizer_blockers: Vec::new(),
            prune_blockers: Vec::new(),
        })
    }

    /// The same, with the Secrets whose values every text of it masks.
    pub fn granted(mut self: Box<Self>, granted: Arc<GrantedSecrets>) -> Box<Self> {
        self.status_input.granted = granted;
        self
    }

    /// The end of a round that could not ask the guest.
    pub fn blocked(mut self: Box<Self>, problem: Problem) -> RoundEnd {
        let problem = self.status_input.granted.mask_problem(problem);
        self.status_input.problems.push(problem);
        self.is_blocked = true;
        RoundEnd::ToReport(self, AfterRound::Report)
    }

    /// Takes the guest's status, conditions and Events.
    pub fn take_answer(&mut self, answer: Desired) {
        let Desired { status, conditions, mut events, requeue_after_seconds, finalized, .. } =
            answer;
        guest_status::cut_notes(&mut events);
        self.finalized = finalized;
        self.status_input.status = Some(status.unwrap_or_default());
        self.status_input.conditions = conditions;
        self.status_input.events = events;
        self.requeue = requeue_time(requeue_after_seconds);
    }

    /// Takes why there is no plan, and gives the label by which the metrics count it: one of ours,
    /// since a guest could make any number of labels.
    pub fn take_error(&mut self, error: EvaluationError) -> &'static str {
        let is_of_objects = is_of_objects(&error);
        let (problem, label) = match error {
            EvaluationError::Failed(failure) => (self.guest_failure(*failure), GUEST_FAILED),
            EvaluationError::Call(error) => (self.call_error(&error), error.reason()),
            EvaluationError::Invalid(invalid) => (self.invalid_desired(&invalid), invalid.reason()),
        };
        // Others make objects that the primary owns, so these say nothing about the module.
        self.failing = (!is_of_objects).then(|| Failing::of(&problem));
        let refusal = is_of_objects.then_some(RefusalCause::Data);
        self.status_input.problems.push(Problem { refusal, ..problem });
        label
    }

    fn guest_failure(&mut self, failure: Failure) -> Problem {
        let Failure {
            reason,
            message,
            permanent,
            status,
            conditions,
            mut events,
            requeue_after_seconds,
        } = failure;
        guest_status::cut_notes(&mut events);
        self.status_input.status = status;
        self.status_input.conditions = conditions;
        self.status_input.events = events;
        Problem {
            refusal: None,
            object_ref: None,
            reason: if guest_status::is_reason(&reason) { reason } else { GUEST_FAILED.to_owned() },
            message: foreign::message(&message, guest_status::MESSAGE_BYTES_MAX),
            retry: match requeue_time(requeue_after_seconds) {
                Some(after) => Retry::After(after),
                None if permanent => Retry::OnChange,
                None => Retry::Backoff,
            },
        }
    }

    fn call_error(&self, error: &CallError) -> Problem {
        // The error may quote lines of the guest's log.
        let message = self.status_input.granted.mask(&format!("The guest failed: {error}"));
        Problem {
            refusal: None,
            object_ref: None,
            reason: error.reason().to_owned(),
            message: foreign::one_line(message, guest_status::MESSAGE_BYTES_MAX),
            retry: Retry::Backoff,
        }
    }

    fn invalid_desired(&self, invalid: &InvalidDesired) -> Problem {
        Problem {
            refusal: None,
            object_ref: None,
            reason: invalid.reason().to_owned(),
            message: self.status_input.granted.mask(&invalid.to_string()),
            // The same observation gives the same answer: only a change helps.
            retry: Retry::OnChange,
        }
    }
}

/// Whether the primary and its objects are the cause, which the guest has not seen.
fn is_of_objects(error: &EvaluationError) -> bool {
    matches!(error, EvaluationError::Call(CallError::ObservedTooLarge { .. }))
}

/// The time after which a guest asks to run again. Zero is none: the guest would run without end.
fn requeue_time(seconds: Option<u32>) -> Option<Duration> {
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}
