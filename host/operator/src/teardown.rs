//! A module that leaves: its finalizer comes off its primaries, and then the host's off the Module.
//!
//! What the module made stays. Primaries that are being deleted are asked first what is left to do,
//! for a bounded time; the others are let go at once. All of it is done as the module's
//! ServiceAccount, like everything else of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{ApiClient, ApiError, Backoff, KindState};
use innkeeper_contract::Kind;
use innkeeper_core::{Finalizer, Manager, Object, ObjectRef};
use innkeeper_modules::driver::Teardown as Left;
use innkeeper_modules::{Rejection, RetryPolicy, module};
use serde_json::json;
use serde_json::value::RawValue;

use crate::modules::active_module::{ActiveModule, TeardownPhase};
use crate::modules::event::MODULE;
use crate::modules::health::RunHealth;
use crate::reconcile::finalizers;
use crate::shared::Shared;

/// So long are primaries that are being deleted asked what is left to do.
pub const FINALIZING_TIME: Duration = Duration::from_mins(1);

/// So long may it take to let all go after that, before it is said what stands in the way.
pub const REMOVAL_TIME: Duration = Duration::from_secs(30);

/// So often is tried to let go what a module does not see any more.
const RELEASE_TRIES: u32 = 20;

/// How often is looked who has not been let go.
const POLL_PERIOD: Duration = Duration::from_millis(200);

/// Lets all primaries of a module go. Gives what was done, for people.
///
/// # Errors
/// What stands in the way, to be tried again.
pub async fn teardown(
    shared: &Shared,
    client: &ApiClient,
    module: &str,
    left: &Left,
) -> Result<String, Rejection> {
    let Some(finalizer) = &left.finalizer else {
        return Ok("It had no finalizer on its primaries; what it made stays.".to_owned());
    };
    let finalizer = Finalizer::new(module, Some(finalizer));
    match (shared.module(module), &left.primary) {
        (Some(active), _) if left.is_active => finalize_primaries(shared, &active).await,
        (_, Some(primary)) => {
            remove_directly(client, &finalizer, primary, &left.namespaces, &BTreeSet::new()).await
        }
        (_, None) => Ok("It never served.".to_owned()),
    }
}

/// By the rounds of a version that serves: those that are being deleted can be asked.
async fn finalize_primaries(
    shared: &Shared,
    active: &Arc<ActiveModule>,
) -> Result<String, Rejection> {
    let began = shared.env.instant();
    let released = || shared.metrics.written(active.name(), finalizers::REMOVE_FINALIZER);
    let before = released();
    let mut waits_until = Some(FINALIZING_TIME);
    shared.serve(&Arc::new(active.in_teardown(TeardownPhase::Finalizing)));
    // A host that has just started has not read them yet.
    while matches!(unreadable(active), Some(CacheReadError::NotSynced(_)))
        && shared.env.instant().duration_since(began) < REMOVAL_TIME
    {
        shared.env.sleep(POLL_PERIOD).await;
    }
    loop {
        let held = with_finalizer(active)?;
        if held.is_empty() && shared.queue().is_idle(active.name()) {
            return Ok(message(released() - before));
        }
        let elapsed = shared.env.instant().duration_since(began);
        match waits_until {
            Some(time) if elapsed > time => {
                waits_until = None;
                shared.serve(&Arc::new(active.in_teardown(TeardownPhase::Immediate)));
            }
            None if elapsed > FINALIZING_TIME + REMOVAL_TIME => {
                return Err(blocked(shared, active, &held));
            }
            _ => {}
        }
        shared.env.sleep(POLL_PERIOD).await;
    }
}

fn unreadable(active: &ActiveModule) -> Option<CacheReadError> {
    active.view.snapshot().unreadable(&active.primary)
}

/// The primaries with a finalizer of the module.
fn with_finalizer(active: &ActiveModule) -> Result<Vec<Arc<Object>>, Rejection> {
    if let Some(why) = unreadable(active).filter(|why| *why != CacheReadError::NotServed) {
        let message = format!(
            "its finalizer cannot be taken off its primaries, since they cannot be read: {why}; {}",
            help()
        );
        return Err(Rejection::new("FinalizerNotRemoved", message, RetryPolicy::Later));
    }
    let mut primaries = active.primaries();
    primaries.retain(|primary| active.finalizer.is_on_object(primary));
    Ok(primaries)
}

fn message(let_go: u64) -> String {
    format!("Its finalizer is off {let_go} primaries; what it made stays.")
}

fn blocked(shared: &Shared, active: &ActiveModule, held: &[Arc<Object>]) -> Rejection {
    let why = match shared.health.runs(active.name()) {
        RunHealth::Fail((reason, message)) => format!("{reason}: {message}"),
        RunHealth::Succeed => "for a reason that the log may tell".to_owned(),
    };
    let first = held.first().map(|primary| primary.key.to_string()).unwrap_or_default();
    Rejection::new(
        "FinalizerNotRemoved",
        format!(
            "its finalizer is still on {} primaries, {first} for example ({why}); {}",
            held.len(),
            help()
        ),
        RetryPolicy::Later,
    )
}

fn help() -> String {
    format!(
        "grant what is missing, or take the finalizer {} off the Module to leave the primaries as they are",
        module::FINALIZER
    )
}

