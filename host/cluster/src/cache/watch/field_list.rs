//! Lists of fields that cached objects lack, while the watch goes on: [`FieldList`].

use std::pin::Pin;
use std::sync::Arc;

use kube::api::{Api, ListParams};
use kube::runtime::watcher;

use super::backoff::WatchBackoff;
use super::end::WatchEnd;
use super::event::decode;
use super::failure::{Failure, classify};
use crate::ApiClient;
use crate::cache::cache_id::CacheId;
use crate::cache::raw::Wire;
use crate::cache::store::CacheStore;
use crate::settings::UNCONFIRMED;

/// The end of a list of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldListEnd {
    /// All views have their fields.
    Complete,
    /// The list has not shown a cached object that no event has changed or removed.
    Incomplete,
}

/// The list of fields that runs, if one does. It runs only while it is waited for, in the task of
/// the cache, and ends when it is dropped.
#[derive(Default)]
pub(super) struct FieldList<'a>(Option<Pin<Box<dyn Future<Output = FieldListEnd> + Send + 'a>>>);

impl<'a> FieldList<'a> {
    /// Starts a list if a view waits for one and none runs.
    pub(super) fn start_if_needed<K: Wire + 'static>(
        &mut self,
        store: &'a Arc<CacheStore>,
        (id, serial): (&'a CacheId, u64),
        client: &'a ApiClient,
        api: &Api<K>,
    ) {
        if self.0.is_none() && store.lacks_fields(id, serial) {
            self.0 = Some(Box::pin(list_missing_fields(store, (id, serial), client, api.clone())));
        }
    }

    /// Ends the list: one of the watch shows what it would.
    pub(super) fn stop(&mut self) {
        self.0 = None;
    }

    /// Runs the list. Resolves if it has ended without a cached object that no event has changed or
    /// removed: the cache has to list again.
    pub(super) async fn incomplete(&mut self) {
        if let Some(list) = &mut self.0 {
            let end = list.await;
            self.0 = None;
            if end == FieldListEnd::Incomplete {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

/// A list of fields that has begun. The drop ends it, if it has not shown all objects.
struct Begun<'a> {
    store: &'a CacheStore,
    id: &'a CacheId,
    serial: u64,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.store.stop_field_list(self.id, self.serial);
    }
}

/// Lists the kind for the views that need more fields than the objects have, until all have theirs.
async fn list_missing_fields<K: Wire>(
    store: &CacheStore,
    (id, serial): (&CacheId, u64),
    client: &ApiClient,
    api: Api<K>,
) -> FieldListEnd {
    let mut failures = WatchBackoff::new(store.env());
    while store.begin_field_list(id, serial) {
        let begun = Begun { store, id, serial };
        let listed = list_pages(store, (id, serial), client, &api).await;
        let Err(error) = listed else {
            if !store.end_field_list(id, serial) {
                store.env().sleep(UNCONFIRMED).await;
                if !store.end_field_list(id, serial) {
                    return FieldListEnd::Incomplete;
                }
            }
            continue;
        };
        drop(begun);
        let message = match classify(id, client, &watcher::Error::InitialListFailed(error)) {
            Failure::Wait(error) => error.to_string(),
            Failure::End(WatchEnd::Forbidden(denial)) => denial.to_string(),
            Failure::End(_) | Failure::Retry => "the API server does not list the kind".to_owned(),
        };
        let wait = failures.advance();
        tracing::warn!(
            cache = %id, error = message,
            "list of further fields failed, tried again in {} ms", wait.as_millis(),
        );
        store.set_field_list_failing(id, serial, message);
        store.env().sleep(wait).await;
    }
    FieldListEnd::Complete
}

async fn list_pages<K: Wire>(
    store: &CacheStore,
    (id, serial): (&CacheId, u64),
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
                store.apply_fields(id, serial, object);
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
