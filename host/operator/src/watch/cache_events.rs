//! Which change of a cache wakes which reconcile request.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use innkeeper_cluster::cache::StateChange;
use innkeeper_cluster::{Change as CacheChange, KindState, Listener, Source, crd};
use tokio::sync::mpsc;

use crate::modules::event::{self, CONFIG_MAP, HOST_MODULE, SupervisorEvent};
use crate::modules::open_revision::OpenRevision;
use crate::queue::ReconcileRequest;
use crate::queue::trigger::Trigger;
use crate::shared::Shared;
use crate::watch::dependency_index::Change;
use crate::watch::read_scope::UnreadByModule;

/// Listens to the caches: wakes the requests that a change concerns, and sends the supervisor what
/// concerns Modules.
pub struct CacheEventHandler {
    /// The queue, the index of reads, and the active revisions. These have views of the caches, and
    /// the caches refer to their listener: a strong reference would free none of them.
    pub shared: Weak<Shared>,
    /// The supervisor of modules.
    pub supervisor: mpsc::UnboundedSender<SupervisorEvent>,
}

impl CacheEventHandler {
    fn notify_supervisor(&self, event: SupervisorEvent) {
        // The supervisor is gone only when the host stops.
        let _ = self.supervisor.send(event);
    }
}

/// The requests that a change concerns, without the one whose own write it is.
fn concerned(shared: &Shared, of_caches: &CacheChange) -> BTreeSet<ReconcileRequest> {
    if of_caches.source == Source::List {
        for object in [&of_caches.before, &of_caches.after].into_iter().flatten() {
            shared.writes().forget_object(&object.uid);
        }
    }
    let writer = match (&of_caches.after, &of_caches.before) {
        (Some(object), _) => shared.writes().writer(object).cloned(),
        (None, Some(object)) => shared.writes().deleter(&object.uid).cloned(),
        (None, None) => None,
    };
    let change = Arc::new(Change {
        kind: of_caches.kind.clone(),
        before: of_caches.before.clone(),
        after: of_caches.after.clone(),
        writer: writer.clone(),
    });
    let modules = shared.modules();
    let unread = unread_by_module(shared, &modules, &change);
    let mut index = shared.index();
    let mut concerned = index.changed(&change, &unread);
    let of_primaries = modules.iter().filter(|active| active.primary_kind == change.kind);
    let requests = of_primaries.map(|active| ReconcileRequest {
        module: active.name().clone(),
        key: of_caches.key.clone(),
    });
    concerned.extend(requests.filter(|request| !index.stays_asleep(request, &unread)));
    drop(index);
    if let Some(writer) = &writer {
        concerned.remove(writer);
    }
    concerned
}

/// The modules whose requests may sleep through a change. Compares without the lock of the index.
fn unread_by_module(
    shared: &Shared,
    modules: &[Arc<OpenRevision>],
    change: &Change,
) -> UnreadByModule {
    let Some(both) = change.both() else { return UnreadByModule::default() };
    let index = shared.index();
    let reported = modules.iter().map(|active| (active, index.reported_fields(active.name())));
    let modules = reported.collect();
    drop(index);
    UnreadByModule::compare(modules, &change.kind, both)
}

impl Listener for CacheEventHandler {
    fn changed(&self, change: &CacheChange) {
        // The caches may outlive the operator, which nothing needs to wake then.
        let Some(shared) = self.shared.upgrade() else { return };
        if let Some(event) = event::classify(change) {
            self.notify_supervisor(event);
        }
        if change.after.is_none() {
            for active in shared.modules() {
                if active.retired_kinds().contains(&change.kind) {
                    let module = active.name().to_string();
                    self.notify_supervisor(SupervisorEvent::LeftoversChanged(module));
                }
            }
        }
        shared.wake_all(&concerned(&shared, change), &Trigger::change(change));
    }

    fn state_changed(&self, change: &StateChange) {
        let Some(shared) = self.shared.upgrade() else { return };
        let event = if &*change.module == HOST_MODULE {
            tracing::info!(kind = %change.kind, state = ?change.state, "watch state changed");
            if *change.kind == *CONFIG_MAP && change.state == KindState::Synced {
                // Changes during the time without a watch arrive as one list, not as events.
                self.notify_supervisor(SupervisorEvent::ComponentSourcesRelisted);
            }
            if *change.kind == crd::kind() {
                SupervisorEvent::CrdWatchStateChanged
            } else {
                SupervisorEvent::RelistModules
            }
        } else {
            SupervisorEvent::ReadabilityChanged(change.module.to_string())
        };
        self.notify_supervisor(event);
        if let Some(active) = shared.module(&change.module) {
            shared.wake_primaries(&active, &Trigger::ReadabilityChanged(change.kind.clone()));
        }
    }
}
