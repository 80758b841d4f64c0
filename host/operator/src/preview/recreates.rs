//! Which changes of a candidate would recreate their object.
//!
//! Only the API server knows which fields are immutable. So the host asks it by a dry run for each
//! changed object that the guest allows to recreate. A change that the host could not check counts
//! as a recreate: it is held rather than surprising.

use std::sync::Arc;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiError, CacheLookup, Env};
use innkeeper_contract::Policy;
use innkeeper_core::desired::DesiredObject;
use innkeeper_core::ownership::PrimaryOwner;
use innkeeper_core::plan::{self, Action, SkipReason};
use innkeeper_core::{Object, ObjectKey, ObjectRef, object};
use tokio::time::Instant;

use super::compare::Effect;
use crate::modules::open_revision::OpenRevision;

/// The most dry runs of one preview.
const DRY_RUNS_MAX: u32 = 500;

/// What the API server says about an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// It would recreate nothing.
    Accepted,
    /// An immutable field would change.
    Immutable,
    /// Nothing: the dry run failed, or the preview may make no more of them.
    Unknown,
}

/// The dry runs of one preview.
pub(super) struct Recreates<'a> {
    env: &'a Env,
    /// When the preview ends.
    deadline: Instant,
    left: u32,
}

impl<'a> Recreates<'a> {
    /// The dry runs of a preview that ends at `deadline`.
    pub(super) fn new(env: &'a Env, deadline: Instant) -> Self {
        Self { env, deadline, left: DRY_RUNS_MAX }
    }

    /// The effect of a candidate on a primary, with the applies marked that would recreate their
    /// object. `old` is the effect of the active revision.
    pub(super) async fn mark(
        &mut self,
        candidate: &OpenRevision,
        primary: &ObjectKey,
        effect: Effect,
        old: Option<&Effect>,
    ) -> Effect {
        let Effect::Plans(desired, mut plan) = effect else { return effect };
        let snapshot = candidate.view.snapshot();
        if let CacheLookup::Found(primary) = snapshot.get(&candidate.primary_kind, primary) {
            let owner = candidate.owner(&primary);
            for step in &mut plan.steps {
                let is_pending = match &step.action {
                    Action::Apply { .. } => false,
                    Action::Skip(SkipReason::UpdatePending { recreates: false }) => true,
                    _ => continue,
                };
                let object = step.desired_index.and_then(|index| desired.objects.get(index));
                let live = snapshot.get(&step.object_ref.kind, &step.object_ref.key);
                let (Some(object), CacheLookup::Found(live)) = (object, live) else { continue };
                let old = old.and_then(|old| old.desired(&step.object_ref));
                if may_recreate(object, old, &owner, &live)
                    && self.is_recreate(candidate, &owner, (object, old), &live.uid).await
                {
                    step.action = if is_pending {
                        Action::Skip(SkipReason::UpdatePending { recreates: true })
                    } else {
                        Action::Recreate { uid: live.uid.clone(), dry_run_first: false }
                    };
                }
            }
        }
        Effect::Plans(desired, plan)
    }

    /// Whether the API server would refuse the new object for an immutable field, and not the old
    /// one: previews see digests in place of granted Secrets, so both may differ from the live one.
    async fn is_recreate(
        &mut self,
        candidate: &OpenRevision,
        owner: &PrimaryOwner,
        (new, old): (&DesiredObject, Option<&DesiredObject>),
        uid: &str,
    ) -> bool {
        match (self.ask(candidate, owner, new, uid).await, old) {
            (Answer::Accepted, _) => false,
            (Answer::Immutable, Some(old)) => {
                self.ask(candidate, owner, old, uid).await != Answer::Immutable
            }
            (Answer::Immutable, None) | (Answer::Unknown, _) => true,
        }
    }

    /// Asks the API server about an apply.
    async fn ask(
        &mut self,
        candidate: &OpenRevision,
        owner: &PrimaryOwner,
        object: &DesiredObject,
        uid: &str,
    ) -> Answer {
        let ObjectRef { kind, key } = &object.object_ref;
        let Some(left) = self.left.checked_sub(1) else { return Answer::Unknown };
        self.left = left;
        let time = self.deadline.saturating_duration_since(self.env.instant());
        let body = object.apply_body(uid);
        let client = &candidate.client;
        let answer = tokio::time::timeout(
            time,
            client.dry_run_apply(kind, key, &owner.manager, &body, Force::Yes),
        );
        let error = match answer.await {
            Ok(Err(ApiError::Immutable { .. })) => return Answer::Immutable,
            // An apply that is refused for another reason recreates nothing either.
            Ok(
                Ok(_)
                | Err(
                    ApiError::Forbidden { .. }
                    | ApiError::FieldConflict { .. }
                    | ApiError::Conflict { .. }
                    | ApiError::NotFound { .. }
                    | ApiError::ObjectDeleted { .. }
                    | ApiError::UidMismatch { .. }
                    | ApiError::Invalid { .. }
                    | ApiError::TooLarge { .. },
                ),
            ) => return Answer::Accepted,
            // A webhook may quote the values of the live Secret.
            Ok(Err(error)) if object::holds_secrets(kind) => error.without_message().to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the time of the preview is over".to_owned(),
        };
        tracing::warn!(
            module = %candidate.name(), object = %object.object_ref,
            "the preview counts a change as a recreate: the dry run gave no answer: {error}"
        );
        Answer::Unknown
    }
}

/// Whether a changed object may be recreated at all.
fn may_recreate(
    object: &DesiredObject,
    old: Option<&DesiredObject>,
    owner: &PrimaryOwner,
    live: &Arc<Object>,
) -> bool {
    object.has(Policy::RecreateWhenImmutable)
        && plan::may_be_deleted(owner, &object.object_ref, live)
        && old.is_none_or(|old| old.body != object.body)
}
