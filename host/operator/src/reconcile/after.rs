//! What follows in a round after the run of the guest, and after the apply of its plan.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_contract::Kind;
use innkeeper_core::ObjectRef;
use innkeeper_core::desired::DesiredState;
use innkeeper_core::plan::{Action, Plan};
use jiff::Timestamp;

use crate::evaluate::{Evaluated, Evaluation, EvaluationError, EvaluationResult};
use crate::modules::open_revision::OpenRevision;
use crate::queue::trigger::Trigger;
use crate::reconcile::apply::ApplySummary;
use crate::reconcile::context::Context;
use crate::reconcile::observe::{Observation, own};
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::{Problem, Problems, Retry};
use crate::reconcile::round::{AfterRound, RoundEnd, RoundReport};
use crate::reconcile::{skipped, update_condition};
use crate::shared::RunGuard;
use crate::watch::read_scope::ReadScope;

/// Records what the guest read, and adds its answer to the report. Breaks if there is no plan.
pub fn record_evaluation(
    context: &Context<'_>,
    mut report: Box<RoundReport>,
    evaluation: Evaluation,
    observation: Observation<'_>,
    read_guard: RunGuard<'_>,
    state: &mut PrimaryState,
) -> ControlFlow<RoundEnd, (Evaluated, Box<RoundReport>)> {
    let result = match evaluation.result {
        EvaluationResult::Planned(evaluated) => Ok(*evaluated),
        EvaluationResult::Failed(error) => Err(error),
        EvaluationResult::NeedsRead(unknown) => {
            // The guard is dropped: the reads of this run do not count.
            state.needs_read.extend(unknown);
            return ControlFlow::Break(RoundEnd::ToReport(report, AfterRound::AnotherRound));
        }
    };
    report.status_input.unserved = observation.unserved_optional();
    report.status_input.owned = own(&evaluation.owned, &report.primary).cloned().collect();
    if report.primary.is_terminating() {
        let unseen = observation.unseen_beyond_owner().into_iter().map(unseen_kind);
        let granted = &report.status_input.granted;
        report.finalizer_blockers = unseen.map(|problem| granted.mask_problem(problem)).collect();
        let unreadable = observation.unreadable().into_iter().map(unreadable_kind);
        report.prune_blockers = unreadable.map(|problem| granted.mask_problem(problem)).collect();
    }
    let reads = observation.into_reads().within(read_scope(context.revision, &result));
    if read_guard.record(context.request, context.revision, reads) {
        context.shared.wake(context.request, &Trigger::ReadChanged);
    }
    match result {
        Ok(mut evaluated) => {
            if !evaluated.complete {
                let metrics = &context.shared.metrics;
                metrics.partial_answers.with_label_values(&[&**context.revision.name()]).inc();
            }
            report.take_answer(std::mem::take(&mut evaluated.answer));
            ControlFlow::Continue((evaluated, report))
        }
        Err(error) => {
            let labels = [&**context.revision.name(), report.take_error(error)];
            context.shared.metrics.guest_failures.with_label_values(&labels).inc();
            state.planner.clean = false;
            ControlFlow::Break(RoundEnd::ToReport(report, AfterRound::Report))
        }
    }
}

/// Which fields the run could read, and the host needs of what it read.
fn read_scope(revision: &OpenRevision, result: &Result<Evaluated, EvaluationError>) -> ReadScope {
    let Ok(Evaluated { desired, read_fields, .. }) = result else { return ReadScope::Everything };
    // The host then reads statuses and stored revisions that the guest does not name.
    if !desired.update_groups.is_empty() || desired.revision_history.is_some() {
        return ReadScope::Everything;
    }
    match read_fields {
        // Every run reads the primary: without its kind the report says nothing about it.
        Some(masks) if masks.get(&revision.primary_kind).is_some() => {
            ReadScope::Reported(masks.clone())
        }
        _ => ReadScope::Declared,
    }
}

/// The end of a round of a paused primary or module: the report has the writes that the plan would
/// make.
pub fn paused_report(
    mut report: Box<RoundReport>,
    plan: &Plan,
    state: &mut PrimaryState,
    now: Timestamp,
) -> RoundEnd {
    report.status_input.paused = Some(planned_writes(plan));
    let up_to_date = plan.steps.iter().filter(|step| skipped::is_step_up_to_date(step));
    report.status_input.up_to_date = up_to_date.count();
    let granted = &report.status_input.granted;
    let problems = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Skip(reason) => skipped::problem(&step.object_ref, reason, now),
        _ => None,
    });
    let problems = Problems(problems.map(|problem| granted.mask_problem(problem)).collect());
    state.record_unapplied(problems.unapplied());
    let counted = report.status_input.up_to_date + problems.0.len();
    report.status_input.skipped = plan.steps.len().saturating_sub(counted);
    report.status_input.problems = problems;
    RoundEnd::ToReport(report, AfterRound::Report)
}

