//! The turn of a primary at a worker: its rounds, and the report at their end.

use std::collections::BTreeMap;
use std::time::Duration;

use innkeeper_contract::{Event, EventType};
use innkeeper_core::consent::RESYNC_ANNOTATION;
use innkeeper_core::{ObjectRef, guest_status};

use crate::modules::health::{Failing, RunOutcome};
use crate::modules::open_revision::OpenRevision;
use crate::queue::ReconcileResult;
use crate::reconcile::carried_progress::{CarriedProgress, CarriedRound};
use crate::reconcile::context::Context;
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::{Problem, Retry};
use crate::reconcile::report::{self, StatusWrite, StatusWriteError};
use crate::reconcile::round::{AfterRound, RoundReport};
use crate::reconcile::stats::{ObjectChange, ReconcileStats};
use crate::reconcile::update_condition;

/// When a status is written again after a conflict, unless the primary changes before.
const CONFLICT_RETRY: Duration = Duration::from_secs(5);

/// The most rounds of a reconcile; one that needs more does not converge.
pub const ROUNDS_MAX: u32 = 10;

/// The reason of a primary whose writes the write rate has stopped for now.
const RATE_LIMITED: &str = "WriteRateLimited";

/// How often the host reports the status of a primary whose writes take many turns.
const INTERRUPTED_REPORT_PERIOD: Duration = Duration::from_secs(10);

/// Why a turn ends before the reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// The write rate allows no more writes now.
    WriteRate,
    /// The update of a group needs more rounds than a turn has.
    Update,
}

/// A turn, and the turns before it that were interrupted.
pub struct ReconcileTurn {
    /// The uid of the primary; empty before the first round of a new one.
    uid: Box<str>,
    /// What all rounds did since the last finished reconcile.
    rounds: CarriedProgress,
    /// Objects that this turn created, changed or deleted.
    pub changed: BTreeMap<ObjectRef, ObjectChange>,
}

impl ReconcileTurn {
    /// Begins a turn, which continues an interrupted one.
    pub fn resume(state: &mut PrimaryState) -> Self {
        let rounds = std::mem::take(&mut state.carried);
        Self { uid: state.uid.clone(), rounds, changed: BTreeMap::new() }
    }

    /// Adds the result of a round.
    pub fn add(&mut self, report: &mut RoundReport, next: AfterRound) {
        if self.uid != report.primary.uid {
            // Another primary of the same name: nothing of the former one counts for it.
            self.uid.clone_from(&report.primary.uid);
            self.rounds = CarriedProgress::default();
        }
        let generation = report.primary.generation;
        let updated = update_condition::updated(&report.status_input.updates);
        if self.rounds.updated_max.is_none_or(|(of, _)| of != generation) {
            self.rounds.updated_max = Some((generation, updated));
        }
        let round = &mut report.status_input;
        self.rounds.count += u32::from(next != AfterRound::LaterTurn);
        self.rounds.adopted.append(&mut round.adopted);
        let changed = round.changed.iter().map(|(object, change)| (object.clone(), *change));
        self.rounds.changed.extend(changed);
        self.changed.append(&mut round.changed);
        for event in round.events.drain(..) {
            let has_room = self.rounds.events.len() < guest_status::EVENTS_MAX;
            if has_room && !self.rounds.events.contains(&event) {
                self.rounds.events.push(event);
            }
        }
    }

    /// Whether as many rounds as allowed have run.
    pub fn is_over(&self) -> bool {
        self.rounds.count >= ROUNDS_MAX
    }

    /// Whether more objects of update groups are updated than at the end of any turn before. An
    /// update has at most as many such turns as objects; a guest that desires something else in
    /// each round has none.
    fn advances_update(&mut self, report: &RoundReport) -> bool {
        let updated = update_condition::updated(&report.status_input.updates);
        match &mut self.rounds.updated_max {
            Some((_, max)) if updated > *max => {
                *max = updated;
                true
            }
            _ => false,
        }
    }

    /// Ends a turn, and with it the reconcile, unless another turn goes on with it.
    pub async fn end(
        mut self,
        context: &Context<'_>,
        report: RoundReport,
        next: AfterRound,
        state: &mut PrimaryState,
        summary: &mut ReconcileStats,
    ) -> ReconcileResult {
        let interruption = match next {
            AfterRound::LaterTurn => Some(Interruption::WriteRate),
            AfterRound::AnotherRound if self.advances_update(&report) => Some(Interruption::Update),
            AfterRound::AnotherRound | AfterRound::Report => None,
        };
        match interruption {
            Some(interruption) => {
                self.interrupt(context, report, interruption, state, summary).await
            }
            None => self.finish(context, report, next, state, summary).await,
        }
    }

