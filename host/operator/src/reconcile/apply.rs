//! Applies a plan as the module's ServiceAccount, one step after the other.
//!
//! A step that fails is a problem of its object, and the next steps follow. But an outdated
//! snapshot (a name that is taken, another version), a lost answer and an absent API server end the
//! round's writes: so two primaries that desire the same names of a namespace never get a part of
//! them each.

use std::collections::{BTreeMap, BTreeSet};

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiError, Deleted, Propagation};
use innkeeper_core::desired::{DesiredObject, DesiredState};
use innkeeper_core::in_sync::LastApplied;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::{Action, ApplyReason, Plan, RejectedApply, Step};
use innkeeper_core::{Manager, Object, ObjectRef, object};
use jiff::Timestamp;

use crate::modules::granted_secrets::GrantedSecrets;
use crate::reconcile::context::Context;
use crate::reconcile::filled_body::{NotFilled, SourceReads};
use crate::reconcile::live_read::{creates_again, is_primary_current};
use crate::reconcile::primary_state::PrimaryState;
use crate::reconcile::problem::{Problem, Problems, Retry};
use crate::reconcile::recreate_check::{RecreateCheck, dry_run_recreate};
use crate::reconcile::refusal::RefusalCause;
use crate::reconcile::skipped;
use crate::reconcile::stats::ObjectChange;
use crate::reconcile::write_error::WriteErrorClass;

/// The result of applying a plan.
#[derive(Debug, Default)]
pub struct ApplySummary {
    /// Objects that were created, changed or deleted; not those that a write left as they were.
    pub changed: BTreeMap<ObjectRef, ObjectChange>,
    /// How many of the desired objects are as they are desired.
    pub up_to_date: usize,
    /// How many objects are neither, and no failure.
    pub skipped: usize,
    /// The plan was made from an outdated snapshot: plan again at once.
    pub rerun: bool,
    /// The write rate ended the turn before the end of the plan.
    pub limited: bool,
    /// Why objects were not applied.
    pub problems: Problems,
    /// Objects that were adopted.
    pub adopted: Vec<ObjectRef>,
}

impl ApplySummary {
    /// Whether the whole plan was applied without a problem.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && !self.rerun && !self.limited
    }
}

/// Applies the plan of one round.
pub struct Apply<'a> {
    /// The round.
    pub context: Context<'a>,
    /// The primary as an owner, whose field managers write.
    pub owner: &'a PrimaryOwner,
    /// The time.
    pub now: Timestamp,
    /// Masks the values of granted Secrets: the API server quotes the objects that it refuses.
    pub granted: &'a GrantedSecrets,
    /// The value sources that this round reads.
    pub sources: &'a SourceReads,
}

/// Whether further steps follow one.
enum AfterStep {
    Continue,
    EndRound,
}

