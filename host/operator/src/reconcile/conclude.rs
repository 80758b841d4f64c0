//! What the run of a guest and the apply of its plan mean for the rest of a round.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_contract::Kind;
use innkeeper_core::desired::DesiredState;
use innkeeper_core::plan::{Action, Plan};
use innkeeper_core::{Object, ObjectRef};
use jiff::Timestamp;

use crate::evaluate::{Evaluated, Evaluation, EvaluationResult};
use crate::modules::granted_secrets::GrantedSecrets;
use crate::queue::trigger::Trigger;
use crate::reconcile::apply::Applied;
use crate::reconcile::context::Context;
use crate::reconcile::observe::{Observation, own};
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::{Problem, Problems, Retry};
use crate::reconcile::round::{Next, RoundEnd, RoundReport};
use crate::reconcile::skipped;
use crate::shared::RunGuard;

/// Reads the Secrets that the Module grants. Breaks if one cannot be read.
pub async fn granted_secrets(
    context: &Context<'_>,
    primary: &Arc<Object>,
) -> ControlFlow<RoundEnd, Arc<GrantedSecrets>> {
    match GrantedSecrets::read(context.active, &primary.key).await {
        Ok(granted) => ControlFlow::Continue(Arc::new(granted)),
        Err(problem) => ControlFlow::Break(RoundReport::new(primary).blocked(problem)),
    }
}

/// The guest has run: records what it read, and adds its answer to the report. Breaks if there is
/// no plan.
pub fn run(
    context: &Context<'_>,
    mut report: Box<RoundReport>,
    evaluation: Evaluation,
    observation: Observation<'_>,
    run: RunGuard<'_>,
    state: &mut PrimaryState,
) -> ControlFlow<RoundEnd, (Evaluated, Box<RoundReport>)> {
    let result = match evaluation.result {
        EvaluationResult::Planned(evaluated) => Ok(evaluated),
        EvaluationResult::Failed(error) => Err(error),
        EvaluationResult::NeedsRead(unknown) => {
            state.needs_read.extend(unknown);
            return ControlFlow::Break(RoundEnd::Reported(report, Next::Round));
        }
    };
    report.status_input.unserved = observation.unserved_optional();
    report.status_input.owned = own(&evaluation.owned, &report.primary).cloned().collect();
    if report.primary.is_terminating() {
        report.unreadable = observation.unreadable().into_iter().map(unreadable_kind).collect();
    }
    let bytes_max = context.active.settings().recorded_read_bytes;
    if run.record(context.request, observation.into_reads(), bytes_max) {
        context.shared.wake(context.request, &Trigger::ReadChanged);
    }
    match result {
        Ok(mut evaluated) => {
            report.take_desired(std::mem::take(&mut evaluated.desired));
            ControlFlow::Continue((evaluated, report))
        }
        Err(error) => {
            let labels = [&**context.active.name(), report.take_error(error)];
            context.shared.metrics.guest_failures.with_label_values(&labels).inc();
            state.plan.clean = false;
            ControlFlow::Break(RoundEnd::Reported(report, Next::Report))
        }
    }
}

/// The primary or its module is paused: reports the writes that the plan would make.
pub fn paused(
    mut report: Box<RoundReport>,
    plan: &Plan,
    state: &mut PrimaryState,
    now: Timestamp,
) -> RoundEnd {
    report.status_input.paused = Some(planned_writes(plan));
    let granted = &report.status_input.granted;
    let problems = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Skip(reason) => skipped::problem(&step.object_ref, reason, now),
        _ => None,
    });
    let problems = Problems(problems.map(|problem| granted.mask_problem(problem)).collect());
    state.record_unapplied(problems.unapplied());
    report.status_input.problems = problems;
    RoundEnd::Reported(report, Next::Report)
}

/// The plan has been applied: adds the result to the report, and decides whether another round
/// follows.
pub fn apply(
    report: &mut RoundReport,
    evaluated: &Evaluated,
    applied: Applied,
    state: &mut PrimaryState,
    now: Timestamp,
) -> Next {
    let clean = evaluated.complete && applied.is_clean();
    let became_clean = clean && !state.plan.clean;
    state.plan.clean = clean;
    forget_undesired(state, &evaluated.state, now);
    let Applied { changed, up_to_date, rerun, limited, problems, adopted } = applied;
    let wrote = !changed.is_empty();
    report.status_input.changed = changed;
    report.status_input.up_to_date = up_to_date;
    report.status_input.problems = problems;
    report.status_input.problems.0.append(&mut report.unreadable);
    report.status_input.adopted = adopted;
    if limited {
        return Next::LaterTurn;
    }
    let problems = &report.status_input.problems;
    let backs_off = problems.0.iter().any(|problem| problem.retry == Retry::Backoff);
    // The guest sees in the next round what this one could not apply.
    let has_news = state.record_unapplied(problems.unapplied());
    // A prune waits for a clean round and for readable kinds; it has both now.
    let prune_now = became_clean && evaluated.plan.prune_pending && evaluated.readable;
    if ((wrote || has_news) && !backs_off) || rerun || prune_now {
        Next::Round
    } else {
        Next::Report
    }
}

/// Whether nothing is left to do for a primary that is being deleted.
pub fn is_finalized(report: &RoundReport, plan: &Plan) -> bool {
    report.primary.is_terminating()
        && report.finalized
        && plan.pending_deletion.is_empty()
        && report.status_input.problems.is_empty()
}

/// The problem of a primary that is being deleted while objects of a kind cannot be seen.
fn unreadable_kind((kind, error): (Arc<Kind>, CacheReadError)) -> Problem {
    Problem {
        object_ref: None,
        reason: "Unreadable".to_owned(),
        message: format!(
            "the finalizer stays, since the host cannot see whether objects of {kind} are left: {error}"
        ),
        // A change of what the module may read wakes the request.
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
    state.plan.reverts.drop_expired(now);
    let desired: BTreeSet<&ObjectRef> = desired.objects.iter().map(|one| &one.object_ref).collect();
    state.plan.applied.retain(|object_ref, _| desired.contains(object_ref));
    state.plan.rejected.retain(|object_ref, _| desired.contains(object_ref));
}
