//! The task of one cache: it lists and watches the kind with the holder's client.
//!
//! `event` takes each event, `field_list` lists fields that objects lack, `verification` compares
//! the kind with discovery, `failure` and `backoff` react to errors, and `confirm` looks objects up
//! that a list did not show.

mod backoff;
mod confirm;
mod end;
mod event;
mod failure;
mod field_list;
mod verification;

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use kube::Api;
use kube::api::ApiResource;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use tokio::sync::Notify;

use self::backoff::WatchBackoff;
use self::confirm::confirm;
use self::end::WatchEnd;
use self::event::take_event;
use self::failure::{Failure, classify};
use self::field_list::FieldList;
use self::verification::{Verification, verify, verify_again};
use super::cache_id::{CacheId, Content};
use super::raw::{Raw, RawMetadata, Wire};
use super::store::{CacheStore, Closed};
use crate::settings::{DISCOVERY_PERIOD, DISCOVERY_SETTLES, REFUSALS, UNSERVED_MAX, UNSERVED_MIN};
use crate::watch_pace::WatchPace;
use crate::{ApiClient, ApiError, Backoff, Task};

/// Fills a cache for as long as it has a view.
pub(super) async fn watch(store: Arc<CacheStore>, id: CacheId, serial: u64, notify: Arc<Notify>) {
    let env = store.env().clone();
    let mut unserved = Backoff::new(&env, UNSERVED_MIN, UNSERVED_MAX);
    let mut failures = WatchBackoff::new(&env);
    let pace = {
        let (store, id) = (store.clone(), id.clone());
        WatchPace::new(&env, move |version| store.begin_watch(&id, serial, version))
    };
    loop {
        let client = match store.elect(&id, serial) {
            Ok(Some(client)) => client,
            Ok(None) => {
                notify.notified().await;
                continue;
            }
            Err(Closed) => return,
        };
        let end = match (verify(&id, &client, DISCOVERY_PERIOD).await, id.content) {
            (Err(end), _) => end,
            (Ok(()), Content::Whole) => {
                fill::<Raw>(&store, &id, serial, &client, &notify, (&mut failures, &pace)).await
            }
            (Ok(()), Content::Metadata) => {
                fill::<RawMetadata>(&store, &id, serial, &client, &notify, (&mut failures, &pace))
                    .await
            }
        };
        match end {
            WatchEnd::Unsubscribed | WatchEnd::Expired => {}
            WatchEnd::NotServed => {
                store.set_not_served(&id, serial);
                tokio::select! {
                    biased;
                    () = notify.notified() => unserved.reset(),
                    () = env.sleep(unserved.advance()) => {}
                }
            }
            WatchEnd::Mismatched(mismatch) => {
                tracing::warn!(cache = %id, "{mismatch}");
                store.set_mismatched(&id, serial, mismatch);
                tokio::select! {
                    biased;
                    () = notify.notified() => {}
                    () = env.sleep(env.jitter(UNSERVED_MAX)) => {}
                }
            }
            WatchEnd::Unverified(error) => {
                let wait = failures.advance();
                tracing::warn!(
                    cache = %id, %error,
                    "discovery failed, tried again in {} ms", wait.as_millis(),
                );
                store.set_failing(&id, serial, error.to_string());
                tokio::select! {
                    biased;
                    () = notify.notified() => {}
                    () = env.sleep(wait) => {}
                }
            }
            WatchEnd::Forbidden(denial) => {
                store.set_admission(&id, serial, client.identity(), Some(denial));
            }
        }
    }
}

