//! The arrival of a watch event: decoded, checked, and given to the store.

use std::sync::Arc;

use innkeeper_core::Object;
use kube::runtime::watcher::Event;

use crate::ApiClient;
use crate::cache::cache_id::CacheId;
use crate::cache::raw::Wire;
use crate::cache::store::CacheStore;
use crate::cache::watch_event::WatchEvent;

/// Decodes an event of the watcher and gives it to the store; whether it was the end of a list.
pub(super) fn take_event<K: Wire>(
    store: &CacheStore,
    id: &CacheId,
    serial: u64,
    client: &ApiClient,
    event: Event<K>,
) -> bool {
    let decode = |raw: &K| decode(id, client, raw);
    match event {
        Event::Init => store.begin_list(id, serial),
        Event::InitApply(raw) => {
            if let Some(object) = decode(&raw) {
                let object = store.compressed(id, serial, object);
                store.apply_listed(id, serial, |objects| objects.apply_listed(object));
            }
        }
        Event::Apply(raw) => {
            if let Some(cached) = store.cached(id, serial, raw.meta()) {
                store.apply_watch_event(id, serial, WatchEvent::Applied(cached), None);
            } else if let Some(object) = decode(&raw) {
                let (object, whole) = store.compressed_and_whole(id, serial, object);
                store.apply_watch_event(id, serial, WatchEvent::Applied(object), whole);
            }
        }
        Event::Delete(raw) => {
            if let Some(object) = decode(&raw) {
                store.apply_watch_event(id, serial, WatchEvent::Deleted(Arc::new(object)), None);
            }
        }
        Event::InitDone => {
            store.end_list(id, serial);
            return true;
        }
    }
    false
}

/// Decodes an object that belongs into the cache.
pub(super) fn decode<K: Wire>(id: &CacheId, client: &ApiClient, raw: &K) -> Option<Object> {
    match client.decode(&id.kind, raw.text()) {
        Ok(object) if client.hides(&id.kind, &object.key) => None,
        Ok(object) if !id.covers(object.key.namespace()) => {
            tracing::error!(cache = %id, key = %object.key, "object of another namespace left out: the API server sent it");
            None
        }
        Ok(object) => Some(object),
        Err(error) => {
            tracing::error!(cache = %id, %error, "object of the API server not decoded");
            None
        }
    }
}
