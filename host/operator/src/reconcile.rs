//! One burst: observe, run, plan, apply, again and again until quiet, then report once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::cache::Unreadable;
use innkeeper_cluster::{Caches, Frozen, KindState, Seen};
use innkeeper_contract::{Desired, Event, EventType, Failure, Unapplied};
use innkeeper_core::finalizer::Turn;
use innkeeper_core::ownership::{ADOPT_ANNOTATION, Primary};
use innkeeper_core::plan::{self, Action, Plan};
use innkeeper_core::wanted::{Refusal, Wish};
use innkeeper_core::{Object, Target, consent, foreign, said};
use innkeeper_sandbox::{CallError, Outcome, Run};
use jiff::Timestamp;

use crate::apply::{self, Apply};
use crate::cause::Cause;
use crate::deeds::Deeds;
use crate::finalize::{Finalizers, Written};
use crate::granted::Granted;
use crate::health::Failing;
use crate::lane;
use crate::memory::Memory;
use crate::observe::{Observation, own};
use crate::problem::{Problem, Problems, Retry};
use crate::queue::{Done, Work};
use crate::report::{self, Findings};
use crate::running::{RESYNC_ANNOTATION, Running};
use crate::shared::{Execution, Shared};
use crate::unfinished::UnfinishedRound;

/// So many rounds in a row may write; then the guest does not converge.
pub const WRITING_ROUNDS_MAX: u32 = 10;

/// The reason of a failure of the guest's own that gives none that can be written.
const GUEST_FAILED: &str = "GuestFailed";

pub use innkeeper_core::consent::PAUSED_ANNOTATION;

/// The reason of a primary whose writes the rate has ended for now.
const RATE_LIMITED: &str = "WriteRateLimited";

/// So often is the status of a primary reported whose writes take many turns.
const UNFINISHED_REPORT: Duration = Duration::from_secs(10);

/// How one round ended.
enum Round {
    /// Something was written or learnt: run again at once.
    Again(Box<Sight>),
    /// The write rate ended it: continue when the rate lets it.
    Limited(Box<Sight>),
    /// Nothing is left to do for now.
    Quiet(Box<Sight>),
    /// There is nothing to report on: the primary is gone, going, or not this module's.
    Nothing(Done),
}

/// What a round saw and found.
struct Sight {
    running: Arc<Running>,
    primary: Arc<Object>,
    findings: Findings,
    failing: Option<Failing>,
    requeue: Option<Duration>,
    /// Whether the guest was asked; else nothing is known of how it runs.
    guest_ran: bool,
    /// The guest says that nothing is left to do for a primary that is being deleted.
    finalized: bool,
}

impl Sight {
    fn of(running: &Arc<Running>, primary: &Arc<Object>) -> Box<Self> {
        Box::new(Self {
            running: running.clone(),
            primary: primary.clone(),
            findings: Findings::default(),
            failing: None,
            requeue: None,
            guest_ran: true,
            finalized: false,
        })
    }

    /// What is to be masked in whatever is said.
    fn granted(mut self: Box<Self>, granted: Granted) -> Box<Self> {
        self.findings.granted = Arc::new(granted);
        self
    }

    /// Nothing can be done, and it is not the guest's fault.
    fn hindered(mut self: Box<Self>, problem: Problem) -> Round {
        let problem = self.findings.granted.mask_problem(problem);
        self.findings.problems.push(problem);
        self.guest_ran = false;
        Round::Quiet(self)
    }
}

/// Works on one key until it is quiet, and notes what that came to.
pub async fn reconcile(shared: &Shared, caches: &Caches, work: &Work, deeds: &mut Deeds) -> Done {
    let mut memory = shared.memories.take(work);
    let done = burst(shared, caches, work, &mut memory, deeds).await;
    if done == Done::Forget {
        shared.index().forget(work);
        shared.health.note(work, None);
        shared.events.forget(&work.module, &memory.uid);
    } else {
        shared.memories.put(work, memory);
    }
    // A module that was stopped meanwhile leaves nothing behind: its keys were forgotten before this
    // one was recorded.
    if shared.module(&work.module).is_none() {
        shared.index().forget(work);
        shared.memories.take(work);
    }
    done
}

