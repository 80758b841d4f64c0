//! The task of one cache: lists and watches with the session of its holder.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use innkeeper_core::Object;
use kube::Api;
use kube::api::ApiResource;
use kube::runtime::watcher;
use kube::runtime::watcher::Event;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::cell::{CacheId, Content, WatchEvent};
use super::raw::{Raw, RawMetadata, Wire};
use super::shared::{Closed, Shared};
use crate::error::{Guard, RequestContext};
use crate::served_kind::ServedKind;
use crate::settings::{
    DISCOVERY_PERIOD, DISCOVERY_SETTLES, REFUSALS, UNCONFIRMED, UNSERVED_MAX, UNSERVED_MIN,
    WATCH_RETRY_MAX, WATCH_RETRY_MIN,
};
use crate::{ApiClient, ApiError, Backoff, Denial, Env, Mismatch, Task};

/// Why one session stopped filling a cache.
enum WatchEnd {
    /// It fills it no longer: its module has gone.
    Unsubscribed,
    /// What it had was too old: it starts anew.
    Expired,
    NotServed,
    /// The kind is served otherwise than it is declared.
    Mismatched(Mismatch),
    /// Discovery does not say how the kind is served: nothing is listed.
    Unverified(ApiError),
    Forbidden(Denial),
}

/// Fills a cache for as long as somebody views it.
pub(super) async fn watch(shared: Arc<Shared>, id: CacheId, serial: u64, notify: Arc<Notify>) {
    let env = shared.env().clone();
    let mut unserved = Backoff::new(&env, UNSERVED_MIN, UNSERVED_MAX);
    let mut failed = WatchFailures::new(&env);
    loop {
        let client = match shared.elect(&id, serial) {
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
                fill::<Raw>(&shared, &id, serial, &client, &notify, &mut failed).await
            }
            (Ok(()), Content::Metadata) => {
                fill::<RawMetadata>(&shared, &id, serial, &client, &notify, &mut failed).await
            }
        };
        match end {
            WatchEnd::Unsubscribed | WatchEnd::Expired => {}
            WatchEnd::NotServed => {
                shared.not_served(&id, serial);
                tokio::select! {
                    biased;
                    () = notify.notified() => unserved.reset(),
                    () = env.sleep(unserved.advance()) => {}
                }
            }
            WatchEnd::Mismatched(mismatch) => {
                tracing::warn!(cache = %id, "{mismatch}");
                shared.mismatched(&id, serial, mismatch);
                tokio::select! {
                    biased;
                    () = notify.notified() => {}
                    () = env.sleep(env.jitter(UNSERVED_MAX)) => {}
                }
            }
            WatchEnd::Unverified(error) => {
                let wait = failed.advance();
                tracing::warn!(
                    cache = %id, %error,
                    "discovery failed, tried again in {} ms", wait.as_millis(),
                );
                shared.failing(&id, serial, error.to_string());
                tokio::select! {
                    biased;
                    () = notify.notified() => {}
                    () = env.sleep(wait) => {}
                }
            }
            WatchEnd::Forbidden(denial) => {
                shared.admit(&id, serial, client.identity(), Some(denial));
            }
        }
    }
}

/// Compares the kind of a cache with discovery, by an answer at most `age` old.
async fn verify(id: &CacheId, client: &ApiClient, age: Duration) -> Result<(), WatchEnd> {
    match client.served(&id.kind, age).await {
        Ok(ServedKind::AsDeclared) => Ok(()),
        Ok(ServedKind::NotServed) => Err(WatchEnd::NotServed),
        Ok(ServedKind::Mismatched(mismatch)) => Err(WatchEnd::Mismatched(mismatch)),
        Err(error) => Err(WatchEnd::Unverified(error)),
    }
}

/// When a cache that is read compares its kind with discovery again, and how old the answer may be.
struct Verification {
    at: Instant,
    age: Duration,
}

impl Verification {
    fn after(env: &Env, wait: Duration) -> Self {
        Self { at: env.instant() + wait, age: wait / 2 }
    }
}

