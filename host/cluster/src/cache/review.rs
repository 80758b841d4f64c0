//! Whether an identity may read a cache that another one fills.

use std::sync::Arc;

use tokio::sync::Notify;

use super::cell::{CacheId, Standing};
use super::shared::Shared;
use crate::settings::{
    DENIED_LEAST, DENIED_MOST, GRANTED_PERIOD, WATCH_RETRY_LEAST, WATCH_RETRY_MOST,
};
use crate::{ApiError, Backoff, Denial, Session};

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
    loop {
        let Ok(standing) = shared.standing(&id, serial, session.identity()) else { return };
        let wait = match (standing, failed.take()) {
            (Standing::Pending, None) => None,
            (Standing::Pending | Standing::Admitted | Standing::Denied, Some(wait)) => Some(wait),
            (Standing::Holder, _) | (Standing::Admitted, None) => Some(env.jitter(GRANTED_PERIOD)),
            (Standing::Denied, None) => Some(denied.advance()),
        };
        if let Some(wait) = wait {
            tokio::select! {
                biased;
                () = poke.notified() => continue,
                () = env.sleep(wait) => {}
            }
            if standing == Standing::Holder {
                continue;
            }
        }
        let answer = match ask(&id, &session).await {
            // The host may not impersonate this account, or may not ask.
            Err(ApiError::Forbidden { denial, .. }) => Ok(Some(*denial)),
            answer => answer,
        };
        match answer {
            Ok(denial) => {
                backoff.reset();
                // Not at the first grant: what the review grants, the watch may still be refused.
                if denial.is_none() && standing == Standing::Admitted {
                    denied.reset();
                }
                shared.admit(&id, serial, session.identity(), denial);
            }
            Err(error) => {
                tracing::warn!(cache = %id, identity = %session.identity(), %error, "an access review failed");
                failed = Some(backoff.advance());
            }
        }
    }
}

async fn ask(id: &CacheId, session: &Session) -> Result<Option<Denial>, ApiError> {
    for verb in ["list", "watch"] {
        if !session.may(verb, &id.kind, "", id.namespace.as_deref()).await? {
            return Ok(Some(Denial {
                identity: session.identity().clone(),
                verb: verb.into(),
                resource: id.kind.resource().into(),
                namespace: id.namespace.as_deref().map(Into::into),
            }));
        }
    }
    Ok(None)
}