async fn burst(
    shared: &Shared,
    caches: &Caches,
    work: &Work,
    memory: &mut Memory,
    deeds: &mut Deeds,
) -> Done {
    let mut burst = std::mem::take(&mut memory.unfinished);
    let mut changed_now = BTreeMap::new();
    loop {
        // Each round takes the version that serves when it begins: once a new one has served a
        // key, the old one writes nothing for it any more.
        let Some(running) = shared.module(&work.module) else { return Done::Forget };
        let round = round(shared, caches, &running, work, memory).await;
        let (mut seen, again, limited) = match round {
            Round::Nothing(done) => {
                deeds.count(&changed_now, 0);
                return done;
            }
            Round::Again(seen) => (seen, true, false),
            Round::Limited(seen) => (seen, false, true),
            Round::Quiet(seen) => (seen, false, false),
        };
        burst.rounds += u32::from(!limited);
        burst.adopted.append(&mut seen.findings.adopted);
        burst.changed.extend(seen.findings.changed.iter().map(|(one, deed)| (one.clone(), *deed)));
        changed_now.append(&mut seen.findings.changed);
        for event in seen.findings.events.drain(..) {
            if burst.events.len() < said::EVENTS_MAX && !burst.events.contains(&event) {
                burst.events.push(event);
            }
        }
        if again && burst.rounds < WRITING_ROUNDS_MAX {
            continue;
        }
        deeds.count(&changed_now, seen.findings.in_order);
        if limited {
            memory.unfinished = burst;
            return interrupt(shared, caches, work, *seen, memory, deeds).await;
        }
        memory.unfinished_round = UnfinishedRound::default();
        if again {
            seen.findings.problems.push(Problem {
                target: None,
                reason: "NotConverging".to_owned(),
                message:
                    "The guest wants something else after each write; it is tried again later."
                        .to_owned(),
                retry: Retry::Backoff,
            });
        }
        seen.findings.adopted = burst.adopted;
        seen.findings.changed = burst.changed;
        seen.findings.events = burst.events;
        return finish(shared, caches, work, *seen, memory, deeds).await;
    }
}

/// The write rate ended the turn. Reports it now and then, and has the key continue.
async fn interrupt(
    shared: &Shared,
    caches: &Caches,
    work: &Work,
    mut seen: Sight,
    memory: &mut Memory,
    deeds: &mut Deeds,
) -> Done {
    let Sight { running, primary, findings, .. } = &mut seen;
    let now = shared.elapsed();
    let is_due = memory
        .unfinished
        .reported
        .is_none_or(|reported| now.saturating_sub(reported) >= UNFINISHED_REPORT);
    if is_due && !running.settings().paused {
        findings.problems.push(Problem {
            target: None,
            reason: RATE_LIMITED.to_owned(),
            message: "Objects remain to be written: the module has used up limits.writesPerSecond; the host continues as the rate allows."
                .to_owned(),
            retry: Retry::OnChange,
        });
        findings.changed.clone_from(&memory.unfinished.changed);
        memory.unfinished.reported = Some(now);
        // A status that cannot be written is logged, and reported when all is written.
        if let Ok(written) =
            report::report(shared, caches, running, work, primary, findings, memory).await
        {
            deeds.status = written;
        }
    }
    shared.health.note(work, None);
    RATE_LIMITED.clone_into(&mut deeds.problem);
    Done::Continue
}

