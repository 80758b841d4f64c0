//! One burst: observe, run, plan, apply, again and again until quiet, then report once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{CacheSnapshot, Caches, KindState, Lookup};
use innkeeper_contract::{Desired, Event, EventType, Failure, Unapplied};
use innkeeper_core::consent::{self, PAUSED_ANNOTATION, RESYNC_ANNOTATION};
use innkeeper_core::desired::{DesiredState, InvalidDesired};
use innkeeper_core::finalizer::FinalizerAction;
use innkeeper_core::ownership::{ADOPT_ANNOTATION, Primary};
use innkeeper_core::plan::{self, Action, Plan};
use innkeeper_core::{Object, ObjectRef, foreign, guest_status};
use innkeeper_sandbox::{CallError, Outcome, Run};
use jiff::Timestamp;

use crate::apply::{self, Apply};
use crate::finalize::{Finalizers, WriteOutcome};
use crate::module_queue;
use crate::modules::active_module::ActiveModule;
use crate::modules::granted_secrets::GrantedSecrets;
use crate::modules::health::Failing;
use crate::observe::{Observation, own};
use crate::primary_state::PrimaryState;
use crate::problem::{Problem, Problems, Retry};
use crate::queue::{ReconcileRequest, ReconcileResult};
use crate::report::{self, StatusInput};
use crate::shared::{Execution, Shared};
use crate::stats::ReconcileStats;
use crate::trigger::Trigger;
use crate::unfinished::UnfinishedRound;

/// So many rounds in a row may write; then the guest does not converge.
pub const WRITING_ROUNDS_MAX: u32 = 10;

/// The reason of a failure of the guest's own that gives none that can be written.
const GUEST_FAILED: &str = "GuestFailed";

/// The reason of a primary whose writes the rate has ended for now.
const RATE_LIMITED: &str = "WriteRateLimited";

/// So often is the status of a primary reported whose writes take many turns.
const UNFINISHED_REPORT: Duration = Duration::from_secs(10);

/// How one round ended.
enum Round {
    /// Something was written or learnt: run again at once.
    Again(Box<Evaluation>),
    /// The write rate ended it: continue when the rate lets it.
    Limited(Box<Evaluation>),
    /// Nothing is left to do for now.
    Stable(Box<Evaluation>),
    /// There is nothing to report on: the primary is gone, going, or not this module's.
    Ended(ReconcileResult),
}

/// What a round saw and found.
struct Evaluation {
    active: Arc<ActiveModule>,
    primary: Arc<Object>,
    status_input: StatusInput,
    failing: Option<Failing>,
    requeue: Option<Duration>,
    /// Whether the guest was asked; else nothing is known of how it runs.
    guest_ran: bool,
    /// The guest says that nothing is left to do for a primary that is being deleted.
    finalized: bool,
}

impl Evaluation {
    fn new(active: &Arc<ActiveModule>, primary: &Arc<Object>) -> Box<Self> {
        Box::new(Self {
            active: active.clone(),
            primary: primary.clone(),
            status_input: StatusInput::default(),
            failing: None,
            requeue: None,
            guest_ran: true,
            finalized: false,
        })
    }

    /// What is to be masked in whatever is said.
    fn granted(mut self: Box<Self>, granted: GrantedSecrets) -> Box<Self> {
        self.status_input.granted = Arc::new(granted);
        self
    }

    /// Nothing can be done, and it is not the guest's fault.
    fn blocked(mut self: Box<Self>, problem: Problem) -> Round {
        let problem = self.status_input.granted.mask_problem(problem);
        self.status_input.problems.push(problem);
        self.guest_ran = false;
        Round::Stable(self)
    }
}

/// Works on one key until it is quiet, and notes what that came to.
pub async fn reconcile(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    stats: &mut ReconcileStats,
) -> ReconcileResult {
    let mut primary_state = shared.primary_states.take(request);
    let done = reconcile_until_stable(shared, caches, request, &mut primary_state, stats).await;
    if done == ReconcileResult::Forget {
        shared.index().forget(request);
        shared.health.record(request, None);
        shared.events.forget(&request.module, &primary_state.uid);
    } else {
        shared.primary_states.put(request, primary_state);
    }
    // A module that was stopped meanwhile leaves nothing behind: its keys were forgotten before
    // this one was recorded.
    if shared.module(&request.module).is_none() {
        shared.index().forget(request);
        shared.primary_states.take(request);
    }
    done
}