    /// Ends a turn before the reconcile ends: keeps its rounds for the next turn, and reports now
    /// and then.
    async fn interrupt(
        self,
        context: &Context<'_>,
        mut report: RoundReport,
        interruption: Interruption,
        state: &mut PrimaryState,
        summary: &mut ReconcileStats,
    ) -> ReconcileResult {
        state.carried = self.rounds;
        let reason = match interruption {
            Interruption::WriteRate => {
                report.status_input.problems.push(rate_limited());
                RATE_LIMITED
            }
            Interruption::Update => {
                state.carried.count = 0;
                update_condition::UPDATING
            }
        };
        let now = context.shared.elapsed();
        let is_due = state
            .carried
            .reported
            .is_none_or(|reported| now.saturating_sub(reported) >= INTERRUPTED_REPORT_PERIOD);
        if is_due {
            report.status_input.changed.clone_from(&state.carried.changed);
            state.carried.reported = Some(now);
            // A failed write is logged; the end of the reconcile reports again.
            let _ = write(context, &report, state, summary).await;
        }
        // The recorded outcome stays: the end of the reconcile tells whether writes fail.
        reason.clone_into(&mut summary.problem);
        ReconcileResult::Requeue
    }

    /// Ends the last turn of a reconcile: reports, and says when the primary runs again.
    async fn finish(
        self,
        context: &Context<'_>,
        mut report: RoundReport,
        next: AfterRound,
        state: &mut PrimaryState,
        summary: &mut ReconcileStats,
    ) -> ReconcileResult {
        state.carried_round = CarriedRound::default();
        let input = &mut report.status_input;
        input.adopted = self.rounds.adopted;
        input.changed = self.rounds.changed;
        input.events = self.rounds.events;
        if next == AfterRound::AnotherRound {
            input.problems.push(not_converging());
        }
        if let Some(Err(message)) = OpenRevision::own_resync(&report.primary) {
            input.events.push(invalid_resync(&message));
        }
        // What the guest must not desire comes before what the module may not write.
        let mut problems = input.problems.0.iter();
        let of_guest = || problems.find_map(|problem| Failing::of_guest(problem, &input.granted));
        report.failing = report.failing.or_else(of_guest);
        match write(context, &report, state, summary).await {
            Ok(StatusWrite::UpToDate | StatusWrite::Written) => {}
            // A change of the primary wakes the request before. A conflict for another reason,
            // such as one of a webhook, changes nothing that would.
            Ok(StatusWrite::Conflict) => {
                report.requeue = report.requeue.into_iter().chain([CONFLICT_RETRY]).min();
            }
            Err(StatusWriteError { problem, is_failure }) => {
                if is_failure {
                    report.failing.get_or_insert(Failing::of(&problem));
                }
                report.status_input.problems.push(problem);
            }
        }
        let problems = &report.status_input.problems;
        // A teardown reports why a primary keeps its finalizer, whether or not the guest failed.
        let is_teardown = context.revision.is_in_teardown();
        if is_teardown && report.failing.is_none() {
            let problem = problems.first().map(|problem| {
                let problem = report.status_input.granted.mask_problem(problem.clone());
                Failing { forbidden: None, reason: problem.reason, message: problem.message }
            });
            report.failing = problem;
        }
        if !report.is_blocked || is_teardown {
            // A decorator has no condition on its primaries, so the Module has the message.
            let decorates = context.revision.decorates.then(|| &*report.status_input.granted);
            let outcome = RunOutcome::of(report.failing, &problems.0, decorates);
            context.shared.health.record(context.request, outcome);
        }
        problems.reason().unwrap_or_default().clone_into(&mut summary.problem);
        let resync = context.revision.resync(&report.primary);
        problems.result(report.requeue.into_iter().chain(resync).min())
    }
}

/// Writes the status and the Events. A paused module writes neither.
async fn write(
    context: &Context<'_>,
    report: &RoundReport,
    state: &mut PrimaryState,
    summary: &mut ReconcileStats,
) -> Result<StatusWrite, StatusWriteError> {
    if context.revision.spec().paused {
        return Ok(StatusWrite::UpToDate);
    }
    let written = report::report(context, &report.primary, &report.status_input, state).await?;
    summary.status = written == StatusWrite::Written;
    Ok(written)
}

fn rate_limited() -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: RATE_LIMITED.to_owned(),
        message: "Objects remain to be written: the module has used up limits.writesPerSecond; the host continues as the rate allows."
            .to_owned(),
        retry: Retry::OnChange,
    }
}

fn not_converging() -> Problem {
    Problem {
        refusal: None,
        object_ref: None,
        reason: "NotConverging".to_owned(),
        message: format!(
            "{ROUNDS_MAX} rounds did not converge: the guest desires something else after each write, or another client changes the objects; the host tries again later."
        ),
        retry: Retry::Backoff,
    }
}

fn invalid_resync(message: &str) -> Event {
    Event {
        type_: EventType::Warning,
        reason: "InvalidResyncPeriod".to_owned(),
        message: format!("The host ignores the annotation {RESYNC_ANNOTATION}: {message}."),
    }
}