/// Reports, and says when the key is worked on again.
async fn finish(
    shared: &Shared,
    caches: &Caches,
    work: &Work,
    mut seen: Sight,
    memory: &mut Memory,
    deeds: &mut Deeds,
) -> Done {
    let Sight { running, primary, findings, failing, requeue, guest_ran, .. } = &mut seen;
    if let Some(Err(message)) = Running::own_resync(primary) {
        findings.events.push(Event {
            type_: EventType::Warning,
            reason: "InvalidResyncPeriod".to_owned(),
            message: format!("The annotation {RESYNC_ANNOTATION} is not heeded: {message}."),
        });
    }
    // A suspended module writes nothing at all.
    if !running.settings().paused {
        match report::report(shared, caches, running, work, primary, findings, memory).await {
            Ok(written) => deeds.status = written,
            Err(problem) => {
                let told = (problem.reason.clone(), problem.message.clone());
                *failing = failing.take().or(Some(told));
                findings.problems.push(problem);
            }
        }
    }
    if *guest_ran {
        shared.health.note(work, failing.take());
    }
    findings.problems.reason().unwrap_or_default().clone_into(&mut deeds.problem);
    let after = requeue.iter().copied().chain(running.resync(primary)).min();
    findings.problems.done(after)
}

async fn round(
    shared: &Shared,
    caches: &Caches,
    running: &Arc<Running>,
    work: &Work,
    memory: &mut Memory,
) -> Round {
    let unsettled = apply::settle(running, caches, memory).await.err();

    let begun = shared.begin(work);
    let frozen = running.view.freeze();
    let primary = match find_primary(running, &frozen, work, memory) {
        Ok(primary) => primary,
        Err(done) => {
            if done == Done::Ok(None) {
                shared.health.note(work, None);
            }
            return Round::Nothing(done);
        }
    };
    if memory.uid != primary.uid {
        shared.events.forget(&work.module, &memory.uid);
        *memory = Memory { uid: primary.uid.clone(), ..Memory::default() };
    }
    memory.unfinished_round.begin(primary.generation);

    let seen = Sight::of(running, &primary);
    if let Some(problem) = unsettled {
        // It names an object, and a guest can name one after a value.
        return match Granted::read(running, &primary.key).await {
            Ok(granted) => seen.granted(granted).hindered(problem),
            Err(problem) => seen.hindered(problem),
        };
    }
    let finalizers = Finalizers { shared, caches, running, work, primary: &primary };
    let held = running.settings().paused || is_paused(&primary);
    let mut seen = match take_turn(&finalizers, held, seen, memory).await {
        Ok(seen) => seen,
        Err(round) => return round,
    };
    let deleting = primary.is_terminating();

    let granted = match Granted::read(running, &primary.key).await {
        Ok(granted) => Arc::new(granted),
        Err(problem) => return seen.hindered(problem),
    };
    seen.findings.granted = granted.clone();
    let now = shared.env.now();
    let mut observation = Observation::new(running, &frozen, primary.clone(), now, &granted);
    let made = observation.made();
    let result = run(shared, running, &made, &memory.unapplied, &mut observation).await;

    let unknown = observation.take_unknown();
    if !unknown.is_empty() {
        memory.unsettled.extend(unknown);
        return Round::Again(seen);
    }
    seen.findings.unserved = unserved_optional(running, &frozen);
    let me = running.owner(&primary);
    let planned = match take_outcome(running, result, &me, &mut seen) {
        Ok((complete, wish)) => {
            let plan =
                make_plan(&mut observation, &frozen, &me, &wish, complete, &made, memory, now);
            Some((complete, wish, plan))
        }
        Err((refused, figure)) => {
            let labels = [&**running.name(), figure];
            shared.metrics.guest_failures.with_label_values(&labels).inc();
            seen.failing = Some((refused.reason.clone(), refused.message.clone()));
            seen.findings.problems.push(refused);
            None
        }
    };
    seen.findings.owned = own(&made, &primary).cloned().collect();
    let reads = observation.into_reads();
    if begun.record(work, reads, running.settings().recorded_read_bytes) {
        shared.wake(work, &Cause::Meanwhile);
    }
    let Some((complete, wish, plan)) = planned else {
        memory.plan.clean = false;
        return Round::Quiet(seen);
    };

    // A pause stops no deletion.
    if held && !deleting {
        return Round::Quiet(paused(seen, &plan, memory, now));
    }
    let apply = Apply { shared, caches, running, work, me: &me, now, granted: &granted };
    let outcome = apply.carry_out(&plan, &wish, memory).await;
    let clean = complete && outcome.is_clean();
    let became_clean = clean && !memory.plan.clean;
    memory.plan.clean = clean;
    forget_old(memory, &wish, now);
    seen.findings.problems = outcome.problems;
    seen.findings.adopted = outcome.adopted;
    seen.findings.in_order = outcome.in_order;
    let wrote = !outcome.changed.is_empty();
    seen.findings.changed = outcome.changed;
    if outcome.limited {
        return Round::Limited(seen);
    }
    let transient = seen.findings.problems.0.iter().any(|problem| problem.retry == Retry::Backoff);
    // A guest that says what could not be applied says it of this round, not of the one before.
    let has_news = memory.learn(seen.findings.problems.unapplied());
    // A prune that waits for a clean round has it now, if the kinds were readable.
    let prune_now = became_clean && plan.prune_waits && all_readable(running, &frozen);
    if ((wrote || has_news) && !transient) || outcome.again || prune_now {
        return Round::Again(seen);
    }
    let nothing_left = plan.going.is_empty() && seen.findings.problems.is_empty();
    if deleting && seen.finalized && nothing_left {
        return let_go(&finalizers, true, seen, memory).await;
    }
    Round::Quiet(seen)
}