/// Adds the result of applying the plan to the report, and decides whether another round follows.
pub fn record_apply(
    report: &mut RoundReport,
    evaluated: &Evaluated,
    applied: ApplySummary,
    state: &mut PrimaryState,
    now: Timestamp,
) -> AfterRound {
    let clean = evaluated.complete && applied.is_clean();
    let became_clean = clean && !state.planner.clean;
    state.planner.clean = clean;
    forget_undesired(state, &evaluated.desired, now);
    let ApplySummary { changed, up_to_date, skipped, rerun, limited, problems, adopted } = applied;
    let wrote = !changed.is_empty();
    report.status_input.changed = changed;
    report.status_input.up_to_date = up_to_date;
    report.status_input.skipped = skipped;
    report.status_input.problems = problems;
    // Deletions wait until all kinds can be read.
    if report.finalizer_blockers.is_empty() && evaluated.plan.prune_pending && !evaluated.readable {
        report.status_input.problems.0.append(&mut report.prune_blockers);
    }
    report.status_input.problems.0.append(&mut report.finalizer_blockers);
    report.status_input.adopted = adopted;
    report.status_input.updates.clone_from(&evaluated.plan.updates);
    state.outdated = update_condition::outdated(&evaluated.plan.updates);
    let look_again = evaluated.plan.updates.iter().filter_map(|update| update.look_again);
    report.requeue = report.requeue.into_iter().chain(look_again).min();
    if limited {
        return AfterRound::LaterTurn;
    }
    let problems = &report.status_input.problems;
    let backs_off = problems.0.iter().any(|problem| problem.retry == Retry::Backoff);
    // The guest sees in the next round what this one could not apply.
    let has_news = state.record_unapplied(problems.unapplied());
    // A prune waits for a clean round and for readable kinds; it has both now.
    let prune_now = became_clean && evaluated.plan.prune_pending && evaluated.readable;
    if ((wrote || has_news) && !backs_off) || rerun || prune_now {
        AfterRound::AnotherRound
    } else {
        AfterRound::Report
    }
}

/// Whether a round found every object as desired, and the next round of the same revision would do
/// so too. A guest that asked to run again may do something else then. A preview gives digests in
/// place of granted Secrets, so a round with their values does not predict it.
pub fn is_in_sync(revision: &OpenRevision, report: &RoundReport, evaluated: &Evaluated) -> bool {
    evaluated.complete
        && evaluated.readable
        && report.requeue.is_none()
        && report.status_input.problems.is_empty()
        && revision.spec().secret_names.is_empty()
        && skipped::is_all_up_to_date(&evaluated.plan)
}

/// Whether nothing is left to do for a primary that is being deleted.
pub fn is_finalized(report: &RoundReport, plan: &Plan) -> bool {
    report.primary.is_terminating()
        && report.finalized
        && plan.pending_deletion.is_empty()
        && report.status_input.problems.is_empty()
}

/// The problem of a primary that is being deleted while objects of a kind may exist unseen.
fn unseen_kind((kind, error): (Arc<Kind>, CacheReadError)) -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: "Unreadable".to_owned(),
        message: format!(
            "the finalizer stays, since objects of {kind} in other namespaces may be left, and the host cannot read them: {error}"
        ),
        // A change of what the module may read wakes the request.
        retry: Retry::OnChange,
    }
}

/// The problem of a primary that is being deleted while the host may delete none of its objects.
fn unreadable_kind((kind, error): (Arc<Kind>, CacheReadError)) -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: "Unreadable".to_owned(),
        message: format!(
            "the host deletes no object of the primary while it cannot read {kind}: {error}"
        ),
        retry: Retry::OnChange,
    }
}

/// The writes of a plan, one line each.
fn planned_writes(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter(|step| !matches!(step.action, Action::Skip(_)))
        .map(ToString::to_string)
        .collect()
}

/// Forgets old reverts, and what was applied to objects that are no longer desired.
fn forget_undesired(state: &mut PrimaryState, desired: &DesiredState, now: Timestamp) {
    state.planner.reverts.drop_expired(now);
    let desired: BTreeSet<&ObjectRef> = desired.objects.iter().map(|one| &one.object_ref).collect();
    state.planner.applied.retain(|object_ref, _| desired.contains(object_ref));
    state.planner.rejected.retain(|object_ref, _| desired.contains(object_ref));
}
