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
//! | run, plan | [`guest_turn`], [`evaluate`](crate::evaluate) |
//! | apply | [`apply`], [`write_error`] |
//! | report | [`report`], [`conditions`], [`events`] |

pub mod apply;
pub mod conclude;
pub mod conditions;
pub mod context;
pub mod events;
pub mod finalizers;
pub mod guest_turn;
pub mod observe;
pub mod primary_snapshot;
pub mod primary_state;
pub mod problem;
pub mod report;
pub mod round;
pub mod skipped;
pub mod stats;
pub mod status_input;
pub mod turn;
pub mod unfinished;
pub mod write_error;

use std::ops::ControlFlow;

use innkeeper_cluster::Caches;

use self::apply::Apply;
use self::context::Context;
use self::finalizers::{Finalizers, is_paused};
use self::guest_turn::evaluate_with_permit;
use self::observe::Observation;
use self::primary_snapshot::PrimarySnapshot;
use self::primary_state::PrimaryState;
use self::round::{Next, RoundEnd, RoundReport};
use self::stats::ReconcileStats;
use self::turn::Turn;
use crate::queue::{ReconcileRequest, ReconcileResult};
use crate::shared::Shared;

/// Reconciles a primary, and adds to `counts` what that changed.
pub async fn reconcile(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    counts: &mut ReconcileStats,
) -> ReconcileResult {
    let mut state = shared.primary_states.take(request);
    let result = reconcile_in_rounds(shared, caches, request, &mut state, counts).await;
    if result == ReconcileResult::Forget {
        shared.index().forget(request);
        shared.health.record(request, None);
        shared.events.forget(&request.module, &state.uid);
    } else {
        shared.primary_states.put(request, state);
    }
    // A module that stopped during the reconcile was forgotten before this one was recorded.
    if shared.module(&request.module).is_none() {
        shared.index().forget(request);
        shared.primary_states.take(request);
    }
    result
}

/// Runs rounds until one has nothing to write, then reports.
async fn reconcile_in_rounds(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    state: &mut PrimaryState,
    counts: &mut ReconcileStats,
) -> ReconcileResult {
    let mut turn = Turn::resume(state);
    loop {
        // Each round uses the revision that is active when it begins: once a new revision has run
        // for a primary, the previous one writes nothing for it.
        let Some(active) = shared.module(&request.module) else { return ReconcileResult::Forget };
        let context = Context { shared, caches, request, active: &active };
        let (ControlFlow::Continue(end) | ControlFlow::Break(end)) =
            run_round(&context, state).await;
        let (mut report, next) = match end {
            RoundEnd::Reported(report, next) => (report, next),
            RoundEnd::Unreported(result) => {
                counts.count(&turn.changed, 0);
                return result;
            }
        };
        turn.add(&mut report.status_input, next);
        if next == Next::Round && !turn.is_over() {
            continue;
        }
        counts.count(&turn.changed, report.status_input.up_to_date);
        return match next {
            Next::LaterTurn => turn.interrupt(&context, *report, state, counts).await,
            Next::Round | Next::Report => turn.finish(&context, *report, next, state, counts).await,
        };
    }
}

/// One round. Breaks where there is nothing to apply.
async fn run_round(
    context: &Context<'_>,
    state: &mut PrimaryState,
) -> ControlFlow<RoundEnd, RoundEnd> {
    let active = context.active;

    // Snapshot.
    let PrimarySnapshot { primary, cache, run } = PrimarySnapshot::take(context, state).await?;
    let finalizers = Finalizers { context: *context, primary: &primary };
    let is_held = active.settings().paused || is_paused(&primary);
    finalizers.ensure(is_held, state).await?;
    let granted = conclude::granted_secrets(context, &primary).await?;

    // Observe.
    let now = context.shared.env.now();
    let mut observation = Observation::new(active, &cache, primary.clone(), now, &granted);

    // Run and plan.
    let owner = active.owner(&primary);
    let evaluation = evaluate_with_permit(context.shared, &mut observation, &owner, state).await;
    let report = RoundReport::new(&primary).granted(granted.clone());
    let (evaluated, mut report) =
        conclude::run(context, report, evaluation, observation, run, state)?;
    if is_held && !primary.is_terminating() {
        return ControlFlow::Break(conclude::paused(report, &evaluated.plan, state, now));
    }

    // Apply.
    let apply = Apply { context: *context, owner: &owner, now, granted: &granted };
    let applied = apply.carry_out(&evaluated.plan, &evaluated.state, state).await;
    let next = conclude::apply(&mut report, &evaluated, applied, state, now);
    if next == Next::Report && conclude::is_finalized(&report, &evaluated.plan) {
        return ControlFlow::Continue(finalizers.remove(true, report, state).await);
    }
    ControlFlow::Continue(RoundEnd::Reported(report, next))
}