/// What comes before the guest is asked, by the finalizers. Gives `seen` back if the guest is.
async fn take_turn(
    finalizers: &Finalizers<'_>,
    held: bool,
    seen: Box<Sight>,
    memory: &mut Memory,
) -> Result<Box<Sight>, Round> {
    match finalizers.running.turn(finalizers.primary) {
        Turn::Nothing => {
            finalizers.shared.health.note(finalizers.work, None);
            Err(Round::Nothing(Done::Ok(None)))
        }
        Turn::Work | Turn::Finalize => Ok(seen),
        // Nothing is written, so there is nothing that it would have to be asked about.
        Turn::Add if held => Ok(seen),
        Turn::Add => Err(match finalizers.add(memory).await {
            Written::Yes | Written::Overtaken => Round::Again(seen),
            Written::No(problem) => seen.hindered(problem),
        }),
        Turn::Release => Err(let_go(finalizers, false, seen, memory).await),
    }
}

/// Takes the module's finalizers off a primary. `finalized`: the guest has nothing left to do for it.
async fn let_go(
    finalizers: &Finalizers<'_>,
    finalized: bool,
    seen: Box<Sight>,
    memory: &mut Memory,
) -> Round {
    match finalizers.release(finalized, memory).await {
        Written::Yes => {
            finalizers.shared.health.note(finalizers.work, None);
            Round::Nothing(Done::Ok(None))
        }
        Written::Overtaken => Round::Again(seen),
        Written::No(problem) => seen.hindered(problem),
    }
}

/// The primary, if there is something to do for it; else how the work on its key ends.
fn find_primary(
    running: &Running,
    frozen: &Frozen,
    work: &Work,
    memory: &mut Memory,
) -> Result<Arc<Object>, Done> {
    let primary = match frozen.get(&running.primary, &work.key) {
        Seen::Present(primary) => primary,
        Seen::Absent => return Err(Done::Forget),
        Seen::Unknown => {
            memory.unsettled.insert(Target::new(running.primary.clone(), work.key.clone()));
            return Err(Done::Failed);
        }
        // Its state's change runs the key again.
        Seen::Unreadable(_) => return Err(Done::Stuck(None)),
    };
    // A guest never sees a cache that has not been read; what changes that runs the key again.
    if is_synced(frozen) { Ok(primary) } else { Err(Done::Ok(None)) }
}