impl Apply<'_> {
    /// Applies a plan as far as the write rate lets it; a later turn continues with a new plan.
    pub async fn carry_out(
        &self,
        plan: &Plan,
        desired: &DesiredState,
        state: &mut PrimaryState,
    ) -> ApplySummary {
        state.needs_read.extend(plan.steps.iter().filter_map(skipped::needs_read).cloned());
        state.planner.make_room(desired.objects.len());
        let mut round = std::mem::take(&mut state.carried_round);
        let mut applied = ApplySummary::default();
        if creates_again(plan, &state.planner) {
            match is_primary_current(&self.context).await {
                Ok(true) => {}
                Ok(false) => applied.rerun = true,
                Err(problem) => applied.problems.push(self.granted.mask_problem(problem)),
            }
            if applied.rerun || !applied.problems.is_empty() {
                state.carried_round = round;
                return applied;
            }
        }
        applied.problems.0.extend(round.standing(&plan.steps).cloned());
        let postpones = plan.steps.iter().any(|step| round.postpones(step));
        let mut attempted = BTreeSet::new();
        for step in &plan.steps {
            let writes = !matches!(step.action, Action::Skip(_));
            let prunes = matches!(step.action, Action::Delete { .. } | Action::Unmerge { .. })
                && !desired.surplus_revisions.contains(&step.object_ref);
            // No object is pruned while a desired one is not applied: it may be the replacement.
            if prunes && (postpones || applied.rerun || !applied.problems.is_empty()) {
                applied.skipped += 1;
                continue;
            }
            if writes && (applied.limited || round.postpones(step)) {
                applied.skipped += 1;
                continue;
            }
            if writes && !self.context.shared.may_write(self.context.request) {
                applied.limited = true;
                applied.skipped += 1;
                continue;
            }
            // An interrupted round ends as well: the next one attempts every object again.
            if let AfterStep::EndRound = self.step(step, desired, state, &mut applied).await {
                return applied;
            }
            // An object that was deleted to be recreated is created in the same round.
            if writes && applied.changed.get(&step.object_ref) != Some(&ObjectChange::Deleted) {
                attempted.insert(step.object_ref.clone());
            }
        }
        if applied.limited {
            round.interrupt(attempted, &applied.problems.0);
            state.carried_round = round;
        } else {
            applied.rerun |= round.has_postponed(&plan.steps, &applied.problems.0);
        }
        applied
    }

    async fn step(
        &self,
        step: &Step,
        desired: &DesiredState,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) -> AfterStep {
        let object_ref = &step.object_ref;
        match (&step.action, step.desired_index.and_then(|index| desired.objects.get(index))) {
            (Action::Skip(reason), _) => {
                let problem = skipped::problem(object_ref, reason, self.now);
                let is_up_to_date = skipped::is_up_to_date(reason);
                applied.up_to_date += usize::from(is_up_to_date);
                applied.skipped += usize::from(!is_up_to_date && problem.is_none());
                applied.problems.0.extend(problem.map(|one| self.granted.mask_problem(one)));
                AfterStep::Continue
            }
            (Action::Recreate { uid, dry_run_first: true }, Some(desired)) => {
                self.recreate(uid, desired, (step, state), applied).await
            }
            (Action::Delete { uid } | Action::Recreate { uid, .. }, _) => {
                self.delete(object_ref, uid, state, applied).await
            }
            (Action::Unmerge { uid }, _) => self.unmerge(object_ref, uid, state, applied).await,
            (_, Some(desired)) => self.write(step, desired, state, applied).await,
            // Every step that writes a desired object has its index.
            (_, None) => AfterStep::Continue,
        }
    }

    /// Deletes an object that an update group recreates, if an apply would change it. Else applies
    /// it, so that it has its digest.
    async fn recreate(
        &self,
        uid: &str,
        desired: &DesiredObject,
        (step, state): (&Step, &mut PrimaryState),
        applied: &mut ApplySummary,
    ) -> AfterStep {
        let object_ref = &step.object_ref;
        match dry_run_recreate(&self.context, self.owner, desired, uid).await {
            Ok(RecreateCheck::Recreate) => self.delete(object_ref, uid, state, applied).await,
            Ok(RecreateCheck::Apply) => {
                let action = Action::Apply { uid: uid.into(), reason: ApplyReason::Changed };
                let step = Step { action, ..step.clone() };
                self.write(&step, desired, state, applied).await
            }
            Ok(RecreateCheck::PlanAgain) => {
                applied.rerun = true;
                AfterStep::Continue
            }
            Err(error) => self.failed(object_ref, desired.digest(), error, state, applied),
        }
    }

    /// Creates, applies, adopts or merges a desired object.
    async fn write(
        &self,
        step: &Step,
        desired: &DesiredObject,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) -> AfterStep {
        let object_ref = &step.object_ref;
        let (body, verb) = match &step.action {
            Action::Merge { uid, .. } => (desired.apply_body(uid), "merge"),
            Action::Apply { uid, .. } => (desired.apply_body(uid), "apply"),
            Action::Adopt { uid, resource_version } => {
                (desired.adopt_body(uid, resource_version), "apply")
            }
            _ => (desired.create_body(), "create"),
        };
        let (manager, force) = match &step.action {
            Action::Merge { .. } => (&self.owner.merge_manager, Force::No),
            _ => (&self.owner.manager, Force::Yes),
        };
        self.log(&step.to_string());
        let client = &self.context.revision.client;
        let filled = match self.sources.fill(client, desired, body).await {
            Ok(filled) => filled,
            Err(not_filled) => return self.not_filled(not_filled, state, applied),
        };
        let _in_flight = self.context.begin_write(object_ref);
        let body = filled.body();
        let answer = client.apply(&object_ref.kind, &object_ref.key, manager, body, force).await;
        match answer.map_err(|error| filled.error(error)) {
            Ok(answer) => {
                self.context.count_write(verb);
                let predecessors = self.owner.predecessors(&answer.object);
                let uid = answer.object.uid.clone();
                self.record(step, (desired.digest(), manager), answer, state, applied);
                for predecessor in predecessors {
                    if let Err(error) = self.apply_nothing(object_ref, &uid, &predecessor).await {
                        return self.failed(object_ref, "", error, state, applied);
                    }
                }
                AfterStep::Continue
            }
            Err(error) => self.failed(object_ref, desired.digest(), error, state, applied),
        }
    }

    /// A body was not sent, since a value source could not be copied: notes what follows.
    fn not_filled(
        &self,
        not_filled: NotFilled,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) -> AfterStep {
        match not_filled {
            NotFilled::Outdated(source) => {
                self.log(&format!("value source {source} has changed, plan again"));
                self.context.mark_unknown(&source, state);
                applied.rerun = true;
                AfterStep::EndRound
            }
            NotFilled::Problem { problem, ends_round } => {
                let problem = self.granted.mask_problem(*problem);
                self.log(&format!("value source not copied: {}", problem.message));
                applied.problems.push(problem);
                if ends_round { AfterStep::EndRound } else { AfterStep::Continue }
            }
        }
    }

    /// Records the API server's answer to the write of a desired object.
    fn record(
        &self,
        step: &Step,
        (digest, manager): (&str, &Manager),
        answer: innkeeper_cluster::ApplyResponse,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) {
        let object_ref = &step.object_ref;
        let innkeeper_cluster::ApplyResponse { object, created } = answer;
        match LastApplied::with_digest(digest, &object, manager) {
            Some(last_applied) => {
                state.planner.applied.insert(self.kept(object_ref), last_applied);
            }
            None => {
                state.planner.applied.remove(object_ref);
            }
        }
        state.planner.rejected.remove(object_ref);
        applied.up_to_date += 1;
        if let Action::Apply { reason: ApplyReason::Drift { fields, other }, .. } = &step.action {
            state.planner.reverts.record(object_ref, fields, other, self.now);
        }
        if let Action::Adopt { .. } = &step.action {
            applied.adopted.push(object_ref.clone());
        }
        if created {
            applied.changed.insert(object_ref.clone(), ObjectChange::Created);
        } else if self.is_change(object_ref, &object) {
            applied.changed.insert(object_ref.clone(), ObjectChange::Changed);
        }
        self.context.record_write(object_ref, object);
    }

    /// A reference for as long as the primary lives: all primaries share the kind of the revision.
    fn kept(&self, object_ref: &ObjectRef) -> ObjectRef {
        let kind = self.context.revision.shared_kind(&object_ref.kind);
        ObjectRef::new(kind.clone(), object_ref.key.clone())
    }

    /// Whether an apply changed the object. The API server answers an apply that changes nothing
    /// with the resourceVersion that the object had before.
    fn is_change(&self, object_ref: &ObjectRef, object: &Object) -> bool {
        match self.context.revision.view.snapshot().get(&object_ref.kind, &object_ref.key) {
            innkeeper_cluster::CacheLookup::Found(before) => {
                before.resource_version != object.resource_version
            }
            _ => true,
        }
    }

    /// Removes the fields that the primary has merged into an object.
    async fn unmerge(
        &self,
        object_ref: &ObjectRef,
        uid: &str,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) -> AfterStep {
        self.log(&format!("unmerge from {object_ref}"));
        match self.apply_nothing(object_ref, uid, &self.owner.merge_manager).await {
            Ok(()) => {
                self.context.count_write("unmerge");
                state.planner.applied.remove(object_ref);
                state.planner.rejected.remove(object_ref);
                applied.changed.insert(object_ref.clone(), ObjectChange::Changed);
                AfterStep::Continue
            }
            Err(error) => self.failed(object_ref, "", error, state, applied),
        }
    }

    /// Applies an object without fields: the API server removes the fields that this manager alone
    /// owned.
    async fn apply_nothing(
        &self,
        object_ref: &ObjectRef,
        uid: &str,
        manager: &Manager,
    ) -> Result<(), ApiError> {
        let mut body = object_ref.body();
        body["metadata"]["uid"] = uid.into();
        let client = &self.context.revision.client;
        let _in_flight = self.context.begin_write(object_ref);
        let answer =
            client.apply(&object_ref.kind, &object_ref.key, manager, &body, Force::No).await?;
        self.context.record_write(object_ref, answer.object);
        Ok(())
    }

    async fn delete(
        &self,
        object_ref: &ObjectRef,
        uid: &str,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) -> AfterStep {
        self.log(&format!("delete {object_ref}"));
        let client = &self.context.revision.client;
        let _in_flight = self.context.begin_write(object_ref);
        let answer =
            client.delete(&object_ref.kind, &object_ref.key, uid, Propagation::Background).await;
        match answer {
            Ok(deleted) => {
                self.context.count_write("delete");
                state.planner.applied.remove(object_ref);
                state.planner.rejected.remove(object_ref);
                match deleted {
                    Deleted::Removed => self.context.record_deletion(object_ref, uid),
                    Deleted::Terminating(object) => self.context.record_write(object_ref, *object),
                }
                applied.changed.insert(object_ref.clone(), ObjectChange::Deleted);
                AfterStep::Continue
            }
            Err(error) => self.failed(object_ref, "", error, state, applied),
        }
    }

    /// A write failed, or its outcome is unknown: notes what follows. `digest` is that of the
    /// desired object; empty for other writes.
    fn failed(
        &self,
        object_ref: &ObjectRef,
        digest: &str,
        error: ApiError,
        state: &mut PrimaryState,
        applied: &mut ApplySummary,
    ) -> AfterStep {
        let error = if self.is_copy(object_ref) { error.without_message() } else { error };
        let refusal = RefusalCause::of(&error, object_ref);
        let advice = refusal.as_ref().and_then(RefusalCause::advice).unwrap_or_default();
        let message = self.granted.mask(&format!("{error}{advice}"));
        let reason = error.reason().to_owned();
        let class = match WriteErrorClass::of(&error) {
            // A delete or an unmerge has no body to remember: a new plan would be the same.
            WriteErrorClass::Rejected { .. } if digest.is_empty() => {
                WriteErrorClass::ObjectOnly(Retry::Backoff)
            }
            class => class,
        };
        let (module, primary) = (self.context.revision.name(), &self.context.request.key);
        let masked = self.granted.mask(&object_ref.to_string());
        // An outdated snapshot is part of normal work: the next round reads the object live.
        if class == WriteErrorClass::Outdated {
            tracing::info!(%module, %primary, object_ref = masked, reason, "write failed: {message}");
        } else {
            tracing::warn!(%module, %primary, object_ref = masked, reason, "write failed: {message}");
        }
        if class.makes_unknown() {
            self.context.mark_unknown(object_ref, state);
        }
        if let WriteErrorClass::Rejected { immutable, message } = &class {
            let message = self.granted.mask(message);
            let rejected =
                RejectedApply { digest: digest.to_owned(), reason, message, immutable: *immutable };
            state.planner.rejected.insert(object_ref.clone(), rejected);
        } else if let Some(retry) = class.retry() {
            let object_ref = Some(object_ref.clone());
            applied.problems.push(Problem { object_ref, reason, message, retry, refusal });
        }
        applied.rerun |= class.plans_again();
        if class.ends_round() { AfterStep::EndRound } else { AfterStep::Continue }
    }

    /// Whether the live object is a Secret with values that a host copied: a webhook may quote them
    /// also where it refuses a delete, a merge or a dry run.
    fn is_copy(&self, object_ref: &ObjectRef) -> bool {
        let snapshot = self.context.revision.view.snapshot();
        object::holds_secrets(&object_ref.kind)
            && match snapshot.get(&object_ref.kind, &object_ref.key) {
                innkeeper_cluster::CacheLookup::Found(live) => live.has_copied_values(),
                _ => false,
            }
    }

    fn log(&self, step: &str) {
        let (module, primary) = (self.context.revision.name(), &self.context.request.key);
        tracing::info!(%module, %primary, "{}", self.granted.mask(step));
    }
}
