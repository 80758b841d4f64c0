//! Carrying out a plan, as the module's ServiceAccount, one step after the other.
//!
//! What fails is a problem of that object; the others go on. But a name that turned out to
//! be taken ends the round's writes: two primaries that want one set of names never split it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiError, Applied, Caches, Deleted, Propagation};
use innkeeper_core::desired::DesiredState;
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::ownership::Primary;
use innkeeper_core::plan::{Action, ApplyReason, Plan, Rejected, SkipReason, Step};
use innkeeper_core::{Manager, Object, ObjectRef};
use jiff::Timestamp;

use crate::active_module::ActiveModule;
use crate::granted_secrets::GrantedSecrets;
use crate::primary_state::PrimaryState;
use crate::problem::{Problem, Problems, Retry};
use crate::queue::ReconcileRequest;
use crate::shared::{self, Shared};
use crate::stats::ObjectChange;

/// What carrying out a plan came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Objects that were created, changed or deleted; what a write left as it was is not.
    pub changed: BTreeMap<ObjectRef, ObjectChange>,
    /// How many of the wanted objects are as they are wanted.
    pub up_to_date: usize,
    /// What was expected turned out to be otherwise: plan again at once.
    pub rerun: bool,
    /// The write rate ended the turn before all was done.
    pub limited: bool,
    /// What stands in the way.
    pub problems: Problems,
    /// Objects that were adopted.
    pub adopted: Vec<ObjectRef>,
}

impl Outcome {
    /// Whether all of the plan was done, and nothing stands in the way.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.rerun && !self.limited
    }
}

/// Carries out plans of one round.
pub struct Apply<'a> {
    /// The shared things.
    pub shared: &'a Shared,
    /// The caches, to be told of writes.
    pub caches: &'a Caches,
    /// The module.
    pub active: &'a ActiveModule,
    /// The primary's key.
    pub request: &'a ReconcileRequest,
    /// The primary, whose managers write.
    pub primary: &'a Primary,
    /// The time.
    pub now: Timestamp,
    /// What masks granted Secrets in texts: the API server's answers quote what it refuses.
    pub granted: &'a GrantedSecrets,
}

/// Whether the steps after one go on.
enum Next {
    Continue,
    EndRound,
}