/// Runs the guest, when it is its turn. Nothing is written.
///
/// Texts are joined only while a permit is held: so the permits bound how many are alive at once, and
/// the guest's memory how large each may be.
pub async fn run(
    shared: &Shared,
    running: &Running,
    made: &[(Target, Arc<Object>)],
    unapplied: &[Unapplied],
    observation: &mut Observation<'_>,
) -> Result<Run, CallError> {
    let asked = shared.elapsed();
    let tenant = lane::tenant_of(&observation.primary().key).to_owned();
    let _permit = shared.permits.acquire(running.name(), &tenant).await;
    shared
        .metrics
        .permit_wait_seconds
        .observe(shared.elapsed().saturating_sub(asked).as_secs_f64());
    let mut call = || {
        let guest = running.guest();
        let document = observation.document(made, unapplied, guest.limits().memory_bytes)?;
        guest.reconcile(&document, observation)
    };
    let mut result = match shared.execution {
        Execution::Threads => tokio::task::block_in_place(call),
        Execution::Inline => call(),
    };
    if let Ok(run) = &mut result {
        observation.granted().mask_outcome(&mut run.outcome);
        let seconds = run.figures.time.as_secs_f64();
        shared.metrics.sandbox_seconds.with_label_values(&[&**running.name()]).observe(seconds);
        let waits = match &run.outcome {
            Outcome::Complete(desired) | Outcome::Partial(desired) => desired.requeue_after_seconds,
            Outcome::Failed(failure) => failure.requeue_after_seconds,
        };
        if run.figures.clock_read
            && waits.is_none()
            && running.resync(observation.primary()).is_none()
        {
            tracing::warn!(
                module = %running.name(),
                "the guest reads the clock but asks for no requeueAfterSeconds and has no resync period: time alone does not run it again"
            );
        }
    }
    result
}

/// What the guest wants, or why it cannot be had and as what that is counted: words of ours,
/// never the guest's, or it could make figures without end. Notes what it says of the status.
fn take_outcome(
    running: &Running,
    result: Result<Run, CallError>,
    primary: &Primary,
    seen: &mut Sight,
) -> Result<(bool, Wish), (Problem, &'static str)> {
    let (complete, desired) = match result.map(|run| run.outcome) {
        Ok(Outcome::Complete(desired)) => (true, desired),
        Ok(Outcome::Partial(desired)) => (false, desired),
        Ok(Outcome::Failed(failure)) => return Err((take_failure(failure, seen), GUEST_FAILED)),
        Err(error) => {
            let problem = Problem {
                target: None,
                reason: error.reason().to_owned(),
                // It may quote what the guest logged, as a line within this message.
                message: foreign::one_line(
                    seen.findings.granted.mask(&format!("The guest failed: {error}")),
                    said::MESSAGE_BYTES_MAX,
                ),
                retry: Retry::Backoff,
            };
            return Err((problem, error.reason()));
        }
    };
    let wish = running
        .wish(&desired, primary)
        .map_err(|refusal| (of_refusal(&refusal, &seen.findings.granted), refusal.reason()))?;
    let Desired { status, conditions, mut events, requeue_after_seconds, finalized, .. } = desired;
    said::cut_notes(&mut events);
    seen.finalized = finalized;
    seen.findings.status = Some(status.unwrap_or_default());
    seen.findings.conditions = conditions;
    seen.findings.events = events;
    seen.requeue = after(requeue_after_seconds);
    Ok((complete, wish))
}

/// A time to come again; zero is none, or the guest would run without end.
fn after(seconds: Option<u32>) -> Option<Duration> {
    seconds.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into()))
}

fn of_refusal(refusal: &Refusal, granted: &Granted) -> Problem {
    Problem {
        target: None,
        reason: refusal.reason().to_owned(),
        message: granted.mask(&refusal.to_string()),
        // The same input gives the same answer: only a change helps.
        retry: Retry::OnChange,
    }
}

