//! One cache: [`KindCache`].

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_core::FieldMask;
use tokio::sync::Notify;

use super::cache_id::CacheId;
use super::change::Source;
use super::compressor::Compressor;
use super::kept_fields::{self, KeptFields};
use super::kind_state::{KindState, StateChange};
use super::member::{Admission, Member};
use super::notices::Notice;
use super::objects::{Objects, Transition};
use crate::{Identity, Mismatch, Task};

/// One cache: its objects, the identities that view it, and the one whose client fills it.
pub(super) struct KindCache {
    /// Distinguishes this cache from an earlier one with the same id.
    pub(super) serial: u64,
    pub(super) objects: Objects,
    /// Makes objects small before they enter.
    pub(super) compressor: Compressor,
    /// The fields that the objects have.
    pub(super) kept: KeptFields,
    /// Why the last list failed while a view waited for fields; `None` if one has ended since.
    pub(super) list_failure: Option<String>,
    pub(super) phase: Phase,
    pub(super) members: BTreeMap<Identity, Member>,
    /// The member whose client fills the cache.
    pub(super) holder: Option<Identity>,
    /// The cache has to list again, whatever the watch says.
    pub(super) must_list: bool,
    /// A list has ended since an answer first contradicted the cache.
    pub(super) listed_since_contradiction: bool,
    /// Wakes the cache's task: the holder may have left, the server may serve the kind now, or the
    /// cache has to list again.
    pub(super) notify: Arc<Notify>,
    pub(super) _task: Task<()>,
}

/// The progress of a cache, independent of its members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Syncing,
    Synced,
    NotServed,
    Mismatched(Mismatch),
    Failing(String),
}

impl Phase {
    /// The state of the kind for a member.
    pub(super) fn state_for(&self, admission: &Admission) -> KindState {
        match (self, admission) {
            (Self::NotServed, _) => KindState::NotServed,
            (Self::Mismatched(mismatch), _) => KindState::Mismatched(mismatch.clone()),
            (_, Admission::Denied(denial)) => KindState::Forbidden(denial.clone()),
            (Self::Failing(message), _) | (_, Admission::Unproven(message)) => {
                KindState::Failing(message.clone())
            }
            (Self::Synced, Admission::Admitted) => KindState::Synced,
            (Self::Synced | Self::Syncing, _) => KindState::Syncing,
        }
    }
}

impl KindCache {
    /// Changes the objects, and queues a notice of the change.
    pub(super) fn apply(
        &mut self,
        id: &CacheId,
        source: Source,
        notices: &mut Vec<Notice>,
        change: impl FnOnce(&mut Objects) -> Option<Transition>,
    ) {
        let transition = change(&mut self.objects);
        // The listener gets no notice of the objects of the first list.
        if self.objects.is_complete() {
            notices.extend(transition.map(|one| Notice::changed(id, one, source)));
        }
    }

    /// Whether a view waits for a list of fields that the objects lack, and none of the watch runs.
    pub(super) fn lacks_fields(&self) -> bool {
        self.objects.is_complete() && !self.objects.is_relisting() && self.has_waiting_view()
    }

    /// Whether a view waits for fields.
    pub(super) fn has_waiting_view(&self) -> bool {
        let mut views = self.members.values().flat_map(|member| member.views.values());
        views.any(|view| !view.has_fields)
    }

    /// Ends a list of fields before it has shown all objects. Nothing if it has ended.
    pub(super) fn stop_list_of_fields(&mut self) {
        self.kept.stop_list();
        for view in self.members.values_mut().flat_map(|member| member.views.values_mut()) {
            view.is_listed_for = false;
        }
    }

    /// Lets objects enter without what no view needs any more.
    pub(super) fn narrow_fields(&mut self) {
        self.kept.narrow(&self.needed_fields());
    }

    /// Takes the beginning of a list of the fields that the views need.
    pub(super) fn begin_list_of_fields(&mut self) {
        self.kept.begin_list(&self.needed_fields());
        for view in self.members.values_mut().flat_map(|member| member.views.values_mut()) {
            view.is_listed_for = true;
        }
    }

    /// Takes the end of a list: a view whose fields it has shown can read them.
    pub(super) fn end_list_of_fields(&mut self) {
        self.kept.end_list();
        self.list_failure = None;
        for view in self.members.values_mut().flat_map(|member| member.views.values_mut()) {
            view.has_fields |= view.is_listed_for || self.kept.has(&view.fields);
            view.is_listed_for = false;
        }
    }

    /// The fields that the views need together.
    fn needed_fields(&self) -> Arc<FieldMask> {
        let views = self.members.values().flat_map(|member| member.views.values());
        kept_fields::united(views.map(|view| &view.fields))
    }

    /// The first member by identity whose admission fits.
    pub(super) fn first_member(&self, fits: impl Fn(&Admission) -> bool) -> Option<&Identity> {
        let mut members = self.members.iter();
        members.find(|(_, member)| fits(&member.admission)).map(|(identity, _)| identity)
    }

    /// Queues a notice for each view in which the state of the kind has changed.
    pub(super) fn notice_states(&mut self, id: &CacheId, notices: &mut Vec<Notice>) {
        for member in self.members.values_mut() {
            let of_member = self.phase.state_for(&member.admission);
            for view in member.views.values_mut() {
                let state = view.state(of_member.clone(), self.list_failure.as_deref());
                if view.reported != state {
                    view.reported.clone_from(&state);
                    notices.push(Notice::State(StateChange {
                        module: view.module.clone(),
                        kind: id.kind.clone(),
                        namespace: id.namespace.clone(),
                        state: state.clone(),
                    }));
                }
            }
        }
    }
}