impl Apply<'_> {
    /// Carries out a plan, as far as the write rate lets it: the rest is left to a later turn.
    pub async fn carry_out(
        &self,
        plan: &Plan,
        desired_state: &DesiredState,
        primary_state: &mut PrimaryState,
    ) -> Outcome {
        let unknown =
            plan.steps.iter().filter(|step| step.action == Action::Skip(SkipReason::Unknown));
        primary_state.needs_read.extend(unknown.map(|step| step.object_ref.clone()));
        let mut round = std::mem::take(&mut primary_state.unfinished_round);
        let mut outcome = Outcome::default();
        outcome.problems.0.extend(round.standing(&plan.steps).cloned());
        let postpones = plan.steps.iter().any(|step| round.postpones(step));
        let mut attempted = BTreeSet::new();
        for step in &plan.steps {
            let writes = !matches!(step.action, Action::Skip(_));
            // What was not applied in this round may be what replaces it.
            if matches!(step.action, Action::Delete { .. } | Action::Unmerge { .. })
                && (postpones || outcome.rerun || !outcome.problems.is_empty())
            {
                continue;
            }
            if writes && (outcome.limited || round.postpones(step)) {
                continue;
            }
            if writes && !self.shared.may_write(self.request) {
                outcome.limited = true;
                continue;
            }
            if let Next::EndRound =
                self.step(step, desired_state, primary_state, &mut outcome).await
            {
                return outcome;
            }
            // One that was deleted to be made anew is created in the same round.
            if writes && outcome.changed.get(&step.object_ref) != Some(&ObjectChange::Deleted) {
                attempted.insert(step.object_ref.clone());
            }
        }
        if outcome.limited {
            round.attempted.append(&mut attempted);
            let problems = outcome.problems.0.iter().filter(|problem| {
                problem
                    .object_ref
                    .as_ref()
                    .is_some_and(|object_ref| round.attempted.contains(object_ref))
            });
            round.problems = problems.cloned().collect();
            primary_state.unfinished_round = round;
        } else {
            let refused: BTreeSet<_> = outcome
                .problems
                .0
                .iter()
                .filter_map(|problem| problem.object_ref.as_ref())
                .collect();
            outcome.rerun |= plan
                .steps
                .iter()
                .any(|step| round.postpones(step) && !refused.contains(&step.object_ref));
        }
        outcome
    }

    async fn step(
        &self,
        step: &Step,
        desired_state: &DesiredState,
        primary_state: &mut PrimaryState,
        outcome: &mut Outcome,
    ) -> Next {
        let object_ref = &step.object_ref;
        let desired_object = step.desired_index.and_then(|index| desired_state.objects.get(index));
        let (body, verb) = match (&step.action, desired_object) {
            (Action::Skip(leave), _) => {
                outcome.problems.0.extend(self.problem_of(object_ref, leave));
                outcome.up_to_date +=
                    usize::from(matches!(leave, SkipReason::InSync | SkipReason::CreateOnly));
                return Next::Continue;
            }
            (Action::Delete { uid } | Action::Recreate { uid }, _) => {
                return self.delete(object_ref, uid, primary_state, outcome).await;
            }
            (Action::Unmerge { uid }, _) => {
                return self.unmerge(object_ref, uid, primary_state, outcome).await;
            }
            (Action::Merge { uid, .. }, Some(desired_object)) => {
                (desired_object.apply_body(uid), "merge")
            }
            (Action::Create, Some(desired_object)) => (desired_object.create_body(), "create"),
            (Action::Apply { uid, .. }, Some(desired_object)) => {
                (desired_object.apply_body(uid), "apply")
            }
            (Action::Adopt { uid, resource_version }, Some(desired_object)) => {
                (desired_object.adopt_body(uid, resource_version), "apply")
            }
            // A plan has an index for whatever it writes.
            (_, None) => return Next::Continue,
        };
        tracing::info!(module = %self.active.name(), primary = %self.request.key, "{}", self.granted.mask(&step.to_string()));
        let client = &self.active.client;
        // Its event may overtake the answer: it is told once, as our write.
        let _writing = self.caches.begin_write(&object_ref.kind, &object_ref.key);
        let (manager, force) = match &step.action {
            Action::Merge { .. } => (&self.primary.merge_manager, Force::No),
            _ => (&self.primary.manager, Force::Yes),
        };
        let result = client.apply(&object_ref.kind, &object_ref.key, manager, &body, force).await;
        match (result, desired_object) {
            (Ok(applied), Some(desired_object)) => {
                self.shared.count_write(self.request, verb);
                let predecessors = self.primary.predecessors(&applied.object);
                let uid = applied.object.uid.clone();
                self.applied(
                    step,
                    (desired_object.digest(), manager),
                    applied,
                    primary_state,
                    outcome,
                );
                for predecessor in predecessors {
                    if let Err(error) = self.empty(object_ref, &uid, &predecessor).await {
                        return self.refused(object_ref, "", &error, primary_state, outcome);
                    }
                }
                Next::Continue
            }
            (Ok(_), None) => Next::Continue,
            (Err(error), desired_object) => {
                let digest = desired_object
                    .map(|desired_object| desired_object.digest().to_owned())
                    .unwrap_or_default();
                self.refused(object_ref, &digest, &error, primary_state, outcome)
            }
        }
    }

    fn applied(
        &self,
        step: &Step,
        (digest, manager): (&str, &Manager),
        applied: Applied,
        primary_state: &mut PrimaryState,
        outcome: &mut Outcome,
    ) {
        let object_ref = &step.object_ref;
        let Applied { object, created } = applied;
        match LastApplied::with_digest(digest, &object, manager) {
            Some(remembered) => {
                primary_state.plan.applied.insert(object_ref.clone(), remembered);
            }
            None => {
                primary_state.plan.applied.remove(object_ref);
            }
        }
        primary_state.plan.rejected.remove(object_ref);
        outcome.up_to_date += 1;
        if let Action::Apply { reason: ApplyReason::Drift { fields, other }, .. } = &step.action {
            primary_state.plan.reverts.record(object_ref, fields, other, self.now);
        }
        if let Action::Adopt { .. } = &step.action {
            outcome.adopted.push(object_ref.clone());
        }
        if created {
            outcome.changed.insert(object_ref.clone(), ObjectChange::Created);
        } else if self.is_change(object_ref, &object) {
            outcome.changed.insert(object_ref.clone(), ObjectChange::Changed);
        }
        shared::record_write(self.shared, self.caches, object_ref, object, self.request);
    }

    /// Whether an apply changed more than nothing: the server answers one that changes nothing
    /// with the version that it has.
    fn is_change(&self, object_ref: &ObjectRef, object: &Object) -> bool {
        match self.active.view.snapshot().get(&object_ref.kind, &object_ref.key) {
            innkeeper_cluster::Lookup::Found(before) => {
                before.resource_version != object.resource_version
            }
            _ => true,
        }
    }

    /// Takes merged fields back: the empty intent of their manager.
    async fn unmerge(
        &self,
        object_ref: &ObjectRef,
        uid: &str,
        primary_state: &mut PrimaryState,
        outcome: &mut Outcome,
    ) -> Next {
        tracing::info!(module = %self.active.name(), primary = %self.request.key, "unmerge from {}", self.granted.mask(&object_ref.to_string()));
        match self.empty(object_ref, uid, &self.primary.merge_manager).await {
            Ok(()) => {
                self.shared.count_write(self.request, "unmerge");
                primary_state.plan.applied.remove(object_ref);
                primary_state.plan.rejected.remove(object_ref);
                outcome.changed.insert(object_ref.clone(), ObjectChange::Changed);
                Next::Continue
            }
            Err(error) => self.refused(object_ref, "", &error, primary_state, outcome),
        }
    }

    /// Applies nothing at all as a manager: what it alone held goes.
    async fn empty(
        &self,
        object_ref: &ObjectRef,
        uid: &str,
        manager: &Manager,
    ) -> Result<(), ApiError> {
        let mut body = object_ref.body();
        body["metadata"]["uid"] = uid.into();
        let client = &self.active.client;
        let _writing = self.caches.begin_write(&object_ref.kind, &object_ref.key);
        let applied =
            client.apply(&object_ref.kind, &object_ref.key, manager, &body, Force::No).await?;
        shared::record_write(self.shared, self.caches, object_ref, applied.object, self.request);
        Ok(())
    }

    async fn delete(
        &self,
        object_ref: &ObjectRef,
        uid: &str,
        primary_state: &mut PrimaryState,
        outcome: &mut Outcome,
    ) -> Next {
        tracing::info!(module = %self.active.name(), primary = %self.request.key, "delete {}", self.granted.mask(&object_ref.to_string()));
        let client = &self.active.client;
        let _writing = self.caches.begin_write(&object_ref.kind, &object_ref.key);
        let result =
            client.delete(&object_ref.kind, &object_ref.key, uid, Propagation::Background).await;
        match result {
            Ok(deleted) => {
                self.shared.count_write(self.request, "delete");
                primary_state.plan.applied.remove(object_ref);
                primary_state.plan.rejected.remove(object_ref);
                match deleted {
                    Deleted::Removed => {
                        self.shared.writes().note_deleted(uid, self.request);
                        self.caches.record_deletion(&object_ref.kind, &object_ref.key, uid);
                    }
                    Deleted::Terminating(object) => {
                        shared::record_write(
                            self.shared,
                            self.caches,
                            object_ref,
                            *object,
                            self.request,
                        );
                    }
                }
                outcome.changed.insert(object_ref.clone(), ObjectChange::Deleted);
                Next::Continue
            }
            Err(error) => self.refused(object_ref, "", &error, primary_state, outcome),
        }
    }

    /// Sorts an error: see rules 2 and 10 of the design, and [`ApiError`].
    fn refused(
        &self,
        object_ref: &ObjectRef,
        digest: &str,
        error: &ApiError,
        primary_state: &mut PrimaryState,
        outcome: &mut Outcome,
    ) -> Next {
        let text = self.granted.mask(&error.to_string());
        tracing::info!(
            module = %self.active.name(), primary = %self.request.key,
            object_ref = self.granted.mask(&object_ref.to_string()), reason = error.reason(),
            "write refused: {text}"
        );
        let mut problem = |retry| {
            outcome.problems.push(Problem {
                object_ref: Some(object_ref.clone()),
                reason: error.reason().to_owned(),
                message: text.clone(),
                retry,
            });
        };
        match error {
            // The cache was behind: look, and plan again. Nothing more is created in this round.
            ApiError::AlreadyExists { .. }
            | ApiError::ObjectDeleted { .. }
            | ApiError::UidMismatch { .. }
            | ApiError::Conflict { .. } => {
                self.mark_unknown(object_ref, primary_state);
                outcome.rerun = true;
                Next::EndRound
            }
            ApiError::OutcomeUnknown { .. } => {
                self.mark_unknown(object_ref, primary_state);
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
                primary_state.plan.rejected.insert(object_ref.clone(), rejected);
                // The next round tells what follows: a condition, or a recreate.
                outcome.rerun = true;
                Next::Continue
            }
            // Whoever gives the field up changes the object, and that runs the key again.
            ApiError::FieldConflict { .. } => {
                problem(Retry::OnChange);
                Next::Continue
            }
            ApiError::TooManyRequests { .. }
            | ApiError::Unavailable { .. }
            | ApiError::Timeout { .. }
            | ApiError::Unauthorized { .. } => {
                if error.makes_unknown() {
                    self.mark_unknown(object_ref, primary_state);
                }
                problem(Retry::Backoff);
                Next::EndRound
            }
            ApiError::NotServed { .. }
            | ApiError::KindMismatch { .. }
            | ApiError::Forbidden { .. }
            | ApiError::Invalid { .. }
            | ApiError::NamespaceNotFound { .. }
            | ApiError::NamespaceTerminating { .. }
            | ApiError::NotFound { .. }
            | ApiError::Other { .. } => {
                problem(Retry::Backoff);
                Next::Continue
            }
        }
    }

    fn mark_unknown(&self, object_ref: &ObjectRef, primary_state: &mut PrimaryState) {
        self.caches.mark_unknown(&object_ref.kind, &object_ref.key);
        primary_state.needs_read.insert(object_ref.clone());
    }

    fn problem_of(&self, object_ref: &ObjectRef, leave: &SkipReason) -> Option<Problem> {
        problem_of(object_ref, leave, self.now).map(|problem| self.granted.mask_problem(problem))
    }
}

