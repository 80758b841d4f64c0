//! Carrying out a plan, as the module's ServiceAccount, one step after the other.
//!
//! What fails is a problem of that object; the others go on. But a name that turned out to
//! be taken ends the round's writes: two primaries that want one set of names never split it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::session::Force;
use innkeeper_cluster::{ApiError, Applied, Caches, Deleted, Propagation};
use innkeeper_core::ownership::Primary;
use innkeeper_core::plan::{Action, Leave, Plan, Rejected, Step, Why};
use innkeeper_core::settled::Remembered;
use innkeeper_core::wanted::Wish;
use innkeeper_core::{Manager, Object, Target};
use jiff::Timestamp;

use crate::deeds::Deed;
use crate::granted::Granted;
use crate::memory::Memory;
use crate::problem::{Problem, Problems, Retry};
use crate::queue::Work;
use crate::running::Running;
use crate::shared::{self, Shared};

/// What carrying out a plan came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Objects that were created, changed or deleted; what a write left as it was is not.
    pub changed: BTreeMap<Target, Deed>,
    /// How many of the wanted objects are as they are wanted.
    pub in_order: usize,
    /// What was expected turned out to be otherwise: plan again at once.
    pub again: bool,
    /// The write rate ended the turn before all was done.
    pub limited: bool,
    /// What stands in the way.
    pub problems: Problems,
    /// Objects that were adopted.
    pub adopted: Vec<Target>,
}

impl Outcome {
    /// Whether all of the plan was done, and nothing stands in the way.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.again && !self.limited
    }
}

/// Carries out plans of one round.
pub struct Apply<'a> {
    /// The shared things.
    pub shared: &'a Shared,
    /// The caches, to be told of writes.
    pub caches: &'a Caches,
    /// The module.
    pub running: &'a Running,
    /// The primary's key.
    pub work: &'a Work,
    /// The primary, whose managers write.
    pub me: &'a Primary,
    /// The time.
    pub now: Timestamp,
    /// What masks granted Secrets in texts: the API server's answers quote what it refuses.
    pub granted: &'a Granted,
}

/// Whether the steps after one go on.
enum Next {
    GoOn,
    EndRound,
}