/// Lists and watches the kind with one client, until it has to stop.
async fn fill<K: Wire + 'static>(
    store: &Arc<CacheStore>,
    id: &CacheId,
    serial: u64,
    client: &ApiClient,
    notify: &Notify,
    (failures, pace): (&mut WatchBackoff, &WatchPace),
) -> WatchEnd {
    let mut events = pin!(watcher(api::<K>(id, client, pace), config(client)));
    // The drop at the end of the next list, or of this function, ends the task.
    let mut _confirming: Option<Task<()>> = None;
    let mut field_list = FieldList::default();
    // Only lists of the watch say something about its versions.
    let api_of_fields = api::<K>(id, client, &WatchPace::new(store.env(), |_| {}));
    let mut may_lack_fields = false;
    let mut refused = 0;
    let mut lists = 0;
    let mut next = Verification::after(store.env(), store.env().jitter(DISCOVERY_PERIOD));
    loop {
        if std::mem::take(&mut may_lack_fields) {
            field_list.start_if_needed(store, (id, serial), client, &api_of_fields);
        }
        let event = tokio::select! {
            biased;
            () = notify.notified() => {
                if let Some(end) = reason_to_end(store, id, serial, client) {
                    return end;
                }
                may_lack_fields = true;
                store.narrow_fields(id, serial);
                match verify_again(id, client, DISCOVERY_PERIOD).await {
                    Ok(verification) => next = verification,
                    Err(end) => return end,
                }
                continue;
            }
            () = tokio::time::sleep_until(next.at) => {
                may_lack_fields = true;
                store.narrow_fields(id, serial);
                match verify_again(id, client, next.age).await {
                    Ok(verification) => next = verification,
                    Err(end) => return end,
                }
                continue;
            }
            event = events.next() => event,
            () = field_list.incomplete() => return WatchEnd::Expired,
        };
        // The watcher may list again because another definition has replaced the kind's.
        if let Some(Ok(Event::Init)) = &event {
            field_list.stop();
            lists += 1;
            if lists > 1
                && let Err(end) = verify(id, client, DISCOVERY_SETTLES).await
            {
                return end;
            }
        }
        let error = match event {
            None => return WatchEnd::Expired,
            Some(Ok(event)) => {
                failures.reset();
                refused = 0;
                if take_event(store, id, serial, client, event) {
                    let confirm = confirm(store.clone(), id.clone(), serial, client.clone());
                    _confirming = Some(store.env().spawn("confirm", confirm));
                    may_lack_fields = true;
                }
                // The events of a page are ready at once: other tasks run in between.
                tokio::task::consume_budget().await;
                continue;
            }
            Some(Err(error)) => error,
        };
        let error = match classify(id, client, &error) {
            Failure::End(WatchEnd::Forbidden(denial)) => {
                refused += 1;
                // A right that was never granted is missing for sure.
                if refused >= REFUSALS || !store.is_synced(id, serial) {
                    return WatchEnd::Forbidden(denial);
                }
                ApiError::Forbidden { denial: Box::new(denial), message: "refused".to_owned() }
            }
            Failure::End(end) => return end,
            Failure::Retry => continue,
            Failure::Wait(error) => error,
        };
        let wait = failures.advance();
        tracing::warn!(
            cache = %id, identity = %client.identity(), %error,
            "watch failed, tried again in {} ms", wait.as_millis(),
        );
        store.set_failing(id, serial, error.to_string());
        field_list.start_if_needed(store, (id, serial), client, &api_of_fields);
        tokio::select! {
            biased;
            () = notify.notified() => {
                if let Some(end) = reason_to_end(store, id, serial, client) {
                    return end;
                }
                may_lack_fields = true;
            }
            () = store.env().sleep(wait) => {}
            () = field_list.incomplete() => return WatchEnd::Expired,
        }
    }
}

/// Why this client has to stop now, if it has to.
fn reason_to_end(
    store: &CacheStore,
    id: &CacheId,
    serial: u64,
    client: &ApiClient,
) -> Option<WatchEnd> {
    if !store.is_holder(id, serial, client.identity()) {
        return Some(WatchEnd::Unsubscribed);
    }
    store.must_list(id, serial).then_some(WatchEnd::Expired)
}

fn api<K: Wire>(id: &CacheId, client: &ApiClient, pace: &WatchPace) -> Api<K> {
    let kind = &id.kind;
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    let client = pace.client(client.transport());
    match &id.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

fn config(client: &ApiClient) -> watcher::Config {
    let settings = client.settings();
    watcher::Config::default().timeout(settings.watch_seconds()).page_size(settings.list_page)
}