/// Compares the kind of a cache that is read with discovery again; gives when to do so next.
///
/// The watch reports a kind that is not served: a definition may be on the way from one to another
/// in this moment. Discovery that does not answer is asked again soon, and holds up no event for
/// long.
async fn verify_again(
    id: &CacheId,
    client: &ApiClient,
    age: Duration,
) -> Result<Verification, WatchEnd> {
    let env = client.env();
    let verified = env.timeout(DISCOVERY_SETTLES, async {
        // A server shows a changed definition in its discovery a moment after it tells of the
        // change.
        let may_have_changed = client.may_have_changed(&id.kind).await;
        (verify(id, client, age).await, may_have_changed)
    });
    match verified.await {
        Ok((Ok(()), false)) => Ok(Verification::after(env, env.jitter(DISCOVERY_PERIOD))),
        Ok((Err(WatchEnd::Mismatched(mismatch)), _)) => Err(WatchEnd::Mismatched(mismatch)),
        _ => Ok(Verification::after(env, DISCOVERY_SETTLES)),
    }
}

async fn fill<K: Wire + 'static>(
    shared: &Arc<Shared>,
    id: &CacheId,
    serial: u64,
    client: &ApiClient,
    notify: &Notify,
    failed: &mut WatchFailures,
) -> WatchEnd {
    let mut events = pin!(watcher(api::<K>(id, client), config(client)));
    // Dropped, and so ended, when the next list is done or another session takes over.
    let mut _confirming: Option<Task<()>> = None;
    let mut refused = 0;
    let mut lists = 0;
    let mut look = Verification::after(shared.env(), shared.env().jitter(DISCOVERY_PERIOD));
    loop {
        let event = tokio::select! {
            biased;
            () = notify.notified() => {
                if !shared.is_holder(id, serial, client.identity()) {
                    return WatchEnd::Unsubscribed;
                }
                match verify_again(id, client, DISCOVERY_PERIOD).await {
                    Ok(next) => look = next,
                    Err(end) => return end,
                }
                continue;
            }
            () = tokio::time::sleep_until(look.at) => {
                match verify_again(id, client, look.age).await {
                    Ok(next) => look = next,
                    Err(end) => return end,
                }
                continue;
            }
            event = events.next() => event,
        };
        // A watch that lists again may do so since the definition was replaced.
        if let Some(Ok(Event::Init)) = &event {
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
                failed.reset();
                refused = 0;
                if take(shared, id, serial, client, event) {
                    let confirm = confirm(shared.clone(), id.clone(), serial, client.clone());
                    _confirming = Some(shared.env().spawn("confirm", confirm));
                }
                // A page of a list is ready at once: let others run in between.
                tokio::task::consume_budget().await;
                continue;
            }
            Some(Err(error)) => error,
        };
        let error = match classify(id, client, &error) {
            Failure::End(WatchEnd::Forbidden(denial)) => {
                refused += 1;
                // Who has never been admitted is told at once.
                if refused >= REFUSALS || !shared.is_synced(id, serial) {
                    return WatchEnd::Forbidden(denial);
                }
                ApiError::Forbidden { denial: Box::new(denial), message: "refused".to_owned() }
            }
            Failure::End(end) => return end,
            Failure::Retry => continue,
            Failure::Wait(error) => error,
        };
        let wait = failed.advance();
        tracing::warn!(
            cache = %id, identity = %client.identity(), %error,
            "watch failed, tried again in {} ms", wait.as_millis(),
        );
        shared.failing(id, serial, error.to_string());
        tokio::select! {
            biased;
            () = notify.notified() => {
                if !shared.is_holder(id, serial, client.identity()) {
                    return WatchEnd::Unsubscribed;
                }
            }
            () = shared.env().sleep(wait) => {}
        }
    }
}

