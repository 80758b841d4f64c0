//! One cache: its objects, who may read them, and whose session fills it.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::change::{Change, KindState, Notice, Source, StateChange};
use super::objects::{Objects, Transition};
use crate::{ApiClient, Denial, Identity, Mismatch, Task};

/// Which cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CacheId {
    pub(super) kind: Arc<Kind>,
    /// `None` for all namespaces, and for cluster-scoped kinds.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) content: Content,
}

/// What of its objects a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Content {
    Whole,
    /// `metadata` only, as the server cuts it.
    Metadata,
}

impl CacheId {
    pub(super) fn covers(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}

impl std::fmt::Display for CacheId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            None => write!(f, "{}", self.kind),
            Some(namespace) => write!(f, "{} in namespace {namespace}", self.kind),
        }
    }
}

/// How far a cache is, whoever looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Syncing,
    Synced,
    NotServed,
    Mismatched(Mismatch),
    Failing(String),
}

/// Whether an identity may read a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Pending,
    Admitted,
    /// It was admitted, and for too long no review was answered: why.
    Unproven(String),
    Denied(Denial),
}

/// An identity that views a cache.
pub(super) struct Member {
    pub(super) client: ApiClient,
    pub(super) admission: Admission,
    /// When the server last showed that it may read: by a review, or by a whole list.
    pub(super) proven: Instant,
    /// Its views by number, and what each was told last.
    pub(super) views: BTreeMap<u64, (Arc<str>, KindState)>,
    /// Its review starts over: what it waits for has changed.
    pub(super) notify: Arc<Notify>,
    pub(super) _review: Task<()>,
}

pub(super) struct Cache {
    /// Tells this cache from an earlier one of the same id.
    pub(super) serial: u64,
    pub(super) objects: Objects,
    pub(super) phase: Phase,
    pub(super) members: BTreeMap<Identity, Member>,
    /// Whose session fills it.
    pub(super) holder: Option<Identity>,
    /// Its task looks around: the holder may have gone, the kind may be served.
    pub(super) notify: Arc<Notify>,
    pub(super) _task: Task<()>,
}

impl Cache {
    /// Takes something in. Before the first list is done, nothing is told.
    pub(super) fn apply(
        &mut self,
        id: &CacheId,
        notices: &mut Vec<Notice>,
        act: impl FnOnce(&mut Objects) -> Option<Transition>,
    ) {
        let step = act(&mut self.objects);
        if self.objects.is_complete() {
            notices.extend(step.map(|step| changed(id, step, Source::Watch)));
        }
    }
}

/// How long a member's review waits, and whether it then has to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    /// It fills the cache: its own list tells first, then reviews do.
    Holder,
    Pending,
    Admitted,
    Denied,
}

/// An event of a watch.
pub(super) enum WatchEvent {
    Applied(Arc<Object>),
    Deleted(Arc<Object>),
}

impl WatchEvent {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::Applied(object) | Self::Deleted(object) => &object.key,
        }
    }

    pub(super) fn enter(self, objects: &mut Objects, now: Instant) -> Option<Transition> {
        match self {
            Self::Applied(object) => objects.apply_event(object),
            Self::Deleted(object) => objects.apply_deleted_event(&object, now),
        }
    }
}

pub(super) fn first(cache: &Cache, take: impl Fn(&Member) -> bool) -> Option<&Identity> {
    cache.members.iter().find(|(_, member)| take(member)).map(|(identity, _)| identity)
}

pub(super) fn state_of(phase: &Phase, admission: &Admission) -> KindState {
    match (phase, admission) {
        (Phase::NotServed, _) => KindState::NotServed,
        (Phase::Mismatched(mismatch), _) => KindState::Mismatched(mismatch.clone()),
        (_, Admission::Denied(denial)) => KindState::Forbidden(denial.clone()),
        (Phase::Failing(message), _) | (_, Admission::Unproven(message)) => {
            KindState::Failing(message.clone())
        }
        (Phase::Synced, Admission::Admitted) => KindState::Synced,
        (Phase::Synced | Phase::Syncing, _) => KindState::Syncing,
    }
}

pub(super) fn changed(id: &CacheId, step: Transition, source: Source) -> Notice {
    let key = step.after.as_ref().or(step.before.as_ref()).map(|object| object.key.clone());
    Notice::Changed(Change {
        kind: id.kind.clone(),
        namespace: id.namespace.clone(),
        key: key.unwrap_or_default(),
        before: step.before,
        after: step.after,
        source,
    })
}

/// Tells each view of a cache whose state is another than it was told last.
pub(super) fn told(id: &CacheId, cache: &mut Cache, notices: &mut Vec<Notice>) {
    for member in cache.members.values_mut() {
        let state = state_of(&cache.phase, &member.admission);
        for (module, last) in member.views.values_mut() {
            if *last != state {
                last.clone_from(&state);
                notices.push(Notice::State(StateChange {
                    module: module.clone(),
                    kind: id.kind.clone(),
                    namespace: id.namespace.clone(),
                    state: state.clone(),
                }));
            }
        }
    }
}