async fn reconcile_until_stable(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    primary_state: &mut PrimaryState,
    stats: &mut ReconcileStats,
) -> ReconcileResult {
    let mut burst = std::mem::take(&mut primary_state.unfinished);
    let mut changed_now = BTreeMap::new();
    loop {
        // Each round takes the version that serves when it begins: once a new one has served a
        // key, the old one writes nothing for it any more.
        let Some(active) = shared.module(&request.module) else { return ReconcileResult::Forget };
        let round = round(shared, caches, &active, request, primary_state).await;
        let (mut seen, again, limited) = match round {
            Round::Ended(done) => {
                stats.count(&changed_now, 0);
                return done;
            }
            Round::Again(seen) => (seen, true, false),
            Round::Limited(seen) => (seen, false, true),
            Round::Stable(seen) => (seen, false, false),
        };
        burst.rounds += u32::from(!limited);
        burst.adopted.append(&mut seen.status_input.adopted);
        burst
            .changed
            .extend(seen.status_input.changed.iter().map(|(one, change)| (one.clone(), *change)));
        changed_now.append(&mut seen.status_input.changed);
        for event in seen.status_input.events.drain(..) {
            if burst.events.len() < guest_status::EVENTS_MAX && !burst.events.contains(&event) {
                burst.events.push(event);
            }
        }
        if again && burst.rounds < WRITING_ROUNDS_MAX {
            continue;
        }
        stats.count(&changed_now, seen.status_input.up_to_date);
        if limited {
            primary_state.unfinished = burst;
            return interrupt(shared, caches, request, *seen, primary_state, stats).await;
        }
        primary_state.unfinished_round = UnfinishedRound::default();
        if again {
            seen.status_input.problems.push(Problem {
                object_ref: None,
                reason: "NotConverging".to_owned(),
                message:
                    "The guest wants something else after each write; it is tried again later."
                        .to_owned(),
                retry: Retry::Backoff,
            });
        }
        seen.status_input.adopted = burst.adopted;
        seen.status_input.changed = burst.changed;
        seen.status_input.events = burst.events;
        return finish(shared, caches, request, *seen, primary_state, stats).await;
    }
}

/// The write rate ended the turn. Reports it now and then, and has the key continue.
async fn interrupt(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    mut seen: Evaluation,
    primary_state: &mut PrimaryState,
    stats: &mut ReconcileStats,
) -> ReconcileResult {
    let Evaluation { active, primary, status_input, .. } = &mut seen;
    let now = shared.elapsed();
    let is_due = primary_state
        .unfinished
        .reported
        .is_none_or(|reported| now.saturating_sub(reported) >= UNFINISHED_REPORT);
    if is_due && !active.settings().paused {
        status_input.problems.push(Problem {
            object_ref: None,
            reason: RATE_LIMITED.to_owned(),
            message: "Objects remain to be written: the module has used up limits.writesPerSecond; the host continues as the rate allows."
                .to_owned(),
            retry: Retry::OnChange,
        });
        status_input.changed.clone_from(&primary_state.unfinished.changed);
        primary_state.unfinished.reported = Some(now);
        // A status that cannot be written is logged, and reported when all is written.
        if let Ok(written) =
            report::report(shared, caches, active, request, primary, status_input, primary_state)
                .await
        {
            stats.status = written;
        }
    }
    shared.health.record(request, None);
    RATE_LIMITED.clone_into(&mut stats.problem);
    ReconcileResult::Continue
}

/// Reports, and says when the key is worked on again.
async fn finish(
    shared: &Shared,
    caches: &Caches,
    request: &ReconcileRequest,
    mut seen: Evaluation,
    primary_state: &mut PrimaryState,
    stats: &mut ReconcileStats,
) -> ReconcileResult {
    let Evaluation { active, primary, status_input, failing, requeue, guest_ran, .. } = &mut seen;
    if let Some(Err(message)) = ActiveModule::own_resync(primary) {
        status_input.events.push(Event {
            type_: EventType::Warning,
            reason: "InvalidResyncPeriod".to_owned(),
            message: format!("The annotation {RESYNC_ANNOTATION} is not heeded: {message}."),
        });
    }
    // A suspended module writes nothing at all.
    if !active.settings().paused {
        match report::report(shared, caches, active, request, primary, status_input, primary_state)
            .await
        {
            Ok(written) => stats.status = written,
            Err(problem) => {
                let told = (problem.reason.clone(), problem.message.clone());
                *failing = failing.take().or(Some(told));
                status_input.problems.push(problem);
            }
        }
    }
    if *guest_ran {
        shared.health.record(request, failing.take());
    }
    status_input.problems.reason().unwrap_or_default().clone_into(&mut stats.problem);
    let after = requeue.iter().copied().chain(active.resync(primary)).min();
    status_input.problems.result(after)
}

