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

use super::cell::{CacheId, Content, News};
use super::raw::{Raw, RawMetadata, Wire};
use super::shared::{Closed, Shared};
use crate::discovery::Served;
use crate::error::{Asked, Guard};
use crate::settings::{
    DISCOVERY_PERIOD, DISCOVERY_SETTLES, REFUSALS, UNCONFIRMED, UNSERVED_LEAST, UNSERVED_MOST,
    WATCH_RETRY_LEAST, WATCH_RETRY_MOST,
};
use crate::{ApiError, Backoff, Denial, Env, Mismatch, Session, Task};

/// Why one session stopped filling a cache.
enum End {
    /// It fills it no longer: its module has gone.
    Left,
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
pub(super) async fn follow(shared: Arc<Shared>, id: CacheId, serial: u64, poke: Arc<Notify>) {
    let env = shared.env().clone();
    let mut unserved = Backoff::new(&env, UNSERVED_LEAST, UNSERVED_MOST);
    let mut failed = Failures::new(&env);
    loop {
        let session = match shared.elect(&id, serial) {
            Ok(Some(session)) => session,
            Ok(None) => {
                poke.notified().await;
                continue;
            }
            Err(Closed) => return,
        };
        let end = match (verify(&id, &session, DISCOVERY_PERIOD).await, id.content) {
            (Err(end), _) => end,
            (Ok(()), Content::Whole) => {
                fill::<Raw>(&shared, &id, serial, &session, &poke, &mut failed).await
            }
            (Ok(()), Content::Metadata) => {
                fill::<RawMetadata>(&shared, &id, serial, &session, &poke, &mut failed).await
            }
        };
        match end {
            End::Left | End::Expired => {}
            End::NotServed => {
                shared.not_served(&id, serial);
                tokio::select! {
                    biased;
                    () = poke.notified() => unserved.reset(),
                    () = env.sleep(unserved.advance()) => {}
                }
            }
            End::Mismatched(mismatch) => {
                tracing::warn!(cache = %id, "{mismatch}");
                shared.mismatched(&id, serial, mismatch);
                tokio::select! {
                    biased;
                    () = poke.notified() => {}
                    () = env.sleep(env.jitter(UNSERVED_MOST)) => {}
                }
            }
            End::Unverified(error) => {
                let wait = failed.advance();
                tracing::warn!(
                    cache = %id, %error,
                    "discovery failed, tried again in {} ms", wait.as_millis(),
                );
                shared.failing(&id, serial, error.to_string());
                tokio::select! {
                    biased;
                    () = poke.notified() => {}
                    () = env.sleep(wait) => {}
                }
            }
            End::Forbidden(denial) => {
                shared.admit(&id, serial, session.identity(), Some(denial));
            }
        }
    }
}

/// Compares the kind of a cache with discovery, by an answer at most `age` old.
async fn verify(id: &CacheId, session: &Session, age: Duration) -> Result<(), End> {
    match session.served(&id.kind, age).await {
        Ok(Served::AsDeclared) => Ok(()),
        Ok(Served::Not) => Err(End::NotServed),
        Ok(Served::Otherwise(mismatch)) => Err(End::Mismatched(mismatch)),
        Err(error) => Err(End::Unverified(error)),
    }
}

/// When a cache that is read compares its kind with discovery again, and how old the answer may be.
struct Look {
    at: Instant,
    age: Duration,
}

impl Look {
    fn after(env: &Env, wait: Duration) -> Self {
        Self { at: env.instant() + wait, age: wait / 2 }
    }
}

/// Compares the kind of a cache that is read with discovery again; gives when to do so next.
///
/// The watch reports a kind that is not served: a definition may be on the way from one to another
/// in this moment. Discovery that does not answer is asked again soon, and holds up no event for long.
async fn verify_again(id: &CacheId, session: &Session, age: Duration) -> Result<Look, End> {
    let env = session.env();
    let verified = env.timeout(DISCOVERY_SETTLES, async {
        // A server shows a changed definition in its discovery a moment after it tells of the change.
        let may_have_changed = session.may_have_changed(&id.kind).await;
        (verify(id, session, age).await, may_have_changed)
    });
    match verified.await {
        Ok((Ok(()), false)) => Ok(Look::after(env, env.jitter(DISCOVERY_PERIOD))),
        Ok((Err(End::Mismatched(mismatch)), _)) => Err(End::Mismatched(mismatch)),
        _ => Ok(Look::after(env, DISCOVERY_SETTLES)),
    }
}

async fn fill<K: Wire + 'static>(
    shared: &Arc<Shared>,
    id: &CacheId,
    serial: u64,
    session: &Session,
    poke: &Notify,
    failed: &mut Failures,
) -> End {
    let mut events = pin!(watcher(api::<K>(id, session), config(session)));
    // Dropped, and so ended, when the next list is done or another session takes over.
    let mut _confirming: Option<Task<()>> = None;
    let mut refused = 0;
    let mut lists = 0;
    let mut look = Look::after(shared.env(), shared.env().jitter(DISCOVERY_PERIOD));
    loop {
        let event = tokio::select! {
            biased;
            () = poke.notified() => {
                if !shared.is_holder(id, serial, session.identity()) {
                    return End::Left;
                }
                match verify_again(id, session, DISCOVERY_PERIOD).await {
                    Ok(next) => look = next,
                    Err(end) => return end,
                }
                continue;
            }
            () = tokio::time::sleep_until(look.at) => {
                match verify_again(id, session, look.age).await {
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
                && let Err(end) = verify(id, session, DISCOVERY_SETTLES).await
            {
                return end;
            }
        }
        let error = match event {
            None => return End::Expired,
            Some(Ok(event)) => {
                failed.reset();
                refused = 0;
                if take(shared, id, serial, session, event) {
                    let confirm = confirm(shared.clone(), id.clone(), serial, session.clone());
                    _confirming = Some(shared.env().spawn("confirm", confirm));
                }
                // A page of a list is ready at once: let others run in between.
                tokio::task::consume_budget().await;
                continue;
            }
            Some(Err(error)) => error,
        };
        let error = match classify(id, session, &error) {
            Failure::End(End::Forbidden(denial)) => {
                refused += 1;
                // Who has never been admitted is told at once.
                if refused >= REFUSALS || !shared.is_synced(id, serial) {
                    return End::Forbidden(denial);
                }
                ApiError::Forbidden { denial: Box::new(denial), message: "refused".to_owned() }
            }
            Failure::End(end) => return end,
            Failure::Again => continue,
            Failure::Wait(error) => error,
        };
        let wait = failed.advance();
        tracing::warn!(
            cache = %id, identity = %session.identity(), %error,
            "watch failed, tried again in {} ms", wait.as_millis(),
        );
        shared.failing(id, serial, error.to_string());
        tokio::select! {
            biased;
            () = poke.notified() => {
                if !shared.is_holder(id, serial, session.identity()) {
                    return End::Left;
                }
            }
            () = shared.env().sleep(wait) => {}
        }
    }
}

fn api<K: Wire>(id: &CacheId, session: &Session) -> Api<K> {
    let kind = &id.kind;
    let resource = ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version.clone(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    };
    let client = session.client().clone();
    match &id.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    }
}

fn config(session: &Session) -> watcher::Config {
    let settings = session.settings();
    watcher::Config::default().timeout(settings.watch_seconds()).page_size(settings.list_page)
}

/// Takes an event in; whether it was the end of a list.
fn take<K: Wire>(
    shared: &Shared,
    id: &CacheId,
    serial: u64,
    session: &Session,
    event: Event<K>,
) -> bool {
    let decode = |raw: &K| -> Option<Arc<Object>> {
        match session.decode(&id.kind, raw.text()) {
            Ok(object) if session.hides(&id.kind, &object.key) => None,
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
            objects.list_begins();
            None
        }),
        Event::InitApply(raw) => {
            if let Some(object) = decode(&raw) {
                shared.shown(id, serial, |objects| objects.listed(object));
            }
        }
        Event::Apply(raw) => {
            if let Some(object) = decode(&raw) {
                shared.event(id, serial, News::Applied(object));
            }
        }
        Event::Delete(raw) => {
            if let Some(object) = decode(&raw) {
                shared.event(id, serial, News::Deleted(object));
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
async fn confirm(shared: Arc<Shared>, id: CacheId, serial: u64, session: Session) {
    // Nobody vouches for metadata: see `Caches::wrote`.
    shared.env().sleep(UNCONFIRMED).await;
    for object in shared.unconfirmed(&id, serial) {
        let found = match session.get(&id.kind, &object.key).await {
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
    End(End),
    Again,
    Wait(ApiError),
}

fn classify(id: &CacheId, session: &Session, error: &watcher::Error) -> Failure {
    let asked = |verb| Asked {
        identity: session.identity(),
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
        watcher::Error::WatchError(status) if status.code == 410 => return Failure::Again,
        // Here it would ask for the same version for ever.
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => {
            return Failure::End(End::Expired);
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
        ApiError::NotServed { .. } | ApiError::NotFound { .. } => Failure::End(End::NotServed),
        ApiError::Forbidden { denial, .. } => Failure::End(End::Forbidden(*denial)),
        error => Failure::Wait(error),
    }
}

/// Waits after failures that follow each other closely get longer. The watcher does not
/// tell of a watch that was resumed, so time without a failure has to say it.
struct Failures {
    env: Env,
    backoff: Backoff,
    last: Option<Instant>,
}

impl Failures {
    fn new(env: &Env) -> Self {
        let backoff = Backoff::new(env, WATCH_RETRY_LEAST, WATCH_RETRY_MOST);
        Self { env: env.clone(), backoff, last: None }
    }

    fn advance(&mut self) -> Duration {
        let now = self.env.instant();
        // The last wait is in this time too, hence twice the longest.
        if self.last.is_some_and(|last| now - last > 2 * WATCH_RETRY_MOST) {
            self.backoff.reset();
        }
        self.last = Some(now);
        self.backoff.advance()
    }

    fn reset(&mut self) {
        self.backoff.reset();
    }
}
