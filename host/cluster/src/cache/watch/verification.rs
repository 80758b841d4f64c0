//! The comparison of a watched kind with discovery.

use std::time::Duration;

use tokio::time::Instant;

use super::end::WatchEnd;
use crate::cache::cache_id::CacheId;
use crate::served_kind::ServedKind;
use crate::settings::{DISCOVERY_PERIOD, DISCOVERY_SETTLES};
use crate::{ApiClient, Env};

/// Compares the kind of a cache with discovery's answer, which is at most `age` old.
///
/// # Errors
/// [`WatchEnd`] unless the server serves the kind as declared.
pub(super) async fn verify(
    id: &CacheId,
    client: &ApiClient,
    age: Duration,
) -> Result<(), WatchEnd> {
    match client.served(&id.kind, age).await {
        Ok(ServedKind::AsDeclared) => Ok(()),
        Ok(ServedKind::NotServed) => Err(WatchEnd::NotServed),
        Ok(ServedKind::Mismatched(mismatch)) => Err(WatchEnd::Mismatched(mismatch)),
        Err(error) => Err(WatchEnd::Unverified(error)),
    }
}

/// The time of the next comparison with discovery while a watch is open.
pub(super) struct Verification {
    pub(super) at: Instant,
    /// The largest age of discovery's answer then.
    pub(super) age: Duration,
}

impl Verification {
    pub(super) fn after(env: &Env, wait: Duration) -> Self {
        Self { at: env.instant() + wait, age: wait / 2 }
    }
}

/// Compares the kind with discovery while its watch is open; gives the next comparison.
///
/// Only a mismatch ends the watch. The watch itself ends for a kind that is not served, and
/// discovery may lack the kind for a moment while its definition changes. A discovery that does
/// not answer delays the events by [`DISCOVERY_SETTLES`] at most, and is asked again soon.
///
/// # Errors
/// [`WatchEnd::Mismatched`].
pub(super) async fn verify_again(
    id: &CacheId,
    client: &ApiClient,
    age: Duration,
) -> Result<Verification, WatchEnd> {
    let env = client.env();
    let verified = env.timeout(DISCOVERY_SETTLES, async {
        // A server shows a changed definition in its discovery a moment after its watch event.
        let may_have_changed = client.may_have_changed(&id.kind).await;
        (verify(id, client, age).await, may_have_changed)
    });
    match verified.await {
        Ok((Ok(()), false)) => Ok(Verification::after(env, env.jitter(DISCOVERY_PERIOD))),
        Ok((Err(WatchEnd::Mismatched(mismatch)), _)) => Err(WatchEnd::Mismatched(mismatch)),
        _ => Ok(Verification::after(env, DISCOVERY_SETTLES)),
    }
}
