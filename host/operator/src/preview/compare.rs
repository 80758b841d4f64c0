//! The difference between what a candidate and the active revision do for one primary.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_core::desired::{DesiredObject, DesiredState};
use innkeeper_core::plan::{Action, Plan, SkipReason};
use innkeeper_core::{ObjectRef, diff, foreign, guest_status};
use innkeeper_modules::{PlannedChange, Preview};
use jiff::Timestamp;

use crate::evaluate::{EvaluationError, EvaluationResult};
use crate::reconcile::skipped;

/// A preview names at most this many changed fields of one object.
const FIELDS_MAX: usize = 5;

/// What one revision does for one primary.
pub(super) enum Effect {
    /// It fails; the text says how.
    Fails(String),
    /// The host would apply this plan for the desired state.
    Plans(DesiredState, Plan),
    /// Nothing, as far as the caches know.
    None,
}

impl Effect {
    /// The effect of an evaluation.
    pub(super) fn of(result: EvaluationResult) -> Self {
        let error = match result {
            EvaluationResult::Planned(evaluated) => {
                return Self::Plans(evaluated.desired, evaluated.plan);
            }
            EvaluationResult::NeedsRead(_) => return Self::None,
            EvaluationResult::Failed(error) => error,
        };
        let (reason, message) = match error {
            EvaluationError::Failed(failure) => (failure.reason, failure.message),
            EvaluationError::Call(error) => (error.reason().to_owned(), error.to_string()),
            EvaluationError::Invalid(error) => (error.reason().to_owned(), error.to_string()),
        };
        let message = format_args!("{reason}: {message}");
        Self::Fails(foreign::one_line(message, guest_status::MESSAGE_BYTES_MAX))
    }

    /// The desired object of this name.
    pub(super) fn desired(&self, object_ref: &ObjectRef) -> Option<&DesiredObject> {
        match self {
            Self::Plans(desired, _) => {
                desired.objects.iter().find(|one| one.object_ref == *object_ref)
            }
            Self::Fails(_) | Self::None => None,
        }
    }
}

/// Adds to a preview what the candidate (`new`) does for a primary and the active revision (`old`)
/// does not.
pub(super) fn compare(
    preview: &mut Preview,
    primary: &ObjectRef,
    (new, old): (Effect, Option<Effect>),
    now: Timestamp,
) {
    let (desired_state, plan) = match new {
        Effect::None => return,
        Effect::Fails(why) => {
            if !matches!(old, Some(Effect::Fails(_))) {
                preview.add(PlannedChange::Fail, primary.to_string(), vec![why]);
            }
            return;
        }
        Effect::Plans(desired_state, plan) => (desired_state, plan),
    };
    let old = match &old {
        Some(Effect::Plans(desired_state, plan)) => Some((desired_state, plan)),
        _ => None,
    };
    let desired_before: BTreeMap<&ObjectRef, _> = old
        .iter()
        .flat_map(|(desired_state, _)| &desired_state.objects)
        .map(|one| (&one.object_ref, one))
        .collect();
    let planned: BTreeMap<&ObjectRef, &Action> = old
        .iter()
        .flat_map(|(_, plan)| &plan.steps)
        .map(|one| (&one.object_ref, &one.action))
        .collect();
    let mut problems = BTreeSet::new();
    for step in &plan.steps {
        let before = planned.get(&step.object_ref).copied();
        let object = || step.object_ref.to_string();
        if !matches!(step.action, Action::Create) {
            preview.objects += 1;
        }
        match &step.action {
            Action::Create => {
                if !matches!(before, Some(Action::Create)) {
                    preview.add(PlannedChange::Create, object(), Vec::new());
                }
            }
            // A delete that waits for the other objects is a delete.
            Action::Delete { .. } | Action::Skip(SkipReason::PrunePending) => {
                let due = matches!(
                    before,
                    Some(Action::Delete { .. } | Action::Skip(SkipReason::PrunePending))
                );
                if !due {
                    preview.add(PlannedChange::Delete, object(), Vec::new());
                }
            }
            // The object stays, without the merged fields.
            Action::Unmerge { .. } => {
                if !matches!(before, Some(Action::Unmerge { .. })) {
                    preview.add(PlannedChange::Change, object(), vec![".".to_owned()]);
                }
            }
            Action::Recreate { .. } => {
                if !matches!(before, Some(Action::Recreate { .. })) {
                    preview.add(PlannedChange::Recreate, object(), Vec::new());
                }
            }
            Action::Apply { .. } | Action::Adopt { .. } | Action::Merge { .. } => {
                let desired = step.desired_index.and_then(|index| desired_state.objects.get(index));
                let fields = match (desired, desired_before.get(&step.object_ref)) {
                    (Some(new), Some(old)) => {
                        diff::changed_fields(&old.body, &new.body, FIELDS_MAX)
                    }
                    _ => vec![".".to_owned()],
                };
                // If both desire the same, the active revision is about to apply it too.
                if !fields.is_empty() {
                    preview.add(PlannedChange::Change, object(), fields);
                }
            }
            Action::Skip(reason) => {
                let was = matches!(before, Some(Action::Skip(before)) if before.is_problem());
                if let Some(problem) = skipped::problem(&step.object_ref, reason, now)
                    && !was
                {
                    problems.insert(format!("{}: {}", problem.reason, problem.message));
                }
            }
        }
    }
    if !problems.is_empty() {
        preview.add(
            PlannedChange::Fail,
            primary.to_string(),
            problems.into_iter().take(FIELDS_MAX).collect(),
        );
    }
}