fn take_failure(failure: Failure, seen: &mut Sight) -> Problem {
    let Failure {
        reason,
        message,
        permanent,
        status,
        conditions,
        mut events,
        requeue_after_seconds,
    } = failure;
    if let Err(problem) = said::check(status.as_ref(), &conditions, &events) {
        return of_refusal(&Refusal::MalformedStatus { problem }, &seen.findings.granted);
    }
    said::cut_notes(&mut events);
    seen.findings.status = status;
    seen.findings.conditions = conditions;
    seen.findings.events = events;
    let after = after(requeue_after_seconds);
    Problem {
        target: None,
        reason: if said::is_reason(&reason) { reason } else { GUEST_FAILED.to_owned() },
        message: foreign::message(&message, said::MESSAGE_BYTES_MAX),
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
    frozen: &Frozen,
    me: &Primary,
    wish: &Wish,
    complete: bool,
    made: &[(Target, Arc<Object>)],
    memory: &Memory,
    now: Timestamp,
) -> Plan {
    let seen: Vec<plan::Seen> =
        wish.wanted.iter().map(|wanted| planners(observation.look(&wanted.target))).collect();
    plan::plan(&plan::Input {
        primary: me,
        wish,
        complete,
        seen: &seen,
        made,
        memory: &memory.plan,
        readable: all_readable(observation.running(), frozen),
        deleting: observation.primary().is_terminating(),
        adopt: consent::of_user(observation.primary(), ADOPT_ANNOTATION).as_deref() == Some("true"),
        now,
    })
}

/// What the caches say, in the planner's words.
fn planners(seen: Seen) -> plan::Seen {
    match seen {
        Seen::Present(object) => plan::Seen::Present(object),
        Seen::Absent => plan::Seen::Absent,
        Seen::Unknown => plan::Seen::Unknown,
        Seen::Unreadable(Unreadable::NotServed) => plan::Seen::NotServed,
        Seen::Unreadable(why) => plan::Seen::Unreadable(why.to_string()),
    }
}

/// What a pause holds back is told, and nothing is done.
fn paused(mut seen: Box<Sight>, plan: &Plan, memory: &mut Memory, now: Timestamp) -> Box<Sight> {
    seen.findings.paused = Some(apply::tell(plan));
    let granted = &seen.findings.granted;
    let problems = left_alone(plan, now).0.into_iter();
    seen.findings.problems = Problems(problems.map(|one| granted.mask_problem(one)).collect());
    memory.learn(seen.findings.problems.unapplied());
    seen
}

/// What a plan leaves alone for a reason that is a problem.
fn left_alone(plan: &Plan, now: Timestamp) -> Problems {
    let problems = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Leave(leave) => apply::problem_of(&step.target, leave, now),
        _ => None,
    });
    Problems(problems.collect())
}

/// Old reverts and what is no longer wanted need no memory.
fn forget_old(memory: &mut Memory, wish: &Wish, now: Timestamp) {
    memory.plan.reverts.forget_old(now);
    let wanted: BTreeSet<&Target> = wish.wanted.iter().map(|wanted| &wanted.target).collect();
    memory.plan.applied.retain(|target, _| wanted.contains(target));
    memory.plan.rejected.retain(|target, _| wanted.contains(target));
}

/// Every declared kind has been read, or it is known why it cannot be.
fn is_synced(frozen: &Frozen) -> bool {
    frozen.states().values().all(|state| {
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
fn all_readable(running: &Running, frozen: &Frozen) -> bool {
    running.kinds().all(|kind| match frozen.unreadable(kind) {
        None => true,
        Some(Unreadable::NotServed) => running.is_optional(kind),
        Some(_) => false,
    })
}

fn unserved_optional(running: &Running, frozen: &Frozen) -> Vec<String> {
    running
        .kinds()
        .filter(|kind| {
            running.is_optional(kind) && frozen.unreadable(kind) == Some(Unreadable::NotServed)
        })
        .map(ToString::to_string)
        .collect()
}

fn is_paused(primary: &Object) -> bool {
    consent::of_user(primary, PAUSED_ANNOTATION).as_deref() == Some("true")
}
