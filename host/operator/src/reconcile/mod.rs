//! The reconcile of one primary: snapshot, observe, run, plan, apply, report.
//!
//! A reconcile consists of rounds ([`run_round`]): each takes a snapshot of the caches, runs the
//! guest on it, plans, and applies the plan. Rounds follow one another until one has nothing to
//! write; then the host reports once. `innkeeper_core::plan` decides whether an object is written.
//!
//! | step | file |
//! |---|---|
//! | snapshot | [`primary_snapshot`], [`finalizers`] |
//! | observe | [`observe`] |
//! | run, plan | [`permit`], [`evaluate`](crate::evaluate) |
//! | apply | [`apply`], [`recreate_check`], [`live_read`], [`filled_body`], [`skipped`], [`write_error`] |
//! | between steps and rounds | [`after`], [`round`], [`reconcile_turn`], [`carried_progress`] |
//! | report | [`report`] writes; [`conditions`], [`update_condition`] and [`events`] say what |
//! | data | [`context`], [`primary_state`], [`problem`], [`refusal`], [`stats`], [`status_input`] |

pub mod after;
pub mod apply;
pub mod carried_progress;
pub mod conditions;
pub mod context;
pub mod events;
pub mod filled_body;
pub mod finalizers;
pub mod live_read;
pub mod observe;
pub mod permit;
pub mod primary_snapshot;
pub mod primary_state;
pub mod problem;
pub mod reconcile_turn;
pub mod recreate_check;
pub mod refusal;
pub mod report;
pub mod round;
pub mod skipped;
pub mod stats;
pub mod status_input;
pub mod update_condition;
pub mod write_error;

use std::ops::ControlFlow;

use innkeeper_cluster::Caches;

use self::apply::Apply;
use self::context::Context;
use self::filled_body::SourceReads;
use self::finalizers::{Finalizers, has_paused_annotation};
use self::observe::Observation;
use self::permit::evaluate_with_permit;
use self::primary_snapshot::{PrimarySnapshot, read_granted_secrets};
use self::primary_state::PrimaryState;
use self::reconcile_turn::ReconcileTurn;
use self::round::{AfterRound, RoundEnd, RoundReport};
use self::stats::ReconcileStats;
use crate::queue::trigger::{Trigger, Triggers};
use crate::queue::{ReconcileRequest, ReconcileResult};
use crate::shared::Shared;

/// Reconciles a primary, and fills `summary` with what that changed.
pub async fn reconcile(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    triggers: &Triggers,
    summary: &mut ReconcileStats,
) -> ReconcileResult {
    let mut state = shared.take_primary_state(request);
    let result = reconcile_in_rounds(shared, caches, request, triggers, &mut state, summary).await;
    if result == ReconcileResult::Forget {
        shared.forget_primary(request, &state.uid);
    } else {
        shared.keep_primary_state(request, state);
    }
    result
}

/// Runs rounds until one leaves nothing to do for now, then reports.
async fn reconcile_in_rounds(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    triggers: &Triggers,
    state: &mut PrimaryState,
    summary: &mut ReconcileStats,
) -> ReconcileResult {
    let is_scheduled = matches!(triggers.first, Trigger::Scheduled | Trigger::Retry(_));
    let mut turn = ReconcileTurn::resume(state);
    loop {
        // Each round uses the revision that is active when it begins: once a new revision has run
        // for a primary, the previous one writes nothing for it.
        let Some(active) = shared.module(&request.module) else { return ReconcileResult::Forget };
        let context = Context { shared, caches, request, revision: &active, is_scheduled };
        let (ControlFlow::Continue(end) | ControlFlow::Break(end)) =
            run_round(&context, state).await;
        let (mut report, next) = match end {
            RoundEnd::ToReport(report, next) => (report, next),
            RoundEnd::NothingToReport(result) => {
                summary.count(&turn.changed, 0);
                return result;
            }
        };
        turn.add(&mut report, next);
        if next == AfterRound::AnotherRound && !turn.is_over() {
            continue;
        }
        summary.count(&turn.changed, report.status_input.up_to_date);
        return turn.end(&context, *report, next, state, summary).await;
    }
}

/// One round. Breaks early where there is nothing to apply: after a write of the finalizer, after a
/// failure of the guest, for a paused primary.
async fn run_round(
    context: &Context<'_>,
    state: &mut PrimaryState,
) -> ControlFlow<RoundEnd, RoundEnd> {
    let active = context.revision;
    state.was_in_sync = false;

    // Snapshot; the finalizer and the granted Secrets come before the guest.
    let PrimarySnapshot { primary, cache, read_guard } =
        PrimarySnapshot::take(context, state).await?;
    let finalizers = Finalizers { context: *context, primary: &primary };
    let is_paused = active.spec().paused || has_paused_annotation(&primary);
    finalizers.before_run(is_paused, state).await?;
    let granted = read_granted_secrets(context, &primary).await?;

    // Observe, run, plan.
    let now = context.shared.env.now();
    let mut observation = Observation::new(active, &cache, primary.clone(), now, &granted);
    let owner = active.owner(&primary);
    let evaluation = evaluate_with_permit(context.shared, &mut observation, &owner, state).await;
    let depends_on_time = evaluation.figures.iter().any(|figures| figures.clock_read);
    let report = RoundReport::new(&primary).granted(granted.clone());
    let (evaluated, mut report) =
        after::record_evaluation(context, report, evaluation, observation, read_guard, state)?;
    if is_paused && !primary.is_terminating() {
        return ControlFlow::Break(after::paused_report(report, &evaluated.plan, state, now));
    }

    // Apply.
    let sources = SourceReads::default();
    let apply =
        Apply { context: *context, owner: &owner, now, granted: &granted, sources: &sources };
    let applied = apply.carry_out(&evaluated.plan, &evaluated.desired, state).await;
    let next = after::record_apply(&mut report, &evaluated, applied, state, now);
    state.was_in_sync = next == AfterRound::Report
        && !depends_on_time
        && after::is_in_sync(active, &report, &evaluated);
    if next == AfterRound::Report && after::is_finalized(&report, &evaluated.plan) {
        return ControlFlow::Continue(finalizers.remove(true, report, state).await);
    }
    ControlFlow::Continue(RoundEnd::ToReport(report, next))
}