impl Apply<'_> {
    /// Carries out a plan, as far as the write rate lets it: the rest is left to a later turn.
    pub async fn carry_out(&self, plan: &Plan, wish: &Wish, memory: &mut Memory) -> Outcome {
        let unknown = plan.steps.iter().filter(|step| step.action == Action::Leave(Leave::Unknown));
        memory.unsettled.extend(unknown.map(|step| step.target.clone()));
        let mut round = std::mem::take(&mut memory.unfinished_round);
        let mut outcome = Outcome::default();
        outcome.problems.0.extend(round.standing(&plan.steps).cloned());
        let postpones = plan.steps.iter().any(|step| round.postpones(step));
        let mut attempted = BTreeSet::new();
        for step in &plan.steps {
            let writes = !matches!(step.action, Action::Leave(_));
            // What was not applied in this round may be what replaces it.
            if matches!(step.action, Action::Delete { .. } | Action::TakeBack { .. })
                && (postpones || outcome.again || !outcome.problems.is_empty())
            {
                continue;
            }
            if writes && (outcome.limited || round.postpones(step)) {
                continue;
            }
            if writes && !self.shared.may_write(self.work) {
                outcome.limited = true;
                continue;
            }
            if let Next::EndRound = self.step(step, wish, memory, &mut outcome).await {
                return outcome;
            }
            // One that was deleted to be made anew is created in the same round.
            if writes && outcome.changed.get(&step.target) != Some(&Deed::Deleted) {
                attempted.insert(step.target.clone());
            }
        }
        if outcome.limited {
            round.attempted.append(&mut attempted);
            let problems = outcome.problems.0.iter().filter(|problem| {
                problem.target.as_ref().is_some_and(|target| round.attempted.contains(target))
            });
            round.problems = problems.cloned().collect();
            memory.unfinished_round = round;
        } else {
            let refused: BTreeSet<_> =
                outcome.problems.0.iter().filter_map(|problem| problem.target.as_ref()).collect();
            outcome.again |= plan
                .steps
                .iter()
                .any(|step| round.postpones(step) && !refused.contains(&step.target));
        }
        outcome
    }

    async fn step(
        &self,
        step: &Step,
        wish: &Wish,
        memory: &mut Memory,
        outcome: &mut Outcome,
    ) -> Next {
        let target = &step.target;
        let wanted = step.wanted.and_then(|index| wish.wanted.get(index));
        let (body, verb) = match (&step.action, wanted) {
            (Action::Leave(leave), _) => {
                outcome.problems.0.extend(self.problem_of(target, leave));
                outcome.in_order +=
                    usize::from(matches!(leave, Leave::Settled | Leave::CreateOnly));
                return Next::GoOn;
            }
            (Action::Delete { uid } | Action::Recreate { uid }, _) => {
                return self.delete(target, uid, memory, outcome).await;
            }
            (Action::TakeBack { uid }, _) => {
                return self.take_back(target, uid, memory, outcome).await;
            }
            (Action::Merge { uid, .. }, Some(wanted)) => (wanted.apply_body(uid), "merge"),
            (Action::Create, Some(wanted)) => (wanted.create_body(), "create"),
            (Action::Apply { uid, .. }, Some(wanted)) => (wanted.apply_body(uid), "apply"),
            (Action::Adopt { uid, resource_version }, Some(wanted)) => {
                (wanted.adopt_body(uid, resource_version), "apply")
            }
            // A plan has an index for whatever it writes.
            (_, None) => return Next::GoOn,
        };
        tracing::info!(module = %self.running.name(), primary = %self.work.key, "{}", self.granted.mask(&step.to_string()));
        let session = &self.running.session;
        // Its event may overtake the answer: it is told once, as our write.
        let _writing = self.caches.writing(&target.kind, &target.key);
        let (manager, force) = match &step.action {
            Action::Merge { .. } => (&self.me.merger, Force::No),
            _ => (&self.me.manager, Force::Yes),
        };
        let result = session.apply(&target.kind, &target.key, manager, &body, force).await;
        match (result, wanted) {
            (Ok(applied), Some(wanted)) => {
                self.shared.count_write(self.work, verb);
                let predecessors = self.me.predecessors(&applied.object);
                let uid = applied.object.uid.clone();
                self.applied(step, (wanted.digest(), manager), applied, memory, outcome);
                for predecessor in predecessors {
                    if let Err(error) = self.empty(target, &uid, &predecessor).await {
                        return self.refused(target, "", &error, memory, outcome);
                    }
                }
                Next::GoOn
            }
            (Ok(_), None) => Next::GoOn,
            (Err(error), wanted) => {
                let digest = wanted.map(|wanted| wanted.digest().to_owned()).unwrap_or_default();
                self.refused(target, &digest, &error, memory, outcome)
            }
        }
    }

    fn applied(
        &self,
        step: &Step,
        (digest, manager): (&str, &Manager),
        applied: Applied,
        memory: &mut Memory,
        outcome: &mut Outcome,
    ) {
        let target = &step.target;
        let Applied { object, created } = applied;
        match Remembered::with_digest(digest, &object, manager) {
            Some(remembered) => {
                memory.plan.applied.insert(target.clone(), remembered);
            }
            None => {
                memory.plan.applied.remove(target);
            }
        }
        memory.plan.rejected.remove(target);
        outcome.in_order += 1;
        if let Action::Apply { reason: Why::Drift { fields, other }, .. } = &step.action {
            memory.plan.reverts.note(target, fields, other, self.now);
        }
        if let Action::Adopt { .. } = &step.action {
            outcome.adopted.push(target.clone());
        }
        if created {
            outcome.changed.insert(target.clone(), Deed::Created);
        } else if self.is_news(target, &object) {
            outcome.changed.insert(target.clone(), Deed::Changed);
        }
        shared::wrote(self.shared, self.caches, target, object, self.work);
    }

    /// Whether an apply changed more than nothing: the server answers one that changes nothing
    /// with the version that it has.
    fn is_news(&self, target: &Target, object: &Object) -> bool {
        match self.running.view.freeze().get(&target.kind, &target.key) {
            innkeeper_cluster::Seen::Present(before) => {
                before.resource_version != object.resource_version
            }
            _ => true,
        }
    }

    /// Takes merged fields back: the empty intent of their manager.
    async fn take_back(
        &self,
        target: &Target,
        uid: &str,
        memory: &mut Memory,
        outcome: &mut Outcome,
    ) -> Next {
        tracing::info!(module = %self.running.name(), primary = %self.work.key, "unmerge from {}", self.granted.mask(&target.to_string()));
        match self.empty(target, uid, &self.me.merger).await {
            Ok(()) => {
                self.shared.count_write(self.work, "unmerge");
                memory.plan.applied.remove(target);
                memory.plan.rejected.remove(target);
                outcome.changed.insert(target.clone(), Deed::Changed);
                Next::GoOn
            }
            Err(error) => self.refused(target, "", &error, memory, outcome),
        }
    }

    /// Applies nothing at all as a manager: what it alone held goes.
    async fn empty(&self, target: &Target, uid: &str, manager: &Manager) -> Result<(), ApiError> {
        let mut body = target.body();
        body["metadata"]["uid"] = uid.into();
        let session = &self.running.session;
        let _writing = self.caches.writing(&target.kind, &target.key);
        let applied = session.apply(&target.kind, &target.key, manager, &body, Force::No).await?;
        shared::wrote(self.shared, self.caches, target, applied.object, self.work);
        Ok(())
    }

    async fn delete(
        &self,
        target: &Target,
        uid: &str,
        memory: &mut Memory,
        outcome: &mut Outcome,
    ) -> Next {
        tracing::info!(module = %self.running.name(), primary = %self.work.key, "delete {}", self.granted.mask(&target.to_string()));
        let session = &self.running.session;
        let _writing = self.caches.writing(&target.kind, &target.key);
        let result = session.delete(&target.kind, &target.key, uid, Propagation::Background).await;
        match result {
            Ok(deleted) => {
                self.shared.count_write(self.work, "delete");
                memory.plan.applied.remove(target);
                memory.plan.rejected.remove(target);
                match deleted {
                    Deleted::Gone => {
                        self.shared.writes().note_deleted(uid, self.work);
                        self.caches.deleted(&target.kind, &target.key, uid);
                    }
                    Deleted::Terminating(object) => {
                        shared::wrote(self.shared, self.caches, target, *object, self.work);
                    }
                }
                outcome.changed.insert(target.clone(), Deed::Deleted);
                Next::GoOn
            }
            Err(error) => self.refused(target, "", &error, memory, outcome),
        }
    }

    /// Sorts an error: see rules 2 and 10 of the design, and [`ApiError`].
    fn refused(
        &self,
        target: &Target,
        digest: &str,
        error: &ApiError,
        memory: &mut Memory,
        outcome: &mut Outcome,
    ) -> Next {
        let text = self.granted.mask(&error.to_string());
        tracing::info!(
            module = %self.running.name(), primary = %self.work.key,
            target = self.granted.mask(&target.to_string()), reason = error.reason(),
            "write refused: {text}"
        );
        let mut problem = |retry| {
            outcome.problems.push(Problem {
                target: Some(target.clone()),
                reason: error.reason().to_owned(),
                message: text.clone(),
                retry,
            });
        };
        match error {
            // The cache was behind: look, and plan again. Nothing more is created in this round.
            ApiError::AlreadyThere { .. }
            | ApiError::Gone { .. }
            | ApiError::UidMismatch { .. }
            | ApiError::VersionConflict { .. } => {
                self.mark_unknown(target, memory);
                outcome.again = true;
                Next::EndRound
            }
            ApiError::Lost { .. } => {
                self.mark_unknown(target, memory);
                problem(Retry::Backoff);
                Next::EndRound
            }
            ApiError::Immutable { message, .. } | ApiError::Malformed { message } => {
                let immutable = matches!(error, ApiError::Immutable { .. });
                let rejected = Rejected {
                    digest: digest.to_owned(),
                    reason: error.reason().to_owned(),
                    message: self.granted.mask(message),
                    immutable,
                };
                memory.plan.rejected.insert(target.clone(), rejected);
                // The next round tells what follows: a condition, or a recreate.
                outcome.again = true;
                Next::GoOn
            }
            // Whoever gives the field up changes the object, and that runs the key again.
            ApiError::FieldConflict { .. } => {
                problem(Retry::OnChange);
                Next::GoOn
            }
            ApiError::TooManyRequests { .. }
            | ApiError::Unavailable { .. }
            | ApiError::Timeout { .. }
            | ApiError::Unauthorized { .. } => {
                if error.makes_unknown() {
                    self.mark_unknown(target, memory);
                }
                problem(Retry::Backoff);
                Next::EndRound
            }
            ApiError::NotServed { .. }
            | ApiError::KindMismatch { .. }
            | ApiError::Forbidden { .. }
            | ApiError::Invalid { .. }
            | ApiError::NamespaceMissing { .. }
            | ApiError::NamespaceTerminating { .. }
            | ApiError::NotFound { .. }
            | ApiError::Other { .. } => {
                problem(Retry::Backoff);
                Next::GoOn
            }
        }
    }

    fn mark_unknown(&self, target: &Target, memory: &mut Memory) {
        self.caches.mark_unknown(&target.kind, &target.key);
        memory.unsettled.insert(target.clone());
    }

    fn problem_of(&self, target: &Target, leave: &Leave) -> Option<Problem> {
        problem_of(target, leave, self.now).map(|problem| self.granted.mask_problem(problem))
    }
}

