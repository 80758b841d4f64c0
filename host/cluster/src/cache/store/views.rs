//! The views of the caches: they join, read and leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Kind;
use innkeeper_core::FieldMask;
use tokio::sync::Notify;

use super::CacheStore;
use crate::cache::cache_id::{CacheId, Content};
use crate::cache::cache_size::CacheSize;
use crate::cache::compressor::Compressor;
use crate::cache::kept_fields::KeptFields;
use crate::cache::kind_cache::{KindCache, Phase};
use crate::cache::kind_state::KindState;
use crate::cache::member::{Admission, Member, MemberView};
use crate::cache::objects::Objects;
use crate::cache::review::review;
use crate::cache::snapshot::{CacheSnapshot, SnapshotPart};
use crate::cache::watch::watch;
use crate::{ApiClient, Identity};

impl CacheStore {
    /// Adds a view of these fields of caches, and opens the missing ones; gives the view's number.
    pub(in crate::cache) fn join<'a>(
        self: &Arc<Self>,
        client: &ApiClient,
        module: &Arc<str>,
        caches: impl Iterator<Item = (&'a CacheId, Arc<FieldMask>)>,
    ) -> u64 {
        let mut inner = self.lock();
        inner.views += 1;
        let number = inner.views;
        for (id, fields) in caches {
            let cache =
                inner.caches.entry(id.clone()).or_insert_with(|| self.new_cache(id, number));
            let serial = cache.serial;
            let identity = client.identity().clone();
            // The first member needs no review: its own list shows whether it may read.
            if cache.holder.is_none() && cache.members.is_empty() {
                cache.holder = Some(identity.clone());
            }
            if !cache.has_waiting_view() {
                // A failure from before says nothing about the new view.
                cache.list_failure = None;
            }
            let new_member = || self.new_member(id, serial, client);
            let member = cache.members.entry(identity).or_insert_with(new_member);
            let mut view = MemberView {
                module: module.clone(),
                fields: fields.clone(),
                has_fields: cache.kept.has(&fields),
                is_listed_for: false,
                reported: KindState::Syncing,
            };
            let of_member = cache.phase.state_for(&member.admission);
            view.reported = view.state(of_member, cache.list_failure.as_deref());
            member.views.insert(number, view);
            cache.kept.join(&fields);
            cache.notify.notify_one();
        }
        number
    }

    fn new_cache(self: &Arc<Self>, id: &CacheId, serial: u64) -> KindCache {
        let notify = Arc::new(Notify::new());
        let task = watch(self.clone(), id.clone(), serial, notify.clone());
        KindCache {
            serial,
            objects: Objects::default(),
            compressor: Compressor::default(),
            kept: KeptFields::default(),
            list_failure: None,
            phase: Phase::Syncing,
            members: BTreeMap::new(),
            holder: None,
            must_list: false,
            listed_since_contradiction: false,
            notify,
            _task: self.env.spawn("cache", task),
        }
    }

    fn new_member(self: &Arc<Self>, id: &CacheId, serial: u64, client: &ApiClient) -> Member {
        let notify = Arc::new(Notify::new());
        let task = review(self.clone(), id.clone(), serial, client.clone(), notify.clone());
        Member {
            client: client.clone(),
            admission: Admission::Pending,
            proven: self.env.instant(),
            views: BTreeMap::new(),
            notify,
            _review: self.env.spawn("access review", task),
        }
    }

    /// Removes a view, and closes the caches that no view uses any more.
    pub(in crate::cache) fn leave<'a>(
        &self,
        number: u64,
        identity: &Identity,
        ids: impl Iterator<Item = &'a CacheId>,
    ) {
        // Dropped after the lock: to drop a task may drop what takes the lock.
        let mut left_members = Vec::new();
        let mut closed_caches = Vec::new();
        let mut inner = self.lock();
        for id in ids {
            let Some(cache) = inner.caches.get_mut(id) else { continue };
            let Some(member) = cache.members.get_mut(identity) else { continue };
            member.views.remove(&number);
            if !member.views.is_empty() {
                continue;
            }
            left_members.extend(cache.members.remove(identity));
            if cache.members.is_empty() {
                closed_caches.extend(inner.caches.remove(id));
            } else if cache.holder.as_ref() == Some(identity) {
                cache.holder = None;
                cache.notify.notify_one();
            }
        }
        drop(inner);
    }

    /// A snapshot of these caches for a view, all of one moment.
    pub(in crate::cache) fn snapshot(
        &self,
        number: u64,
        identity: &Identity,
        ids: &BTreeMap<Arc<Kind>, Vec<CacheId>>,
    ) -> CacheSnapshot {
        let inner = self.lock();
        let part = |id: &CacheId| {
            let cache = inner.caches.get(id);
            let member = cache.and_then(|cache| cache.members.get(identity));
            let view = member.and_then(|member| Some((member, member.views.get(&number)?)));
            let (state, live) = match (cache, view) {
                (Some(cache), Some((member, view))) => {
                    let state = view.state(
                        cache.phase.state_for(&member.admission),
                        cache.list_failure.as_deref(),
                    );
                    let live = (state == KindState::Synced).then(|| cache.objects.live().clone());
                    (state, live)
                }
                _ => (KindState::Syncing, None),
            };
            SnapshotPart { namespace: id.namespace.clone(), state, live }
        };
        let kinds =
            ids.iter().map(|(kind, ids)| (kind.clone(), ids.iter().map(part).collect())).collect();
        CacheSnapshot::new(kinds)
    }

    /// Resolves when the state of a kind in any view changes after this call.
    pub(in crate::cache) fn state_changed(&self) -> impl Future<Output = ()> + '_ {
        let mut notified = Box::pin(self.states.notified());
        notified.as_mut().enable();
        notified
    }

    /// The size of each cache, ordered by kind and namespace.
    pub(in crate::cache) fn sizes(&self) -> Vec<CacheSize> {
        self.lock()
            .caches
            .iter()
            .map(|(id, cache)| CacheSize {
                kind: id.kind.clone(),
                namespace: id.namespace.clone(),
                metadata_only: id.content == Content::Metadata,
                objects: cache.objects.len(),
                bytes: cache.objects.bytes() + cache.compressor.dictionary_bytes(),
            })
            .collect()
    }
}