#[expect(clippy::too_many_lines, reason = "the steps of one round, in order")]
async fn round(
    shared: &Shared,
    caches: &Caches,
    active: &Arc<ActiveModule>,
    request: &ReconcileRequest,
    primary_state: &mut PrimaryState,
) -> Round {
    let unsettled = apply::refresh(active, caches, primary_state).await.err();

    let begun = shared.begin_run(request);
    let snapshot = active.view.snapshot();
    let primary = match find_primary(active, &snapshot, request, primary_state) {
        Ok(primary) => primary,
        Err(done) => {
            if done == ReconcileResult::Ok(None) {
                shared.health.record(request, None);
            }
            return Round::Ended(done);
        }
    };
    if primary_state.uid != primary.uid {
        shared.events.forget(&request.module, &primary_state.uid);
        *primary_state = PrimaryState { uid: primary.uid.clone(), ..PrimaryState::default() };
    }
    primary_state.unfinished_round.begin(primary.generation);

    let seen = Evaluation::new(active, &primary);
    if let Some(problem) = unsettled {
        // It names an object, and a guest can name one after a value.
        return match GrantedSecrets::read(active, &primary.key).await {
            Ok(granted) => seen.granted(granted).blocked(problem),
            Err(problem) => seen.blocked(problem),
        };
    }
    let finalizers = Finalizers { shared, caches, active, request, primary: &primary };
    let held = active.settings().paused || is_paused(&primary);
    let mut seen = match ensure_finalizer(&finalizers, held, seen, primary_state).await {
        Ok(seen) => seen,
        Err(round) => return round,
    };
    let deleting = primary.is_terminating();

    let granted = match GrantedSecrets::read(active, &primary.key).await {
        Ok(granted) => Arc::new(granted),
        Err(problem) => return seen.blocked(problem),
    };
    seen.status_input.granted = granted.clone();
    let now = shared.env.now();
    let mut observation = Observation::new(active, &snapshot, primary.clone(), now, &granted);
    let made = observation.owned();
    let result = run(shared, active, &made, &primary_state.unapplied, &mut observation).await;

    let unknown = observation.take_unknown();
    if !unknown.is_empty() {
        primary_state.needs_read.extend(unknown);
        return Round::Again(seen);
    }
    seen.status_input.unserved = unserved_optional(active, &snapshot);
    let me = active.owner(&primary);
    let planned = match take_outcome(active, result, &me, &mut seen) {
        Ok((complete, desired_state)) => {
            let plan = make_plan(
                &mut observation,
                &snapshot,
                &me,
                &desired_state,
                complete,
                &made,
                primary_state,
                now,
            );
            Some((complete, desired_state, plan))
        }
        Err((refused, figure)) => {
            let labels = [&**active.name(), figure];
            shared.metrics.guest_failures.with_label_values(&labels).inc();
            seen.failing = Some((refused.reason.clone(), refused.message.clone()));
            seen.status_input.problems.push(refused);
            None
        }
    };
    seen.status_input.owned = own(&made, &primary).cloned().collect();
    let reads = observation.into_reads();
    if begun.record(request, reads, active.settings().recorded_read_bytes) {
        shared.wake(request, &Trigger::ReadChanged);
    }
    let Some((complete, desired_state, plan)) = planned else {
        primary_state.plan.clean = false;
        return Round::Stable(seen);
    };

    // A pause stops no deletion.
    if held && !deleting {
        return Round::Stable(paused(seen, &plan, primary_state, now));
    }
    let apply = Apply { shared, caches, active, request, primary: &me, now, granted: &granted };
    let outcome = apply.carry_out(&plan, &desired_state, primary_state).await;
    let clean = complete && outcome.is_clean();
    let became_clean = clean && !primary_state.plan.clean;
    primary_state.plan.clean = clean;
    forget_old(primary_state, &desired_state, now);
    seen.status_input.problems = outcome.problems;
    seen.status_input.adopted = outcome.adopted;
    seen.status_input.up_to_date = outcome.up_to_date;
    let wrote = !outcome.changed.is_empty();
    seen.status_input.changed = outcome.changed;
    if outcome.limited {
        return Round::Limited(seen);
    }
    let transient =
        seen.status_input.problems.0.iter().any(|problem| problem.retry == Retry::Backoff);
    // A guest that says what could not be applied says it of this round, not of the one before.
    let has_news = primary_state.record_unapplied(seen.status_input.problems.unapplied());
    // A prune that waits for a clean round has it now, if the kinds were readable.
    let prune_now = became_clean && plan.prune_pending && all_readable(active, &snapshot);
    if ((wrote || has_news) && !transient) || outcome.rerun || prune_now {
        return Round::Again(seen);
    }
    let nothing_left = plan.pending_deletion.is_empty() && seen.status_input.problems.is_empty();
    if deleting && seen.finalized && nothing_left {
        return remove_finalizer(&finalizers, true, seen, primary_state).await;
    }
    Round::Stable(seen)
}