/// The problem that leaving an object is, if it is one.
pub fn problem_of(object_ref: &ObjectRef, leave: &SkipReason, now: Timestamp) -> Option<Problem> {
    let (reason, retry) = match leave {
        // The kind's state and the object's name were read: a change of either wakes the key.
        SkipReason::NotServed => ("NotServed", Retry::OnChange),
        SkipReason::Unreadable(_) => ("Unreadable", Retry::OnChange),
        SkipReason::Conflict(_) => ("Conflict", Retry::OnChange),
        SkipReason::Rejected(rejected) => (rejected.reason.as_str(), Retry::OnChange),
        SkipReason::Unknown => ("Unknown", Retry::Backoff),
        SkipReason::MergeTargetMissing => ("MergeTargetMissing", Retry::OnChange),
        SkipReason::FieldContested(contest) => {
            let wait = Duration::try_from(contest.until.duration_since(now)).unwrap_or_default();
            ("Contested", Retry::After(wait))
        }
        // What is blocked is told by the conflict that blocks it.
        SkipReason::Blocked(_)
        | SkipReason::InSync
        | SkipReason::CreateOnly
        | SkipReason::OptionalNotServed
        | SkipReason::Terminating
        | SkipReason::Protected
        | SkipReason::PrunePending
        | SkipReason::Retained => return None,
    };
    Some(Problem {
        object_ref: Some(object_ref.clone()),
        reason: reason.to_owned(),
        message: leave.to_string(),
        retry,
    })
}

