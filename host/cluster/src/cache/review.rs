//! Whether an identity may read a cache, also the one whose session fills it.

use std::sync::Arc;

use tokio::sync::Notify;

use super::cell::{CacheId, Standing};
use super::shared::Shared;
use crate::settings::{
    DENIED_LEAST, DENIED_MOST, GRANTED_PERIOD, HOLDER_PERIOD, REFUSALS, WATCH_RETRY_LEAST,
    WATCH_RETRY_MOST,
};
use crate::{ApiError, Backoff, Denial, Identity, Session};

/// Asks for as long as the identity is a member of the cache.
pub(super) async fn review(
    shared: Arc<Shared>,
    id: CacheId,
    serial: u64,
    session: Session,
    poke: Arc<Notify>,
) {
    let env = shared.env().clone();
    let mut backoff = Backoff::new(&env, WATCH_RETRY_LEAST, WATCH_RETRY_MOST);
    let mut denied = Backoff::new(&env, DENIED_LEAST, DENIED_MOST);
    let mut failed = None;
    let mut refused = 0;
    loop {
        let Ok(standing) = shared.standing(&id, serial, session.identity()) else { return };
        let wait = match (standing, failed.take()) {
            (Standing::Pending, None) => None,
            (_, Some(wait)) => Some(wait),
            (Standing::Holder, None) => Some(env.jitter(HOLDER_PERIOD)),
            (Standing::Admitted, None) => Some(env.jitter(GRANTED_PERIOD)),
            (Standing::Denied, None) => Some(denied.advance()),
        };
        if let Some(wait) = wait {
            tokio::select! {
                biased;
                () = poke.notified() => continue,
                () = env.sleep(wait) => {}
            }
            // The host's own watch tells what the host may: nobody else's rights are lent to it.
            if standing == Standing::Holder && *session.identity() == Identity::Host {
                continue;
            }
        }
        // Guests get and list what is cached. The holder's watch shows whether it may watch, but it lists
        // again only when a watch fails: a right to list that is taken away shows in the review alone.
        let verbs =
            if standing == Standing::Holder { ["watch", "list"] } else { ["list", "watch"] };
        let answer = match ask(&id, &session, &verbs).await {
            // The host may not impersonate this account, or may not ask.
            Err(ApiError::Forbidden { denial, .. }) => Ok(Some(*denial)),
            answer => answer,
        };
        match answer {
            // A server that has just started refuses everybody for a moment.
            Ok(Some(_)) if standing == Standing::Holder && refused + 1 < REFUSALS => {
                refused += 1;
                failed = Some(backoff.advance());
            }
            Ok(denial) => {
                refused = 0;
                backoff.reset();
                // Not at the first grant: what the review grants, the watch may still be refused.
                if denial.is_none() && matches!(standing, Standing::Admitted | Standing::Holder) {
                    denied.reset();
                }
                shared.admit(&id, serial, session.identity(), denial);
            }
            Err(error) => {
                tracing::warn!(cache = %id, identity = %session.identity(), %error, "access review failed");
                shared.review_failed(&id, serial, session.identity(), &error);
                failed = Some(backoff.advance());
            }
        }
    }
}

async fn ask(id: &CacheId, session: &Session, verbs: &[&str]) -> Result<Option<Denial>, ApiError> {
    for verb in verbs {
        if !session.may(verb, &id.kind, "", id.namespace.as_deref()).await? {
            return Ok(Some(Denial {
                identity: session.identity().clone(),
                verb: (*verb).into(),
                resource: id.kind.resource().into(),
                namespace: id.namespace.as_deref().map(Into::into),
            }));
        }
    }
    Ok(None)
}