/// What comes before the guest is asked, by the finalizers. Gives `seen` back if the guest is.
async fn ensure_finalizer(
    finalizers: &Finalizers<'_>,
    held: bool,
    seen: Box<Evaluation>,
    primary_state: &mut PrimaryState,
) -> Result<Box<Evaluation>, Round> {
    match finalizers.active.finalizer_action(finalizers.primary) {
        FinalizerAction::Nothing => {
            finalizers.shared.health.record(finalizers.request, None);
            Err(Round::Ended(ReconcileResult::Ok(None)))
        }
        FinalizerAction::Reconcile | FinalizerAction::Finalize => Ok(seen),
        // Nothing is written, so there is nothing that it would have to be asked about.
        FinalizerAction::Add if held => Ok(seen),
        FinalizerAction::Add => Err(match finalizers.add(primary_state).await {
            WriteOutcome::Applied | WriteOutcome::Conflict => Round::Again(seen),
            WriteOutcome::Failed(problem) => seen.blocked(problem),
        }),
        FinalizerAction::Remove => {
            Err(remove_finalizer(finalizers, false, seen, primary_state).await)
        }
    }
}

/// Takes the module's finalizers off a primary. `finalized`: the guest has nothing left to do for
/// it.
async fn remove_finalizer(
    finalizers: &Finalizers<'_>,
    finalized: bool,
    seen: Box<Evaluation>,
    primary_state: &mut PrimaryState,
) -> Round {
    match finalizers.release(finalized, primary_state).await {
        WriteOutcome::Applied => {
            finalizers.shared.health.record(finalizers.request, None);
            Round::Ended(ReconcileResult::Ok(None))
        }
        WriteOutcome::Conflict => Round::Again(seen),
        WriteOutcome::Failed(problem) => seen.blocked(problem),
    }
}

/// The primary, if there is something to do for it; else how the work on its key ends.
fn find_primary(
    active: &ActiveModule,
    snapshot: &CacheSnapshot,
    request: &ReconcileRequest,
    primary_state: &mut PrimaryState,
) -> Result<Arc<Object>, ReconcileResult> {
    let primary = match snapshot.get(&active.primary, &request.key) {
        Lookup::Found(primary) => primary,
        Lookup::Absent => return Err(ReconcileResult::Forget),
        Lookup::Unknown => {
            primary_state
                .needs_read
                .insert(ObjectRef::new(active.primary.clone(), request.key.clone()));
            return Err(ReconcileResult::Failed);
        }
        // Its state's change runs the key again.
        Lookup::Unreadable(_) => return Err(ReconcileResult::AwaitChange(None)),
    };
    // A guest never sees a cache that has not been read; what changes that runs the key again.
    if is_synced(snapshot) { Ok(primary) } else { Err(ReconcileResult::Ok(None)) }
}

