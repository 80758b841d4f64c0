//! The review of one existing object with one revision of a policy.
//!
//! The guest sees the object as if it were created now, without a user (`background: true`). All
//! guards of the review of a request hold: digests of Secrets, the objects that no policy reviews,
//! the check of the verdict, the limits of the call. The permits are those of reconciles, so that
//! no review in the background delays a request.

use std::time::Duration;

use innkeeper_cluster::Env;
use innkeeper_contract::{Kind, Operation, User};
use innkeeper_core::review::{Gvk, Gvr, ReviewInput, is_excluded};
use innkeeper_core::{Object, ObjectKey};
use serde_json::value::RawValue;

use super::active_policy::ActivePolicy;
use super::decision::Decision;
use super::review_call::{self, ReviewCall};
use super::review_failure::ReviewFailure;
use crate::shared::Shared;
use crate::watch::read_record::ReadRecord;

/// How the review of an existing object ended.
pub struct BackgroundReview {
    /// The decision about the object, or why there is none.
    pub result: Result<Decision, ReviewFailure>,
    /// Everything that the guest has read: a change of it can change the result.
    pub reads: ReadRecord,
}

/// Reviews an existing object as soon as the module has a permit of the sandbox. `None` if no
/// policy reviews such an object.
///
/// The call takes at most `time`, and the limit of the policy. `object` is of a cache, so that
/// digests replace the values of a Secret in it.
pub async fn review_existing(
    shared: &Shared,
    policy: &ActivePolicy,
    kind: &Kind,
    object: &Object,
    time: Duration,
) -> Option<BackgroundReview> {
    let call = || review_now(policy, &shared.env, kind, object, time);
    shared.guest_calls.run(&policy.module, object.key.namespace(), call).await
}

/// The same for a caller that holds a permit. Blocks the thread.
pub fn review_now(
    policy: &ActivePolicy,
    env: &Env,
    kind: &Kind,
    object: &Object,
    time: Duration,
) -> Option<BackgroundReview> {
    let user = User::default();
    // The text of an object in a cache is JSON.
    let text = object.text.read();
    let text: &RawValue = serde_json::from_str(&text).ok()?;
    let input = ReviewInput {
        object: Some(text),
        parameters: &policy.parameters,
        ..input(kind, &object.key, &user)
    };
    if is_excluded(&input, policy.client.host_namespace()) {
        return None;
    }
    // The cache has digested the values already.
    let digest = |_: &ObjectKey, _: &str, value: &str| value.to_owned();
    let request = format!("existing {}", review_call::name_of(&input));
    let ReviewCall { result, reads, .. } =
        review_call::call(policy, env, (&input, &request), &digest, || Ok(time));
    Some(BackgroundReview { result, reads })
}

/// Whether no policy reviews an existing object.
pub fn is_never_reviewed(kind: &Kind, key: &ObjectKey, host_namespace: Option<&str>) -> bool {
    is_excluded(&input(kind, key, &User::default()), host_namespace)
}

/// The request that would create the object, without the object.
fn input<'a>(kind: &'a Kind, key: &'a ObjectKey, user: &'a User) -> ReviewInput<'a> {
    let (group, version) = (kind.group(), kind.version());
    // The request for a Namespace names it as its namespace.
    let is_namespace = group.is_empty() && kind.plural == "namespaces";
    ReviewInput {
        operation: Operation::Create,
        kind: Gvk { group, version, kind: &kind.kind },
        resource: Gvr { group, version, resource: &kind.plural },
        subresource: "",
        request_kind: None,
        request_resource: None,
        name: key.name(),
        namespace: if is_namespace { key.name() } else { key.namespace() },
        user,
        object: None,
        old_object: None,
        options: None,
        dry_run: false,
        background: true,
        parameters: "",
    }
}
