//! A module that leaves: its finalizer comes off its primaries, and then the host's off the Module.
//!
//! What the module made stays. Primaries that are being deleted are asked first what is left to do,
//! for a bounded time; the others are let go at once. All of it is done as the module's
//! ServiceAccount, like everything else of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::cache::Unreadable;
use innkeeper_cluster::{ApiError, Backoff, KindState, Session};
use innkeeper_contract::Kind;
use innkeeper_core::{Finalizer, Manager, Object, Target};
use innkeeper_modules::driver::Leaving as Left;
use innkeeper_modules::{Again, Verdict, module};
use serde_json::json;
use serde_json::value::RawValue;

use crate::finalize;
use crate::health::Runs;
use crate::running::{Leaving, Running};
use crate::shared::Shared;
use crate::sources::MODULE;

/// So long are primaries that are being deleted asked what is left to do.
pub const FINALIZING_TIME: Duration = Duration::from_mins(1);

/// So long may it take to let all go after that, before it is said what stands in the way.
pub const RELEASING_TIME: Duration = Duration::from_secs(30);

/// So often is tried to let go what a module does not see any more.
const NARROWING_TRIES: u32 = 20;

/// How often is looked who has not been let go.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Lets all primaries of a module go. Gives what was done, for people.
///
/// # Errors
/// What stands in the way, to be tried again.
pub async fn leave(
    shared: &Shared,
    session: &Session,
    module: &str,
    left: &Left,
) -> Result<String, Verdict> {
    let Some(finalizer) = &left.finalizer else {
        return Ok("It had no finalizer on its primaries; what it made stays.".to_owned());
    };
    let finalizer = Finalizer::new(module, Some(finalizer));
    match (shared.module(module), &left.primary) {
        (Some(running), _) if left.serves => by_rounds(shared, &running).await,
        (_, Some(primary)) => {
            by_hand(session, &finalizer, primary, &left.namespaces, &BTreeSet::new()).await
        }
        (_, None) => Ok("It never served.".to_owned()),
    }
}

/// By the rounds of a version that serves: those that are being deleted can be asked.
async fn by_rounds(shared: &Shared, running: &Arc<Running>) -> Result<String, Verdict> {
    let began = shared.env.instant();
    let released = || shared.metrics.written(running.name(), finalize::RELEASE);
    let before = released();
    let mut waits_until = Some(FINALIZING_TIME);
    shared.serve(&Arc::new(running.leaving(Leaving::Finalizing)));
    // A host that has just started has not read them yet.
    while matches!(unreadable(running), Some(Unreadable::NotSynced(_)))
        && shared.env.instant().duration_since(began) < RELEASING_TIME
    {
        shared.env.sleep(LOOK_EVERY).await;
    }
    loop {
        let held = held(running)?;
        if held.is_empty() && shared.queue().is_idle(running.name()) {
            return Ok(told(released() - before));
        }
        let elapsed = shared.env.instant().duration_since(began);
        match waits_until {
            Some(time) if elapsed > time => {
                waits_until = None;
                shared.serve(&Arc::new(running.leaving(Leaving::AtOnce)));
            }
            None if elapsed > FINALIZING_TIME + RELEASING_TIME => {
                return Err(hindered(shared, running, &held));
            }
            _ => {}
        }
        shared.env.sleep(LOOK_EVERY).await;
    }
}

fn unreadable(running: &Running) -> Option<Unreadable> {
    running.view.freeze().unreadable(&running.primary)
}

/// The primaries with a finalizer of the module.
fn held(running: &Running) -> Result<Vec<Arc<Object>>, Verdict> {
    if let Some(why) = unreadable(running).filter(|why| *why != Unreadable::NotServed) {
        let message = format!(
            "its finalizer cannot be taken off its primaries, since they cannot be read: {why}; {}",
            help()
        );
        return Err(Verdict::new("FinalizerNotRemoved", message, Again::Later));
    }
    let mut primaries = running.primaries();
    primaries.retain(|primary| running.finalizer.holds(primary));
    Ok(primaries)
}

fn told(let_go: u64) -> String {
    format!("Its finalizer is off {let_go} primaries; what it made stays.")
}

fn hindered(shared: &Shared, running: &Running, held: &[Arc<Object>]) -> Verdict {
    let why = match shared.health.runs(running.name()) {
        Runs::Fail((reason, message)) => format!("{reason}: {message}"),
        Runs::Succeed => "for a reason that the log may tell".to_owned(),
    };
    let first = held.first().map(|primary| primary.key.to_string()).unwrap_or_default();
    Verdict::new(
        "FinalizerNotRemoved",
        format!(
            "its finalizer is still on {} primaries, {first} for example ({why}); {}",
            held.len(),
            help()
        ),
        Again::Later,
    )
}

fn help() -> String {
    format!(
        "grant what is missing, or take the finalizer {} off the Module to leave the primaries as they are",
        module::FINALIZER
    )
}