/// Runs the guest, when it is its turn. Nothing is written.
///
/// Texts are joined only while a permit is held: so the permits bound how many are alive at once,
/// and the guest's memory how large each may be.
pub async fn run(
    shared: &Shared,
    active: &ActiveModule,
    made: &[(ObjectRef, Arc<Object>)],
    unapplied: &[Unapplied],
    observation: &mut Observation<'_>,
) -> Result<Run, CallError> {
    let asked = shared.elapsed();
    let tenant = module_queue::tenant_of(&observation.primary().key).to_owned();
    let _permit = shared.permits.acquire(active.name(), &tenant).await;
    shared
        .metrics
        .permit_wait_seconds
        .observe(shared.elapsed().saturating_sub(asked).as_secs_f64());
    let mut call = || {
        let guest = active.guest();
        let document = observation.document(made, unapplied, guest.limits().memory_bytes)?;
        guest.reconcile(&document, observation)
    };
    let mut result = match shared.execution {
        Execution::Threads => tokio::task::block_in_place(call),
        Execution::Inline => call(),
    };
    if let Ok(run) = &mut result {
        observation.secrets().mask_outcome(&mut run.outcome);
        let seconds = run.figures.time.as_secs_f64();
        shared.metrics.sandbox_seconds.with_label_values(&[&**active.name()]).observe(seconds);
        let waits = match &run.outcome {
            Outcome::Complete(desired) | Outcome::Partial(desired) => desired.requeue_after_seconds,
            Outcome::Failed(failure) => failure.requeue_after_seconds,
        };
        if run.figures.clock_read
            && waits.is_none()
            && active.resync(observation.primary()).is_none()
        {
            tracing::warn!(
                module = %active.name(),
                "the guest reads the clock but asks for no requeueAfterSeconds and has no resync period: time alone does not run it again"
            );
        }
    }
    result
}

/// What the guest wants, or why it cannot be had and as what that is counted: words of ours,
/// never the guest's, or it could make figures without end. Notes what it says of the status.
fn take_outcome(
    active: &ActiveModule,
    result: Result<Run, CallError>,
    primary: &Primary,
    seen: &mut Evaluation,
) -> Result<(bool, DesiredState), (Problem, &'static str)> {
    let (complete, desired) = match result.map(|run| run.outcome) {
        Ok(Outcome::Complete(desired)) => (true, desired),
        Ok(Outcome::Partial(desired)) => (false, desired),
        Ok(Outcome::Failed(failure)) => return Err((take_failure(failure, seen), GUEST_FAILED)),
        Err(error) => {
            let problem = Problem {
                object_ref: None,
                reason: error.reason().to_owned(),
                // It may quote what the guest logged, as a line within this message.
                message: foreign::one_line(
                    seen.status_input.granted.mask(&format!("The guest failed: {error}")),
                    guest_status::MESSAGE_BYTES_MAX,
                ),
                retry: Retry::Backoff,
            };
            return Err((problem, error.reason()));
        }
    };
    let desired_state = active.read_desired(&desired, primary).map_err(|refusal| {
        (invalid_desired_problem(&refusal, &seen.status_input.granted), refusal.reason())
    })?;
    let Desired { status, conditions, mut events, requeue_after_seconds, finalized, .. } = desired;
    guest_status::cut_notes(&mut events);
    seen.finalized = finalized;
    seen.status_input.status = Some(status.unwrap_or_default());
    seen.status_input.conditions = conditions;
    seen.status_input.events = events;
    seen.requeue = after(requeue_after_seconds);
    Ok((complete, desired_state))
}

