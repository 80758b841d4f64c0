//! Whether an identity may read a cache, also the one whose session fills it.

use std::sync::Arc;

use tokio::sync::Notify;

use super::cell::{CacheId, MemberState};
use super::shared::Shared;
use crate::settings::{
    DENIED_MAX, DENIED_MIN, GRANTED_PERIOD, HOLDER_PERIOD, REFUSALS, WATCH_RETRY_MAX,
    WATCH_RETRY_MIN,
};
use crate::{ApiClient, ApiError, Backoff, Denial, Identity};

/// Asks for as long as the identity is a member of the cache.
pub(super) async fn review(
    shared: Arc<Shared>,
    id: CacheId,
    serial: u64,
    client: ApiClient,
    notify: Arc<Notify>,
) {
    let env = shared.env().clone();
    let mut backoff = Backoff::new(&env, WATCH_RETRY_MIN, WATCH_RETRY_MAX);
    let mut denied = Backoff::new(&env, DENIED_MIN, DENIED_MAX);
    let mut failed = None;
    let mut refused = 0;
    loop {
        let Ok(member_state) = shared.member_state(&id, serial, client.identity()) else { return };
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
            // The host's own watch tells what the host may: nobody else's rights are lent to it.
            if member_state == MemberState::Holder && *client.identity() == Identity::Host {
                continue;
            }
        }
        // Guests get and list what is cached. The holder's watch shows whether it may watch, but it
        // lists again only when a watch fails: a right to list that is taken away shows in the
        // review alone.
        let verbs =
            if member_state == MemberState::Holder { ["watch", "list"] } else { ["list", "watch"] };
        let answer = match ask(&id, &client, &verbs).await {
            // The host may not impersonate this account, or may not ask.
            Err(ApiError::Forbidden { denial, .. }) => Ok(Some(*denial)),
            answer => answer,
        };
        match answer {
            // A server that has just started refuses everybody for a moment.
            Ok(Some(_)) if member_state == MemberState::Holder && refused + 1 < REFUSALS => {
                refused += 1;
                failed = Some(backoff.advance());
            }
            Ok(denial) => {
                refused = 0;
                backoff.reset();
                // Not at the first grant: what the review grants, the watch may still be refused.
                if denial.is_none()
                    && matches!(member_state, MemberState::Admitted | MemberState::Holder)
                {
                    denied.reset();
                }
                shared.admit(&id, serial, client.identity(), denial);
            }
            Err(error) => {
                tracing::warn!(cache = %id, identity = %client.identity(), %error, "access review failed");
                shared.review_failed(&id, serial, client.identity(), &error);
                failed = Some(backoff.advance());
            }
        }
    }
}

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