/// The problem that leaving an object is, if it is one.
pub fn problem_of(target: &Target, leave: &Leave, now: Timestamp) -> Option<Problem> {
    let (reason, retry) = match leave {
        // The kind's state and the object's name were read: a change of either wakes the key.
        Leave::NotServed => ("NotServed", Retry::OnChange),
        Leave::Unreadable(_) => ("Unreadable", Retry::OnChange),
        Leave::Conflict(_) => ("Conflict", Retry::OnChange),
        Leave::Rejected(rejected) => (rejected.reason.as_str(), Retry::OnChange),
        Leave::Unknown => ("Unknown", Retry::Backoff),
        Leave::NothingThere => ("MergeTargetMissing", Retry::OnChange),
        Leave::Contested(contest) => {
            let wait = Duration::try_from(contest.until.duration_since(now)).unwrap_or_default();
            ("Contested", Retry::After(wait))
        }
        // What is blocked is told by the conflict that blocks it.
        Leave::Blocked(_)
        | Leave::Settled
        | Leave::CreateOnly
        | Leave::Unserved
        | Leave::Terminating
        | Leave::Protected
        | Leave::PruneWaits
        | Leave::Kept => return None,
    };
    Some(Problem {
        target: Some(target.clone()),
        reason: reason.to_owned(),
        message: leave.to_string(),
        retry,
    })
}

/// Reads live what is not known, and tells the caches. `Err` with the problem if that fails.
pub async fn settle(
    running: &Running,
    caches: &Caches,
    memory: &mut Memory,
) -> Result<(), Problem> {
    // What a version before declared may be out of this one's reach.
    memory.unsettled.retain(|target| running.known_kind(&target.kind).is_some());
    while let Some(target) = memory.unsettled.first().cloned() {
        let found = match running.session.get(&target.kind, &target.key).await {
            Ok(object) => Some(Arc::new(object)),
            Err(
                ApiError::NotFound { .. }
                | ApiError::NamespaceMissing { .. }
                | ApiError::NotServed { .. },
            ) => None,
            Err(error) => {
                return Err(Problem {
                    target: Some(target),
                    reason: error.reason().to_owned(),
                    message: error.to_string(),
                    retry: Retry::Backoff,
                });
            }
        };
        caches.settle(&target.kind, &target.key, found.as_ref());
        memory.unsettled.remove(&target);
    }
    Ok(())
}

/// As the plan says it, for whoever asks what would be done.
pub fn tell(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter(|step| !matches!(step.action, Action::Leave(_)))
        .map(ToString::to_string)
        .collect()
}
