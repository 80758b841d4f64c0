//! From a snapshot of a cluster to a plan: runs the guest and decides what to write.
//!
//! [`evaluate`] is the only code that does so. A reconcile applies its plan; a preview compares the
//! plans of two revisions; the rollback window asks whether the previous revision fails as well;
//! `innkeeper render` prints what it gives for objects from files.

mod earlier;
mod subject;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::{Desired, Event, EventType, Failure};
use innkeeper_core::consent;
use innkeeper_core::desired::{DesiredState, InvalidDesired};
use innkeeper_core::kind_masks::KindMasksError;
use innkeeper_core::ownership::ADOPT_ANNOTATION;
use innkeeper_core::plan::{self, Plan};
use innkeeper_core::primary_revision::{self, PrimaryRevisions, REVISION_TOO_LARGE, RevisionInput};
use innkeeper_core::{KindMasks, Object, ObjectRef, guest_status};
use innkeeper_sandbox::{CallError, Figures, Outcome, Run};

pub use subject::Subject;
pub use view::{ClusterView, OwnedObjects};

/// The purpose of the keyed digests of primary revisions.
pub const REVISION_DIGEST_PURPOSE: &str = "primary revision";

/// What a guest desires, checked, and what the host has to write for it.
pub struct Evaluated {
    /// Whether the guest gave everything that it desires: only then may other objects be pruned.
    pub complete: bool,
    /// Whether every declared kind could be read, see [`ClusterView::is_readable`].
    pub readable: bool,
    /// The guest's answer, for its status, conditions and Events; with an Event of the host if it
    /// cannot store the fields of the primary.
    pub answer: Desired,
    /// The fields that the run read, if the guest says so and names kinds of its manifest only.
    pub read_fields: Option<Arc<KindMasks>>,
    /// The desired objects, checked: with the primary revisions, and with earlier desired objects
    /// for the missing ones over the limit of an update group.
    pub desired: DesiredState,
    /// The writes, in order.
    pub plan: Plan,
}

/// Why an answer of the guest gives no plan.
pub enum EvaluationError {
    /// The guest reported a failure.
    Failed(Box<Failure>),
    /// The guest trapped, exceeded a limit, or gave no readable answer.
    Call(CallError),
    /// The answer breaks the contract, or desires what the Module does not allow.
    Invalid(InvalidDesired),
}

/// How an evaluation ended.
pub enum EvaluationResult {
    /// With a plan.
    Planned(Box<Evaluated>),
    /// With a failure of the guest or of its answer.
    Failed(EvaluationError),
    /// The guest read these objects, and the host has to read them live first: the answer counts
    /// for nothing.
    NeedsRead(BTreeSet<ObjectRef>),
}

/// The result of [`evaluate`].
pub struct Evaluation {
    /// The objects that the primary owns or is merged into.
    pub owned: OwnedObjects,
    /// The figures of the guest's call if it gave an answer, then those of the calls with earlier
    /// revisions.
    pub figures: Vec<Figures>,
    /// The plan, or why there is none.
    pub result: EvaluationResult,
}

/// Observes, runs the guest, and plans. Writes nothing.
///
/// Blocks for as long as the guest runs: at most its limit of time, and three times that while
/// missing objects are over the limit of an update group.
pub fn evaluate(subject: &Subject<'_>, view: &mut impl ClusterView) -> Evaluation {
    let owned = view.owned();
    let mut figures = Vec::new();
    let result = call_and_plan(subject, &owned, view, &mut figures);
    Evaluation { owned, figures, result }
}

fn call_and_plan(
    subject: &Subject<'_>,
    owned: &[(ObjectRef, Arc<Object>)],
    view: &mut impl ClusterView,
    figures: &mut Vec<Figures>,
) -> EvaluationResult {
    let called = call(subject, owned, view);
    figures.extend(called.as_ref().ok().map(|run| run.figures));
    let unknown = view.take_unknown();
    if !unknown.is_empty() {
        return EvaluationResult::NeedsRead(unknown);
    }
    let planned = called
        .map_err(EvaluationError::Call)
        .and_then(|run| plan_outcome(subject, owned, run.outcome, view, figures));
    // A call with an earlier revision may read other objects.
    let unknown = view.take_unknown();
    if !unknown.is_empty() {
        return EvaluationResult::NeedsRead(unknown);
    }
    match planned {
        Ok(evaluated) => EvaluationResult::Planned(Box::new(evaluated)),
        Err(error) => EvaluationResult::Failed(error),
    }
}

