//! The lookup of objects that a list did not show.

use std::sync::Arc;

use crate::cache::cache_id::CacheId;
use crate::cache::store::CacheStore;
use crate::settings::UNCONFIRMED;
use crate::{ApiClient, ApiError};

/// Some time after a list, gets the objects that the list did not show and that only a write
/// response confirms.
pub(super) async fn confirm(store: Arc<CacheStore>, id: CacheId, serial: u64, client: ApiClient) {
    // A cache of metadata has none: see `Caches::record_write`.
    store.env().sleep(UNCONFIRMED).await;
    for object in store.unconfirmed(&id, serial) {
        let known = store.known_before_get(&id.kind, &object.key);
        let found = match client.get(&id.kind, &object.key).await {
            Ok(found) => Some(found),
            Err(ApiError::NotFound { .. }) => None,
            Err(error) => {
                tracing::warn!(cache = %id, %error, "object not confirmed");
                continue;
            }
        };
        let found = found.map(|found| store.compressed(&id, serial, found));
        if let Some(found) = &found {
            store.take_contradicting_get(&id.kind, found, &known);
        }
        store.apply_listed(&id, serial, |objects| objects.confirm(&object, found));
    }
}