/// A time to come again; zero is none, or the guest would run without end.
fn after(seconds: Option<u32>) -> Option<Duration> {
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

fn invalid_desired_problem(refusal: &InvalidDesired, granted: &GrantedSecrets) -> Problem {
    Problem {
        object_ref: None,
        reason: refusal.reason().to_owned(),
        message: granted.mask(&refusal.to_string()),
        // The same input gives the same answer: only a change helps.
        retry: Retry::OnChange,
    }
}

fn take_failure(failure: Failure, seen: &mut Evaluation) -> Problem {
    let Failure {
        reason,
        message,
        permanent,
        status,
        conditions,
        mut events,
        requeue_after_seconds,
    } = failure;
    if let Err(problem) = guest_status::check(status.as_ref(), &conditions, &events) {
        return invalid_desired_problem(
            &InvalidDesired::MalformedStatus { problem },
            &seen.status_input.granted,
        );
    }
    guest_status::cut_notes(&mut events);
    seen.status_input.status = status;
    seen.status_input.conditions = conditions;
    seen.status_input.events = events;
    let after = after(requeue_after_seconds);
    Problem {
        object_ref: None,
        reason: if guest_status::is_reason(&reason) { reason } else { GUEST_FAILED.to_owned() },
        message: foreign::message(&message, guest_status::MESSAGE_BYTES_MAX),
        retry: match after {
            Some(after) => Retry::After(after),
            None if permanent => Retry::OnChange,
            None => Retry::Backoff,
        },
    }
}

/// What is to be done about a wish.
#[expect(clippy::too_many_arguments, reason = "a plan is made from all that a round has")]
pub fn make_plan(
    observation: &mut Observation<'_>,
    snapshot: &CacheSnapshot,
    me: &Primary,
    desired_state: &DesiredState,
    complete: bool,
    made: &[(ObjectRef, Arc<Object>)],
    primary_state: &PrimaryState,
    now: Timestamp,
) -> Plan {
    let seen: Vec<plan::Lookup> = desired_state
        .objects
        .iter()
        .map(|desired_object| planners(observation.lookup(&desired_object.object_ref)))
        .collect();
    plan::plan(&plan::Input {
        primary: me,
        desired: desired_state,
        complete,
        lookups: &seen,
        owned: made,
        state: &primary_state.plan,
        readable: all_readable(observation.active(), snapshot),
        deleting: observation.primary().is_terminating(),
        adopt: consent::of_user(observation.primary(), ADOPT_ANNOTATION).as_deref() == Some("true"),
        now,
    })
}

/// What the caches say, in the planner's words.
fn planners(seen: Lookup) -> plan::Lookup {
    match seen {
        Lookup::Found(object) => plan::Lookup::Found(object),
        Lookup::Absent => plan::Lookup::Absent,
        Lookup::Unknown => plan::Lookup::Unknown,
        Lookup::Unreadable(CacheReadError::NotServed) => plan::Lookup::NotServed,
        Lookup::Unreadable(why) => plan::Lookup::Unreadable(why.to_string()),
    }
}

/// What a pause holds back is told, and nothing is done.
fn paused(
    mut seen: Box<Evaluation>,
    plan: &Plan,
    primary_state: &mut PrimaryState,
    now: Timestamp,
) -> Box<Evaluation> {
    seen.status_input.paused = Some(apply::describe_plan(plan));
    let granted = &seen.status_input.granted;
    let problems = skipped_problems(plan, now).0.into_iter();
    seen.status_input.problems = Problems(problems.map(|one| granted.mask_problem(one)).collect());
    primary_state.record_unapplied(seen.status_input.problems.unapplied());
    seen
}

/// What a plan leaves alone for a reason that is a problem.
fn skipped_problems(plan: &Plan, now: Timestamp) -> Problems {
    let problems = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Skip(leave) => apply::problem_of(&step.object_ref, leave, now),
        _ => None,
    });
    Problems(problems.collect())
}

/// Old reverts and what is no longer wanted need no memory.
fn forget_old(primary_state: &mut PrimaryState, desired_state: &DesiredState, now: Timestamp) {
    primary_state.plan.reverts.drop_expired(now);
    let desired_object: BTreeSet<&ObjectRef> =
        desired_state.objects.iter().map(|desired_object| &desired_object.object_ref).collect();
    primary_state.plan.applied.retain(|object_ref, _| desired_object.contains(object_ref));
    primary_state.plan.rejected.retain(|object_ref, _| desired_object.contains(object_ref));
}

/// Every declared kind has been read, or it is known why it cannot be.
fn is_synced(snapshot: &CacheSnapshot) -> bool {
    snapshot.states().values().all(|state| {
        matches!(
            state,
            KindState::Synced
                | KindState::NotServed
                | KindState::Mismatched(_)
                | KindState::Forbidden(_)
        )
    })
}

/// Every declared kind could be read; an optional one may be unserved.
fn all_readable(active: &ActiveModule, snapshot: &CacheSnapshot) -> bool {
    active.kinds().all(|kind| match snapshot.unreadable(kind) {
        None => true,
        Some(CacheReadError::NotServed) => active.is_optional(kind),
        Some(_) => false,
    })
}

fn unserved_optional(active: &ActiveModule, snapshot: &CacheSnapshot) -> Vec<String> {
    active
        .kinds()
        .filter(|kind| {
            active.is_optional(kind) && snapshot.unreadable(kind) == Some(CacheReadError::NotServed)
        })
        .map(ToString::to_string)
        .collect()
}

fn is_paused(primary: &Object) -> bool {
    consent::of_user(primary, PAUSED_ANNOTATION).as_deref() == Some("true")
}
