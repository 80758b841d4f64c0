//! The difference between what a candidate and the active revision do for one primary.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_contract::Policy;
use innkeeper_core::desired::{DesiredObject, DesiredState};
use innkeeper_core::plan::{Action, Plan, SkipReason, Step};
use innkeeper_core::{ObjectRef, diff, foreign, guest_status};
use innkeeper_modules::{PlannedChange, Preview};
use jiff::Timestamp;

use crate::evaluate::{EvaluationError, EvaluationResult};
use crate::reconcile::refusal::ForbiddenWrite;
use crate::reconcile::skipped;

/// A preview names at most this many changed fields of one object.
const FIELDS_MAX: usize = 5;

/// What one revision does for one primary.
pub(super) enum Effect {
    /// It fails; the text says how.
    Fails(String),
    /// The host would apply this plan for the desired state.
    Plans(Box<DesiredState>, Plan),
    /// Nothing, as far as the caches know.
    None,
}

impl Effect {
    /// The effect of an evaluation.
    pub(super) fn of(result: EvaluationResult) -> Self {
        let error = match result {
            EvaluationResult::Planned(evaluated) => {
                return Self::Plans(Box::new(evaluated.desired), evaluated.plan);
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

    /// Whether the revision counts as failing: it fails, or desires what no module may write.
    pub(super) fn is_failure(&self) -> bool {
        match self {
            Self::Fails(_) => true,
            Self::Plans(_, plan) => {
                let reserved = Action::Skip(SkipReason::Reserved);
                plan.steps.iter().any(|step| step.action == reserved)
            }
            Self::None => false,
        }
    }

    /// Whether what it adds to a preview depends on the effect of the active revision: not if
    /// nothing would be written, and no object has a problem.
    pub(super) fn needs_comparison(&self) -> bool {
        match self {
            Self::Fails(_) => true,
            Self::Plans(_, plan) => !skipped::is_all_up_to_date(plan),
            Self::None => false,
        }
    }

    /// Whether the preview has to run the active revision, although that one is known to find every
    /// object as desired. Only plain changes and creates are counted without it: a change whose
    /// fields the preview names, or that may recreate its object, needs what the active revision
    /// desires; and what may hold the candidate back is compared in any case.
    pub(super) fn needs_active_run(&self, preview: &Preview) -> bool {
        let Self::Plans(desired, plan) = self else { return true };
        let names_fields = preview.would_name(PlannedChange::Change);
        plan.steps.iter().any(|step| match &step.action {
            Action::Create => false,
            Action::Skip(reason) if skipped::is_up_to_date(reason) => false,
            Action::Apply { .. } | Action::Adopt { .. } | Action::Merge { .. } => {
                let object = step.desired_index.and_then(|index| desired.objects.get(index));
                names_fields || object.is_none_or(|one| one.has(Policy::RecreateWhenImmutable))
            }
            _ => true,
        })
    }

    /// Whether its plan needs the right for a write: the verb on the kind, in any of its versions,
    /// in the namespace.
    pub(super) fn needs(&self, write: &ForbiddenWrite) -> bool {
        let Self::Plans(_, plan) = self else { return false };
        let kind = (write.kind.group(), &write.kind.kind);
        plan.steps.iter().any(|step| {
            let ObjectRef { kind: of_step, key } = &step.object_ref;
            (of_step.group(), &of_step.kind) == kind
                && key.namespace() == &*write.namespace
                && needs_verb(&step.action, &write.verb)
        })
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
    let before = Before::of(old.as_ref());
    let mut problems = BTreeSet::new();
    for step in &plan.steps {
        if !matches!(step.action, Action::Create) {
            preview.objects += 1;
        }
        let object = step.desired_index.and_then(|index| desired_state.objects.get(index));
        if let Some((change, fields)) = before.added_change(step, object) {
            preview.add(change, step.object_ref.to_string(), fields);
        }
        problems.extend(before.added_problem(step, now));
    }
    if !problems.is_empty() {
        let problems = problems.into_iter().take(FIELDS_MAX).collect();
        preview.add(PlannedChange::Fail, primary.to_string(), problems);
    }
}

/// What the active revision desires and what the host would do about it, by object.
#[derive(Default)]
struct Before<'a> {
    desired: BTreeMap<&'a ObjectRef, &'a DesiredObject>,
    actions: BTreeMap<&'a ObjectRef, &'a Action>,
}

impl<'a> Before<'a> {
    fn of(effect: Option<&'a Effect>) -> Self {
        let Some(Effect::Plans(desired, plan)) = effect else { return Self::default() };
        Self {
            desired: desired.objects.iter().map(|one| (&one.object_ref, one)).collect(),
            actions: plan.steps.iter().map(|one| (&one.object_ref, &one.action)).collect(),
        }
    }

    /// The change of a step that the active revision does not make, with the changed fields.
    fn added_change(
        &self,
        step: &Step,
        object: Option<&DesiredObject>,
    ) -> Option<(PlannedChange, Vec<String>)> {
        let before = self.actions.get(&step.object_ref).copied();
        let (change, is_same) = match &step.action {
            Action::Create => (PlannedChange::Create, matches!(before, Some(Action::Create))),
            action if recreates(action) => (PlannedChange::Recreate, before.is_some_and(recreates)),
            action if is_delete(action) => (PlannedChange::Delete, before.is_some_and(is_delete)),
            // The object stays, without the merged fields.
            Action::Unmerge { .. } => {
                let is_same = matches!(before, Some(Action::Unmerge { .. }));
                let fields = vec![".".to_owned()];
                return (!is_same).then_some((PlannedChange::Change, fields));
            }
            Action::Apply { .. }
            | Action::Adopt { .. }
            | Action::Merge { .. }
            | Action::Skip(SkipReason::UpdatePending { .. }) => {
                let fields = match (object, self.desired.get(&step.object_ref)) {
                    (Some(new), Some(old)) if !keeps_differences(before) => {
                        diff::changed_fields(&old.body, &new.body, FIELDS_MAX)
                    }
                    _ => vec![".".to_owned()],
                };
                // If both desire the same, the active revision is about to apply it too, since it
                // keeps no differences.
                return (!fields.is_empty()).then_some((PlannedChange::Change, fields));
            }
            Action::Recreate { .. } | Action::Delete { .. } | Action::Skip(_) => return None,
        };
        (!is_same).then(|| (change, Vec::new()))
    }

    /// The problem of a step that the active revision does not have.
    fn added_problem(&self, step: &Step, now: Timestamp) -> Option<String> {
        let Action::Skip(reason) = &step.action else { return None };
        let before = self.actions.get(&step.object_ref).copied();
        if matches!(before, Some(Action::Skip(before)) if before.is_problem()) {
            return None;
        }
        let problem = skipped::problem(&step.object_ref, reason, now)?;
        Some(format!("{}: {}", problem.reason, problem.message))
    }
}

/// Whether an action deletes its object. A delete that waits for the other objects is one.
fn is_delete(action: &Action) -> bool {
    matches!(action, Action::Delete { .. } | Action::Skip(SkipReason::PrunePending))
}

/// Whether the active revision skips the object however it differs from what is desired: it
/// creates it only, or updates it once somebody has deleted it.
fn keeps_differences(before: Option<&Action>) -> bool {
    matches!(before, Some(Action::Skip(SkipReason::UpdateOnDelete | SkipReason::CreateOnly)))
}

/// Whether an action recreates its object, at once or in its turn.
fn recreates(action: &Action) -> bool {
    matches!(
        action,
        Action::Recreate { .. } | Action::Skip(SkipReason::UpdatePending { recreates: true })
    )
}

/// Whether an action needs a verb of RBAC. Each write needs all others, such as `impersonate`.
fn needs_verb(action: &Action, verb: &str) -> bool {
    let applies = matches!(
        action,
        Action::Create
            | Action::Apply { .. }
            | Action::Adopt { .. }
            | Action::Merge { .. }
            | Action::Unmerge { .. }
            | Action::Skip(SkipReason::UpdatePending { .. })
    );
    // A recreate is a delete, and a create in the next round.
    let recreates = recreates(action);
    let deletes = recreates || is_delete(action);
    match verb {
        "create" => recreates || *action == Action::Create,
        "patch" => applies || recreates,
        "delete" => deletes,
        _ => applies || deletes,
    }
}
