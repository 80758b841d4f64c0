//! Which writes bring the observed state to the desired state: an ordered list of steps, each with
//! its reason.
//!
//! The same code plans in the running host, in `innkeeper render` and in replays. A plan only
//! decides; `apply` of the operator carries it out.

mod conflict;
mod desired;
mod held_back;
mod input;
mod prune;
mod same_object;
mod skip_reason;
mod state;
mod step;
mod update;
mod values;

use std::collections::BTreeSet;

use crate::ObjectRef;

use desired::plan_desired;
use held_back::hold_back;
use prune::{pending_deletion, plan_prunes, plan_unmerges};
use values::without_values;

pub use crate::well_known::ALLOW_DELETION_ANNOTATION;
pub use conflict::Conflict;
pub use input::Input;
pub use prune::may_be_deleted;
pub use skip_reason::SkipReason;
pub use state::{Lookup, PlannerState, RejectedApply};
pub use step::{Action, ApplyReason, Step};
pub use update::{UpdateProgress, UpdateState};
pub use values::place_values;

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps in order: applies by [`order`](crate::order), then deletes in reverse order. The
    /// deletes of revisions beyond the limit of a history follow the applies of its revisions.
    pub steps: Vec<Step>,
    /// The host deletes or unmerges objects after one more clean round.
    pub prune_pending: bool,
    /// Objects that are no longer desired and still exist, without those that stay: while there are
    /// any, a primary that is being deleted keeps its finalizer.
    pub pending_deletion: Vec<ObjectRef>,
    /// How far the updates of the update groups are.
    pub updates: Vec<UpdateProgress>,
}

/// Plans one round of a primary.
pub fn plan(input: &Input<'_>) -> Plan {
    let mut steps: Vec<Step> = input
        .desired
        .objects
        .iter()
        .zip(input.lookups)
        .enumerate()
        .map(|(index, (desired_object, lookup))| Step {
            object_ref: desired_object.object_ref.clone(),
            desired_index: Some(index),
            action: without_values(plan_desired(input, desired_object, lookup), desired_object),
        })
        .collect();
    same_object::skip(&mut steps, &input.desired.objects, input.lookups);
    let mut updates = update::limit(&mut steps, input);
    let unmerged: BTreeSet<ObjectRef> = steps
        .iter()
        .filter(|step| matches!(step.action, Action::Unmerge { .. }))
        .map(|step| step.object_ref.clone())
        .collect();
    hold_back(&mut steps, &input.desired.objects);
    update::keep_creates(&mut updates, &steps);

    let mut prune_pending = false;
    let mut pending = Vec::new();
    let (surplus, mut prunes): (Vec<Step>, Vec<Step>) = plan_prunes(input)
        .into_iter()
        .partition(|step| input.desired.surplus_revisions.contains(&step.object_ref));
    if input.complete {
        prunes.extend(plan_unmerges(input).filter(|step| !unmerged.contains(&step.object_ref)));
        pending = pending_deletion(input, &prunes);
        let clean = input.state.clean
            && !steps
                .iter()
                .any(|step| matches!(&step.action, Action::Skip(reason) if reason.is_problem()));
        if !clean || !input.readable {
            for step in &mut prunes {
                if matches!(step.action, Action::Delete { .. } | Action::Unmerge { .. }) {
                    step.action = Action::Skip(SkipReason::PrunePending);
                    prune_pending = true;
                }
            }
        }
        steps.append(&mut prunes);
    }
    // They follow the revisions at once, so that no other step delays them: each change adds one.
    let is_revision = |step: &Step| {
        step.desired_index.is_some()
            && surplus.iter().any(|one| one.object_ref.kind == step.object_ref.kind)
    };
    let after = steps.iter().rposition(is_revision).map_or(0, |last| last + 1);
    steps.splice(after..after, surplus);
    Plan { steps, prune_pending, pending_deletion: pending, updates }
}
