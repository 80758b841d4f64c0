//! The task that reviews whether a member may read a cache.

use std::sync::Arc;

use tokio::sync::Notify;

use super::cache_id::CacheId;
use super::member::MemberState;
use super::store::CacheStore;
use crate::settings::{
    DENIED_MAX, DENIED_MIN, GRANTED_PERIOD, HOLDER_PERIOD, REFUSALS, WATCH_RETRY_MAX,
    WATCH_RETRY_MIN,
};
use crate::{ApiClient, ApiError, Backoff, Denial, Identity};

/// Reviews a member's right to read a cache for as long as it is a member, also the holder's.
pub(super) async fn review(
    store: Arc<CacheStore>,
    id: CacheId,
    serial: u64,
    client: ApiClient,
    notify: Arc<Notify>,
) {
    let env = store.env().clone();
    let mut backoff = Backoff::new(&env, WATCH_RETRY_MIN, WATCH_RETRY_MAX);
    let mut denied = Backoff::new(&env, DENIED_MIN, DENIED_MAX);
    let mut failed = None;
    let mut refused = 0;
    loop {
        let Ok(member_state) = store.member_state(&id, serial, client.identity()) else { return };
        let wait = match (member_state, failed.take()) {
            (MemberState::Pending, None) => None,
            (_, Some(wait)) => Some(wait),
            (MemberState::Holder, None) => Some(env.jitter(HOLDER_PERIOD)),
            (MemberState::Admitted, None) => Some(env.jitter(GRANTED_PERIOD)),
            (MemberState::Denied, None) => Some(denied.advance()),
        };
        if let Some(wait) = wait {
            tokio::select! {
                biased;
                () = notify.notified() => continue,
                () = env.sleep(wait) => {}
            }
            // The host's own watch shows its rights: it reads no cache with the right of a module.
            if member_state == MemberState::Holder && *client.identity() == Identity::Host {
                continue;
            }
        }
        // The holder's watch shows only its right to watch, since it lists again after failures
        // alone. A lost right to list shows in the review.
        let verbs =
            if member_state == MemberState::Holder { ["watch", "list"] } else { ["list", "watch"] };
        let answer = match ask(&id, &client, &verbs).await {
            // The host may not impersonate this account, or may not create reviews.
            Err(ApiError::Forbidden { denial, .. }) => Ok(Some(*denial)),
            answer => answer,
        };
        match answer {
            // A server that has just started refuses all requests for a moment.
            Ok(Some(_)) if member_state == MemberState::Holder && refused + 1 < REFUSALS => {
                refused += 1;
                failed = Some(backoff.advance());
            }
            Ok(denial) => {
                refused = 0;
                backoff.reset();
                // Not at the first grant: the server may still refuse the watch.
                if denial.is_none()
                    && matches!(member_state, MemberState::Admitted | MemberState::Holder)
                {
                    denied.reset();
                }
                store.set_admission(&id, serial, client.identity(), denial);
            }
            Err(error) => {
                tracing::warn!(cache = %id, identity = %client.identity(), %error, "access review failed");
                store.review_failed(&id, serial, client.identity(), &error);
                failed = Some(backoff.advance());
            }
        }
    }
}

/// Asks for each of these verbs; gives the first missing right.
async fn ask(id: &CacheId, client: &ApiClient, verbs: &[&str]) -> Result<Option<Denial>, ApiError> {
    for verb in verbs {
        if !client.can_i(verb, &id.kind, "", id.namespace.as_deref()).await? {
            return Ok(Some(Denial {
                identity: client.identity().clone(),
                verb: (*verb).into(),
                resource: id.kind.resource().into(),
                namespace: id.namespace.as_deref().map(Into::into),
            }));
        }
    }
    Ok(None)
}
