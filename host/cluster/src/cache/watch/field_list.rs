//! Lists of fields that cached objects lack. The watch goes on meanwhile.

use std::sync::Arc;

use kube::api::{Api, ListParams};
use kube::runtime::watcher;

use super::backoff::WatchBackoff;
use super::event::decode;
use super::failure::{Failure, classify};
use crate::ApiClient;
use crate::cache::cache_id::CacheId;
use crate::cache::raw::Wire;
use crate::cache::store::CacheStore;
use crate::settings::UNCONFIRMED;

/// Lists the kind for the views that need more fields than the objects have, until all have theirs.
/// Meanwhile the watch goes on, so that the other views miss nothing, also if the list fails.
pub(super) async fn list_missing_fields<K: Wire>(
    store: Arc<CacheStore>,
    (id, serial): (CacheId, u64),
    client: ApiClient,
    api: Api<K>,
) {
    let mut failures = WatchBackoff::new(store.env());
    while let Some(list) = store.begin_field_list(&id, serial) {
        let Err(error) = list_pages(&store, (&id, serial, list), &client, &api).await else {
            if !store.end_field_list(&id, serial, list) {
                store.env().sleep(UNCONFIRMED).await;
                if !store.end_field_list(&id, serial, list) {
                    return store.list_again(&id, serial);
                }
            }
            continue;
        };
        let error = watcher::Error::InitialListFailed(error);
        let message = match classify(&id, &client, &error) {
            Failure::Wait(error) => error.to_string(),
            Failure::End(_) | Failure::Retry => error.to_string(),
        };
        let wait = failures.advance();
        tracing::warn!(
            cache = %id, error = message,
            "list of further fields failed, tried again in {} ms", wait.as_millis(),
        );
        store.fail_field_list(&id, serial, list, message);
        store.env().sleep(wait).await;
    }
}

async fn list_pages<K: Wire>(
    store: &CacheStore,
    (id, serial, list): (&CacheId, u64, u64),
    client: &ApiClient,
    api: &Api<K>,
) -> Result<(), kube::Error> {
    let mut page = ListParams::default().limit(client.settings().list_page);
    loop {
        let answer = api.list(&page).await?;
        let next = answer.metadata.continue_.filter(|token| !token.is_empty());
        for raw in answer.items {
            if let Some(object) = decode(id, client, &raw) {
                let object = store.compressed(id, serial, object);
                store.apply_from_field_list(id, serial, list, object);
            }
            // A page may have many objects: other tasks run in between.
            tokio::task::consume_budget().await;
        }
        match next {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}
