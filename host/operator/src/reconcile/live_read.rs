//! Reads of single objects from the API server, when the caches are in doubt.

use innkeeper_cluster::{ApiError, CacheLookup};
use innkeeper_core::ObjectRef;
use innkeeper_core::plan::{Action, Plan, PlannerState};

use crate::reconcile::context::Context;
use crate::reconcile::problem::{Problem, Retry};

/// Reads an object whose cached state is unknown, and tells the caches.
///
/// # Errors
/// The problem, if it cannot be read.
pub async fn read_live(context: &Context<'_>, object_ref: &ObjectRef) -> Result<(), Problem> {
    let get = async {
        match context.revision.client.get(&object_ref.kind, &object_ref.key).await {
            Ok(object) => Ok(Some(object)),
            Err(
                ApiError::NotFound { .. }
                | ApiError::NamespaceNotFound { .. }
                | ApiError::NotServed { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let answer = context.caches.look_up_unknown(&object_ref.kind, &object_ref.key, get).await;
    answer.map_err(|error| Problem {
        refusal: None,
        object_ref: Some(object_ref.clone()),
        reason: error.reason().to_owned(),
        message: error.to_string(),
        retry: Retry::Backoff,
    })
}

/// Whether a plan creates an object that the host has applied before: somebody else has deleted
/// it.
pub fn creates_again(plan: &Plan, state: &PlannerState) -> bool {
    plan.steps
        .iter()
        .any(|step| step.action == Action::Create && state.applied.contains_key(&step.object_ref))
}

/// Whether the API server has the primary as the caches have it. Else they have it now as it is.
///
/// Before the host creates an object again, which somebody deleted: that may have been the garbage
/// collector, after a deletion of the primary that the watch has not shown. A Job would run again.
///
/// # Errors
/// The problem, if the primary cannot be read.
pub async fn is_primary_current(context: &Context<'_>) -> Result<bool, Problem> {
    let (kind, key) = (&context.revision.primary_kind, &context.request.key);
    let cached = || match context.revision.view.snapshot().get(kind, key) {
        CacheLookup::Found(primary) => Some(primary),
        _ => None,
    };
    let before = cached();
    context.caches.mark_unknown(kind, key);
    read_live(context, &ObjectRef::new(kind.clone(), key.clone())).await?;
    let is_same = |(before, now): (&_, &_)| {
        let (before, now): (&innkeeper_core::Object, &innkeeper_core::Object) = (before, now);
        before.uid == now.uid && before.resource_version == now.resource_version
    };
    Ok(before.as_deref().zip(cached().as_deref()).is_some_and(is_same))
}