/// Reads live what is not known, and tells the caches. `Err` with the problem if that fails.
pub async fn refresh(
    active: &ActiveModule,
    caches: &Caches,
    primary_state: &mut PrimaryState,
) -> Result<(), Problem> {
    // What a version before declared may be out of this one's reach.
    primary_state.needs_read.retain(|object_ref| active.known_kind(&object_ref.kind).is_some());
    while let Some(object_ref) = primary_state.needs_read.first().cloned() {
        let found = match active.client.get(&object_ref.kind, &object_ref.key).await {
            Ok(object) => Some(Arc::new(object)),
            Err(
                ApiError::NotFound { .. }
                | ApiError::NamespaceNotFound { .. }
                | ApiError::NotServed { .. },
            ) => None,
            Err(error) => {
                return Err(Problem {
                    object_ref: Some(object_ref),
                    reason: error.reason().to_owned(),
                    message: error.to_string(),
                    retry: Retry::Backoff,
                });
            }
        };
        caches.resolve_unknown(&object_ref.kind, &object_ref.key, found.as_ref());
        primary_state.needs_read.remove(&object_ref);
    }
    Ok(())
}

/// As the plan says it, for whoever asks what would be done.
pub fn describe_plan(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter(|step| !matches!(step.action, Action::Skip(_)))
        .map(ToString::to_string)
        .collect()
}