/// A module has other namespaces than before, or primaries of another kind: those that it does not see
/// any more are let go.
pub async fn narrow(shared: &Shared, before: &Running, now: &Running) {
    let none = BTreeSet::new();
    let gone = &before.settings().namespaces;
    let seen = if has_another_kind(before, now) { &none } else { &now.settings().namespaces };
    let mut backoff = Backoff::new(&shared.env, LOOK_EVERY, RELEASING_TIME);
    for _ in 0..NARROWING_TRIES {
        let let_go = by_hand(&before.session, &before.finalizer, &before.primary, gone, seen);
        match let_go.await {
            Ok(_) => return,
            Err(verdict) => tracing::warn!(module = %now.name(), "{}", verdict.message),
        }
        shared.env.sleep(backoff.advance()).await;
    }
}

/// Whether a module sees fewer namespaces than before, or primaries of another kind, and may have left
/// its finalizer on the others.
pub fn is_narrowed(before: &Running, now: &Running) -> bool {
    let (before_in, now_in) = (&before.settings().namespaces, &now.settings().namespaces);
    let sees_fewer = before.primary.is_namespaced()
        && !now_in.is_empty()
        && (before_in.is_empty() || !before_in.is_subset(now_in));
    before.finalizer.name().is_some() && (sees_fewer || has_another_kind(before, now))
}

/// Whether a module's primaries are of another kind than before. Versions of one kind are one kind.
fn has_another_kind(before: &Running, now: &Running) -> bool {
    let (before, now) = (&before.primary, &now.primary);
    before.group() != now.group() || before.kind != now.kind
}

/// Without a version that serves: all are let go as they are, but for those in the namespaces of `except`.
async fn by_hand(
    session: &Session,
    finalizer: &Finalizer,
    primary: &Kind,
    namespaces: &BTreeSet<String>,
    except: &BTreeSet<String>,
) -> Result<String, Verdict> {
    let refused = |error: ApiError| {
        let message =
            format!("its finalizer cannot be taken off its primaries: {error}; {}", help());
        Verdict::new("FinalizerNotRemoved", message, Again::Later)
    };
    let everywhere = [String::new()].into();
    let namespaces = if namespaces.is_empty() { &everywhere } else { namespaces };
    let kind = Arc::new(primary.clone());
    let mut let_go = 0;
    for namespace in namespaces {
        // Not parsed: one object that a tenant made too deep would hide all others.
        let found: Vec<Box<RawValue>> = match session.list_as(primary, namespace).await {
            Ok(found) => found,
            Err(ApiError::NotServed { .. } | ApiError::NotFound { .. }) => continue,
            Err(error) => return Err(refused(error)),
        };
        for value in found {
            let Ok(object) = Object::decode(primary, value.get(), None) else { continue };
            if !finalizer.holds(&object) || except.contains(object.key.namespace()) {
                continue;
            }
            let target = Target::new(kind.clone(), object.key.clone());
            match finalize::take_off(session, finalizer, &target, &object, false).await {
                Ok(_) => let_go += 1,
                Err(ApiError::NotFound { .. }) => {}
                Err(error) => return Err(refused(error)),
            }
        }
    }
    Ok(told(let_go))
}

/// Puts the host's finalizer on a Module, if it is not there.
///
/// # Errors
/// If it cannot be written, to be tried again.
pub async fn hold(host: &Session, module: &Object) -> Result<(), Verdict> {
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
pub async fn let_go(host: &Session, module: &Object) -> Result<(), Verdict> {
    let all = module.finalizers.iter().map(|one| &**one);
    let rest: Vec<&str> = all.filter(|one| *one != module::FINALIZER).collect();
    if rest.len() == module.finalizers.len() {
        return Ok(());
    }
    write(host, module, &rest).await
}

async fn write(host: &Session, module: &Object, finalizers: &[&str]) -> Result<(), Verdict> {
    let metadata = json!({ "resourceVersion": module.resource_version, "finalizers": finalizers });
    let body = json!({ "metadata": metadata });
    match host.merge_patch(&MODULE, &module.key, &Manager::Host, &body).await {
        Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
        Err(error) => {
            let message = format!("the Module's finalizer cannot be written: {error}");
            Err(Verdict::new("WriteFailed", message, Again::Later))
        }
    }
}

/// Of the kinds that only versions before declared, those of which the module has made nothing that
/// is still there.
pub fn gone(running: &Running) -> Vec<Kind> {
    let frozen = running.view.freeze();
    let ours = |object: &Object| {
        object.entries.iter().any(|entry| match &entry.manager {
            Manager::Primary { module, .. } | Manager::Merge { module, .. } => {
                **module == **running.name()
            }
            _ => false,
        })
    };
    let is_gone = |kind: &Kind| match frozen.states().get(kind) {
        // Nothing of it can be reached.
        Some(KindState::NotServed | KindState::Mismatched(_)) => true,
        Some(KindState::Synced) => frozen
            .list(kind, None, &|_| true)
            .is_ok_and(|objects| !objects.iter().any(|object| ours(object))),
        _ => false,
    };
    running.dropped().iter().filter(|kind| is_gone(kind)).map(|kind| (**kind).clone()).collect()
}
