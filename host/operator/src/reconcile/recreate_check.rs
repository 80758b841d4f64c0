//! The check before an update group recreates an object: would an apply change it at all?
//!
//! The digest of an object may differ although no value does: another version of the host applied
//! it, or somebody removed the annotation. Without a group that costs one apply; with a group that
//! recreates, it would delete every object of the group.

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiError, CacheLookup};
use innkeeper_core::desired::DesiredObject;
use innkeeper_core::in_sync::same_but_for_host_fields;
use innkeeper_core::ownership::PrimaryOwner;

use crate::reconcile::context::Context;

/// The result of the dry run for an object that is to be recreated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecreateCheck {
    /// An apply would change the object, or the API server refuses it for an immutable field.
    Recreate,
    /// An apply would change nothing but the annotation with the digest.
    Apply,
    /// The object is another one than that of the plan.
    PlanAgain,
}

/// Asks the API server by a dry run what applying a desired object would change of the live object
/// with this uid.
///
/// The request names the version in the cache. So an object that has changed meanwhile gives a
/// conflict, and not a difference that is none.
///
/// # Errors
/// The API server's error, if it is no answer to the question: nothing may be deleted then.
pub async fn dry_run_recreate(
    context: &Context<'_>,
    owner: &PrimaryOwner,
    desired: &DesiredObject,
    uid: &str,
) -> Result<RecreateCheck, ApiError> {
    let active = context.revision;
    let object_ref = &desired.object_ref;
    let CacheLookup::Found(live) = active.view.snapshot().get(&object_ref.kind, &object_ref.key)
    else {
        return Ok(RecreateCheck::PlanAgain);
    };
    if *live.uid != *uid {
        return Ok(RecreateCheck::PlanAgain);
    }
    let body = desired.adopt_body(uid, &live.resource_version);
    let (kind, key) = (&object_ref.kind, &object_ref.key);
    match active.client.dry_run_apply(kind, key, &owner.manager, &body, Force::Yes).await {
        Ok(answer) if same_but_for_host_fields(&live, &answer.object) => Ok(RecreateCheck::Apply),
        Ok(_) | Err(ApiError::Immutable { .. }) => Ok(RecreateCheck::Recreate),
        Err(error) => Err(error),
    }
}