/// A module has other namespaces than before, or primaries of another kind: those that it does not
/// see any more are let go.
pub async fn release_unselected(shared: &Shared, before: &ActiveModule, now: &ActiveModule) {
    let none = BTreeSet::new();
    let gone = &before.settings().namespaces;
    let seen = if has_another_kind(before, now) { &none } else { &now.settings().namespaces };
    let mut backoff = Backoff::new(&shared.env, POLL_PERIOD, REMOVAL_TIME);
    for _ in 0..RELEASE_TRIES {
        let let_go =
            remove_directly(&before.client, &before.finalizer, &before.primary, gone, seen);
        match let_go.await {
            Ok(_) => return,
            Err(rejection) => tracing::warn!(module = %now.name(), "{}", rejection.message),
        }
        shared.env.sleep(backoff.advance()).await;
    }
}

/// Whether a module sees fewer namespaces than before, or primaries of another kind, and may have
/// left its finalizer on the others.
pub fn is_narrowed(before: &ActiveModule, now: &ActiveModule) -> bool {
    let (before_in, now_in) = (&before.settings().namespaces, &now.settings().namespaces);
    let sees_fewer = before.primary.is_namespaced()
        && !now_in.is_empty()
        && (before_in.is_empty() || !before_in.is_subset(now_in));
    before.finalizer.name().is_some() && (sees_fewer || has_another_kind(before, now))
}

/// Whether a module's primaries are of another kind than before. Versions of one kind are one kind.
fn has_another_kind(before: &ActiveModule, now: &ActiveModule) -> bool {
    let (before, now) = (&before.primary, &now.primary);
    before.group() != now.group() || before.kind != now.kind
}

/// Without a version that serves: all are let go as they are, but for those in the namespaces of
/// `except`.
async fn remove_directly(
    client: &ApiClient,
    finalizer: &Finalizer,
    primary: &Kind,
    namespaces: &BTreeSet<String>,
    except: &BTreeSet<String>,
) -> Result<String, Rejection> {
    let refused = |error: ApiError| {
        let message =
            format!("its finalizer cannot be taken off its primaries: {error}; {}", help());
        Rejection::new("FinalizerNotRemoved", message, RetryPolicy::Later)
    };
    let everywhere = [String::new()].into();
    let namespaces = if namespaces.is_empty() { &everywhere } else { namespaces };
    let kind = Arc::new(primary.clone());
    let mut let_go = 0;
    for namespace in namespaces {
        // Not parsed: one object that a tenant made too deep would hide all others.
        let found: Vec<Box<RawValue>> = match client.list_as(primary, namespace).await {
            Ok(found) => found,
            Err(ApiError::NotServed { .. } | ApiError::NotFound { .. }) => continue,
            Err(error) => return Err(refused(error)),
        };
        for value in found {
            let Ok(object) = Object::decode(primary, value.get(), None) else { continue };
            if !finalizer.is_on_object(&object) || except.contains(object.key.namespace()) {
                continue;
            }
            let object_ref = ObjectRef::new(kind.clone(), object.key.clone());
            match finalizers::remove_finalizer(client, finalizer, &object_ref, &object, false).await
            {
                Ok(_) => let_go += 1,
                Err(ApiError::NotFound { .. }) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }
    Ok(message(let_go))
}

/// Puts the host's finalizer on a Module, if it is not there.
///
/// # Errors
/// If it cannot be written, to be tried again.
pub async fn add_finalizer(host: &ApiClient, module: &Object) -> Result<(), Rejection> {
    if module.finalizers.iter().any(|one| **one == *module::FINALIZER) {
        return Ok(());
    }
    let mut finalizers: Vec<&str> = module.finalizers.iter().map(|one| &**one).collect();
    finalizers.push(module::FINALIZER);
    write(host, module, &finalizers).await
}

/// Takes the host's finalizer off a Module.
///
/// # Errors
/// If it cannot be written, to be tried again.
pub async fn remove_finalizer(host: &ApiClient, module: &Object) -> Result<(), Rejection> {
    let all = module.finalizers.iter().map(|one| &**one);
    let rest: Vec<&str> = all.filter(|one| *one != module::FINALIZER).collect();
    if rest.len() == module.finalizers.len() {
        return Ok(());
    }
    write(host, module, &rest).await
}

async fn write(host: &ApiClient, module: &Object, finalizers: &[&str]) -> Result<(), Rejection> {
    let metadata = json!({ "resourceVersion": module.resource_version, "finalizers": finalizers });
    let body = json!({ "metadata": metadata });
    match host.merge_patch(&MODULE, &module.key, &Manager::Host, &body).await {
        Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
        Err(error) => {
            let message = format!("the Module's finalizer cannot be written: {error}");
            Err(Rejection::new("WriteFailed", message, RetryPolicy::Later))
        }
    }
}

/// Of the kinds that only versions before declared, those of which the module has made nothing that
/// is still there.
pub fn leftovers_gone(active: &ActiveModule) -> Vec<Kind> {
    let snapshot = active.view.snapshot();
    let ours = |object: &Object| {
        object.entries.iter().any(|entry| match &entry.manager {
            Manager::Primary { module, .. } | Manager::Merge { module, .. } => {
                **module == **active.name()
            }
            _ => false,
        })
    };
    let is_gone = |kind: &Kind| match snapshot.states().get(kind) {
        // Nothing of it can be reached.
        Some(KindState::NotServed | KindState::Mismatched(_)) => true,
        Some(KindState::Synced) => snapshot
            .list(kind, None, &|_| true)
            .is_ok_and(|objects| !objects.iter().any(|object| ours(object))),
        _ => false,
    };
    active.dropped().iter().filter(|kind| is_gone(kind)).map(|kind| (**kind).clone()).collect()
}