fn api<K: Wire>(id: &CacheId, client: &ApiClient) -> Api<K> {
    let kind = &id.kind;
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    let client = client.client().clone();
    match &id.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

fn config(client: &ApiClient) -> watcher::Config {
    let settings = client.settings();
    watcher::Config::default().timeout(settings.watch_seconds()).page_size(settings.list_page)
}

/// Takes an event in; whether it was the end of a list.
fn take<K: Wire>(
    shared: &Shared,
    id: &CacheId,
    serial: u64,
    client: &ApiClient,
    event: Event<K>,
) -> bool {
    let decode = |raw: &K| -> Option<Arc<Object>> {
        match client.decode(&id.kind, raw.text()) {
            Ok(object) if client.hides(&id.kind, &object.key) => None,
            Ok(object) if !id.covers(object.key.namespace()) => {
                tracing::error!(cache = %id, key = %object.key, "object of another namespace left out: the API server sent it");
                None
            }
            Ok(object) => Some(Arc::new(object)),
            Err(error) => {
                tracing::error!(cache = %id, %error, "object of the API server not decoded");
                None
            }
        }
    };
    match event {
        Event::Init => shared.shown(id, serial, |objects| {
            objects.begin_relist();
            None
        }),
        Event::InitApply(raw) => {
            if let Some(object) = decode(&raw) {
                shared.shown(id, serial, |objects| objects.apply_listed(object));
            }
        }
        Event::Apply(raw) => {
            if let Some(object) = decode(&raw) {
                shared.event(id, serial, WatchEvent::Applied(object));
            }
        }
        Event::Delete(raw) => {
            if let Some(object) = decode(&raw) {
                shared.event(id, serial, WatchEvent::Deleted(object));
            }
        }
        Event::InitDone => {
            shared.synced(id, serial);
            return true;
        }
    }
    false
}

/// Some time after a list: looks up what it did not show and only a write response vouches for.
async fn confirm(shared: Arc<Shared>, id: CacheId, serial: u64, client: ApiClient) {
    // Nobody vouches for metadata: see `Caches::record_write`.
    shared.env().sleep(UNCONFIRMED).await;
    for object in shared.unconfirmed(&id, serial) {
        let found = match client.get(&id.kind, &object.key).await {
            Ok(found) => Some(Arc::new(found)),
            Err(ApiError::NotFound { .. }) => None,
            Err(error) => {
                tracing::warn!(cache = %id, key = %object.key, %error, "object not confirmed");
                continue;
            }
        };
        shared.shown(&id, serial, |objects| objects.confirm(&object, found));
    }
}

enum Failure {
    End(WatchEnd),
    Retry,
    Wait(ApiError),
}

fn classify(id: &CacheId, client: &ApiClient, error: &watcher::Error) -> Failure {
    let asked = |verb| RequestContext {
        identity: client.identity(),
        verb,
        kind: &id.kind,
        subresource: "",
        namespace: id.namespace.as_deref().unwrap_or_default(),
        guard: Guard::None,
    };
    let read = |verb, error: &kube::Error| match error {
        kube::Error::Api(status) => asked(verb).status(status),
        error => asked(verb).unanswered(error),
    };
    let error = match error {
        // The watcher lists again by itself.
        watcher::Error::WatchError(status) if status.code == 410 => return Failure::Retry,
        // Here it would ask for the same version for ever.
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
            return Failure::End(WatchEnd::Expired);
        }
        watcher::Error::InitialListFailed(error) => read("list", error),
        watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
            read("watch", error)
        }
        watcher::Error::WatchError(status) => asked("watch").status(status),
        watcher::Error::NoResourceVersion => ApiError::Other {
            code: 0,
            message: "the API server gives no versions of this kind: it cannot be watched".into(),
        },
    };
    match error {
        ApiError::NotServed { .. } | ApiError::NotFound { .. } => Failure::End(WatchEnd::NotServed),
        ApiError::Forbidden { denial, .. } => Failure::End(WatchEnd::Forbidden(*denial)),
        error => Failure::Wait(error),
    }
}

/// Waits after failures that follow each other closely get longer. The watcher does not
/// tell of a watch that was resumed, so time without a failure has to say it.
struct WatchFailures {
    env: Env,
    backoff: Backoff,
    last: Option<Instant>,
}

impl WatchFailures {
    fn new(env: &Env) -> Self {
        let backoff = Backoff::new(env, WATCH_RETRY_MIN, WATCH_RETRY_MAX);
        Self { env: env.clone(), backoff, last: None }
    }

    fn advance(&mut self) -> Duration {
        let now = self.env.instant();
        // The last wait is in this time too, hence twice the longest.
        if self.last.is_some_and(|last| now - last > 2 * WATCH_RETRY_MAX) {
            self.backoff.reset();
        }
        self.last = Some(now);
        self.backoff.advance()
    }

    fn reset(&mut self) {
        self.backoff.reset();
    }
}