/// Gives the guest the observed document, and takes its answer.
fn call(
    subject: &Subject<'_>,
    owned: &[(ObjectRef, Arc<Object>)],
    view: &mut impl ClusterView,
) -> Result<Run, CallError> {
    let bytes_max = subject.guest.limits().memory_bytes;
    let document = view.document(subject.primary, owned, subject.unapplied, bytes_max)?;
    let mut run = subject.guest.reconcile(&document, view)?;
    view.mask(&mut run.outcome);
    Ok(run)
}

fn plan_outcome(
    subject: &Subject<'_>,
    owned: &[(ObjectRef, Arc<Object>)],
    outcome: Outcome,
    view: &mut impl ClusterView,
    figures: &mut Vec<Figures>,
) -> Result<Evaluated, EvaluationError> {
    let (complete, mut answer) = match outcome {
        Outcome::Complete(answer) => (true, answer),
        Outcome::Partial(answer) => (false, answer),
        Outcome::Failed(failure) => return Err(check_failure(failure)),
    };
    let manifest = subject.guest.manifest();
    let mut desired = DesiredState::read(&answer, manifest, subject.owner, subject.grants)
        .map_err(EvaluationError::Invalid)?;
    let read_fields = read_fields(subject, &mut answer).map_err(EvaluationError::Invalid)?;
    plan::place_values(&mut desired, &mut |object_ref| view.lookup(object_ref));
    let revisions = revisions(subject, owned, &answer);
    revisions.add_to(&mut desired).map_err(EvaluationError::Invalid)?;
    answer.events.extend(revisions.not_stored.as_deref().map(too_large));
    let readable = view.is_readable();
    let lookups: Vec<_> = desired.objects.iter().map(|one| view.lookup(&one.object_ref)).collect();
    let plan_of = |desired: &DesiredState| {
        plan::plan(&plan::Input {
            primary: subject.owner,
            desired,
            complete,
            lookups: &lookups,
            owned,
            state: subject.state,
            readable,
            deleting: subject.primary.is_terminating(),
            adopt: consent::of_user(subject.primary, ADOPT_ANNOTATION).as_deref() == Some("true"),
            now: subject.now,
        })
    };
    let mut plan = plan_of(&desired);
    if revisions.has_earlier() {
        let groups =
            primary_revision::groups_over_limit(&plan.updates, &desired, &lookups, subject.owner);
        let earlier = earlier::Earlier { subject, owned, revisions: &revisions };
        if earlier.substitute(groups, &mut desired, view, figures) {
            plan = plan_of(&desired);
        }
    }
    Ok(Evaluated { complete, readable, answer, read_fields, desired, plan })
}

/// Takes the fields that the run read out of its answer. `None` if the guest does not say, or names
/// a kind that its manifest does not: nobody knows of which kind it then read them.
///
/// # Errors
/// The first mask that is not of the format or beyond a limit, or a kind that is named twice.
fn read_fields(
    subject: &Subject<'_>,
    answer: &mut Desired,
) -> Result<Option<Arc<KindMasks>>, InvalidDesired> {
    let Some(all) = answer.read_fields.take() else { return Ok(None) };
    match subject.known_masks.read(all, subject.guest.manifest()) {
        Ok(masks) => Ok(Some(masks)),
        Err(KindMasksError::Undeclared { .. }) => Ok(None),
        Err(error) => Err(InvalidDesired::MalformedReadFields { problem: error.to_string() }),
    }
}

/// The revisions of the primary; none if the guest lets the host store none.
fn revisions(
    subject: &Subject<'_>,
    owned: &[(ObjectRef, Arc<Object>)],
    answer: &Desired,
) -> PrimaryRevisions {
    let kind = primary_revision::revision_kind(subject.guest.manifest());
    let Some((history, kind)) = answer.revision_history.as_ref().zip(kind) else {
        return PrimaryRevisions::default();
    };
    primary_revision::of(&RevisionInput {
        primary: subject.primary,
        owner: subject.owner,
        history,
        kind: &kind,
        owned,
        digest: subject.digest,
    })
}

/// The Event about fields that the host cannot store.
fn too_large(problem: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: REVISION_TOO_LARGE.to_owned(),
        message: problem.to_owned(),
    }
}

/// A failure whose status or conditions break the contract is an invalid answer.
fn check_failure(failure: Failure) -> EvaluationError {
    match guest_status::check(failure.status.as_ref(), &failure.conditions, &failure.events) {
        Ok(()) => EvaluationError::Failed(Box::new(failure)),
        Err(problem) => EvaluationError::Invalid(InvalidDesired::MalformedStatus { problem }),
    }
}
