//! The teardown of a module: removes its finalizer from its primaries, and then the host's
//! finalizer from the Module.
//!
//! The module's objects stay. Primaries that are being deleted are finalized by the guest first,
//! for a bounded time; the host removes the finalizer from the others at once. It makes these
//! requests as the module's ServiceAccount, like all requests for the module.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{ApiClient, ApiError, Backoff, KindState};
use innkeeper_contract::Kind;
use innkeeper_core::{Finalizer, Manager, Object, ObjectRef, counted, counted_len};
use innkeeper_modules::driver::Teardown as Left;
use innkeeper_modules::{Rejection, RetryPolicy, module};
use serde_json::json;
use serde_json::value::RawValue;

use crate::modules::event::MODULE;
use crate::modules::health::{Failing, RunHealth};
use crate::modules::open_revision::{OpenRevision, TeardownPhase};
use crate::reconcile::finalizers;
use crate::shared::Shared;

/// How long guests may finalize primaries that are being deleted.
pub const FINALIZING_TIME: Duration = Duration::from_mins(1);

/// How long the removal of the finalizers may take after that, before the Module reports the cause.
pub const REMOVAL_TIME: Duration = Duration::from_secs(30);

/// How often the host tries to remove finalizers from primaries that a module no longer selects.
const RELEASE_TRIES: u32 = 20;

/// How often the host checks which primaries still have the finalizer.
const POLL_PERIOD: Duration = Duration::from_millis(200);

/// Removes a module's finalizer from all its primaries. Gives a message about the result.
///
/// # Errors
/// What prevents the removal; to be retried.
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

/// Removes the finalizer by reconciles of the active revision: its guest finalizes the primaries
/// that are being deleted.
async fn finalize_primaries(
    shared: &Shared,
    active: &Arc<OpenRevision>,
) -> Result<String, Rejection> {
    let began = shared.env.instant();
    let released = || shared.metrics.written(active.name(), finalizers::REMOVE_FINALIZER);
    let before = released();
    let mut waits_until = Some(FINALIZING_TIME);
    shared.activate(&Arc::new(active.in_teardown(TeardownPhase::Finalizing)));
    // A host that has just started has not read the primaries yet.
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
                shared.activate(&Arc::new(active.in_teardown(TeardownPhase::Immediate)));
            }
            None if elapsed > FINALIZING_TIME + REMOVAL_TIME => {
                return Err(blocked(shared, active, &held));
            }
            _ => {}
        }
        shared.env.sleep(POLL_PERIOD).await;
    }
}

fn unreadable(active: &OpenRevision) -> Option<CacheReadError> {
    active.view.snapshot().unreadable(&active.primary_kind)
}

/// The primaries with a finalizer of the module.
fn with_finalizer(active: &OpenRevision) -> Result<Vec<Arc<Object>>, Rejection> {
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
    let primaries = counted(let_go, "primary", "primaries");
    format!("Its finalizer is off {primaries}; what it made stays.")
}

fn blocked(shared: &Shared, active: &OpenRevision, held: &[Arc<Object>]) -> Rejection {
    let why = match shared.health.runs(active.name()) {
        RunHealth::Fail { failing: Failing { reason, message, .. }, .. } => {
            format!("{reason}: {message}")
        }
        RunHealth::Succeed(_) => "for a reason that the log may tell".to_owned(),
    };
    let first = held.first().map(|primary| primary.key.to_string()).unwrap_or_default();
    Rejection::new(
        "FinalizerNotRemoved",
        format!(
            "its finalizer is still on {}, {first} for example ({why}); {}",
            counted_len(held.len(), "primary", "primaries"),
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

/// Removes the finalizer from the primaries that a module no longer selects, since its namespaces
/// or the kind of its primaries changed, or since it has no primaries any more (`now` is `None`).
pub async fn release_unselected(
    shared: &Shared,
    before: &OpenRevision,
    now: Option<&OpenRevision>,
) {
    let none = BTreeSet::new();
    let gone = &before.spec().namespaces;
    let same_kind = now.filter(|now| !has_another_kind(before, now));
    let seen = same_kind.map_or(&none, |now| &now.spec().namespaces);
    let mut backoff = Backoff::new(&shared.env, POLL_PERIOD, REMOVAL_TIME);
    for _ in 0..RELEASE_TRIES {
        let let_go =
            remove_directly(&before.client, &before.finalizer, &before.primary_kind, gone, seen);
        match let_go.await {
            Ok(_) => return,
            Err(rejection) => tracing::warn!(module = %before.name(), "{}", rejection.message),
        }
        shared.env.sleep(backoff.advance()).await;
    }
}

/// Whether a module has fewer namespaces than before, or primaries of another kind or none (`now`
/// is `None`), so that its finalizer may be left on primaries that it no longer selects.
pub fn is_narrowed(before: &OpenRevision, now: Option<&OpenRevision>) -> bool {
    if before.finalizer.name().is_none() {
        return false;
    }
    let Some(now) = now else { return true };
    let (before_in, now_in) = (&before.spec().namespaces, &now.spec().namespaces);
    let sees_fewer = before.primary_kind.is_namespaced()
        && !now_in.is_empty()
        && (before_in.is_empty() || !before_in.is_subset(now_in));
    sees_fewer || has_another_kind(before, now)
}

/// Whether a module's primaries are of another kind than before. A version is no kind of its own.
fn has_another_kind(before: &OpenRevision, now: &OpenRevision) -> bool {
    let (before, now) = (&before.primary_kind, &now.primary_kind);
    before.group() != now.group() || before.kind != now.kind
}

/// Removes the finalizer without an active revision, and so without a run of the guest. Leaves the
/// primaries in the namespaces `except`.
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
        // Each object is parsed by itself: one that is nested too deep does not hide the others.
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

/// Adds the host's finalizer to a Module that does not have it.
///
/// # Errors
/// If the API server refuses the write; to be retried.
pub async fn add_finalizer(host: &ApiClient, module: &Object) -> Result<(), Rejection> {
    if module.finalizers.iter().any(|one| **one == *module::FINALIZER) {
        return Ok(());
    }
    let mut finalizers: Vec<&str> = module.finalizers.iter().map(|one| &**one).collect();
    finalizers.push(module::FINALIZER);
    write(host, module, &finalizers).await
}

/// Removes the host's finalizer from a Module.
///
/// # Errors
/// If the API server refuses the write; to be retried.
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

/// The kinds that only previous revisions declared, and of which no object of the module is left.
pub fn leftovers_gone(active: &OpenRevision) -> Vec<Kind> {
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
        // The host can reach no object of it.
        Some(KindState::NotServed | KindState::Mismatched(_)) => true,
        Some(KindState::Synced) => snapshot
            .list(kind, None, &|_| true)
            .is_ok_and(|objects| !objects.iter().any(|object| ours(object))),
        _ => false,
    };
    active
        .retired_kinds()
        .iter()
        .filter(|kind| is_gone(kind))
        .map(|kind| (**kind).clone())
        .collect()
}
