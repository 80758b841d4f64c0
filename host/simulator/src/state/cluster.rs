//! The whole state of a cluster, with its virtual clock and its randomness.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::apply::managed_object::ManagedObject;
use crate::state::backup::Backup;
use crate::state::catalog::Catalog;
use crate::state::compaction::Compaction;
use crate::state::controller_set::Controllers;
use crate::state::kubelet::KubeletState;
use crate::state::store::{Event, Store, text_of};
use crate::state::tokens::IssuedToken;
use crate::state::watch::Watcher;
use crate::state::webhook_handlers::WebhookHandlers;
use crate::state::work_queue::WorkQueue;
use crate::types::crd::conversion;
use crate::types::kind::Kind;
use crate::types::object_key::{Key, KindKey};

/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// The certificate of a cluster that no server serves.
const ROOT_CA: &str = include_str!("../../data/ca.crt");

/// Hooks that run within a write of a definition or of a custom resource. The controller of
/// definitions writes through the API, so the API calls it by these functions and does not import
/// it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DefinitionHooks {
    /// A definition was written.
    pub(crate) written: fn(&mut Cluster, &Value),
    /// A definition was removed.
    pub(crate) removed: fn(&mut Cluster, &Value),
    /// A custom resource was removed.
    pub(crate) custom_object_removed: fn(&mut Cluster) -> bool,
    /// Begins to delete a definition, unless it is a dry run, and returns it.
    pub(crate) begin_deletion: fn(&mut Cluster, &ManagedObject, bool) -> ManagedObject,
}

/// The whole state of a simulated cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) store: Store,
    pub(crate) catalog: Catalog,
    pub(crate) controllers: Controllers,
    pub(crate) work_queue: WorkQueue,
    pub(crate) kubelet: KubeletState,
    pub(crate) definition_hooks: DefinitionHooks,
    /// The certificates by which clients in the cluster check the API server, as PEM.
    pub(crate) root_ca: String,
    /// The issued tokens.
    pub(crate) tokens: BTreeMap<String, IssuedToken>,
    now: Timestamp,
    /// The same as objects have it.
    time: String,
    random: fastrand::Rng,
    watchers: Vec<Watcher>,
    compaction: Option<Compaction>,
    log: Option<Vec<String>>,
    /// Objects that are stored in another version than their kind: the next write counts, even if
    /// no reader sees a change.
    raw: BTreeSet<(KindKey, Key)>,
    /// The handlers that answer webhooks.
    pub(crate) handlers: WebhookHandlers,
    /// The warnings of the present request.
    pub(crate) warned: Vec<String>,
}

impl Cluster {
    /// A new cluster at a point in time. All that is random comes from the seed.
    pub(crate) fn new(
        seed: u64,
        now: Timestamp,
        controllers: Controllers,
        definition_hooks: DefinitionHooks,
    ) -> Self {
        let mut cluster = Self {
            store: Store::new(),
            catalog: Catalog::builtin(),
            controllers,
            work_queue: WorkQueue::default(),
            kubelet: KubeletState::default(),
            definition_hooks,
            root_ca: ROOT_CA.to_owned(),
            tokens: BTreeMap::new(),
            now,
            time: text_of_time(now),
            random: fastrand::Rng::with_seed(seed),
            watchers: Vec::new(),
            compaction: None,
            log: None,
            raw: BTreeSet::new(),
            handlers: WebhookHandlers::default(),
            warned: Vec::new(),
        };
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            cluster.bootstrap_namespace(name);
        }
        cluster
    }

    /// Creates a namespace that exists from the start.
    fn bootstrap_namespace(&mut self, name: &str) {
        let namespace = json!({
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {
                "name": name,
                "uid": self.uid(),
                "creationTimestamp": self.time(),
                "labels": { "kubernetes.io/metadata.name": name },
            },
            "spec": { "finalizers": ["kubernetes"] },
            "status": { "phase": "Active" },
        });
        let kind = (String::new(), "namespaces".to_owned());
        self.put(&kind, &(String::new(), name.to_owned()), ManagedObject::new(namespace));
    }

    /// The present time, as objects have it.
    pub(crate) fn time(&self) -> String {
        self.time.clone()
    }

    /// The present time.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// A new uid.
    pub(crate) fn uid(&mut self) -> String {
        let high = self.random.u64(..);
        let low = self.random.u64(..);
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 48) & 0x3fff,
            low & 0xffff_ffff_ffff
        )
    }

    /// The suffix of a generated name.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.random.usize(..LETTERS.len())])).collect()
    }

    /// Stores an object, notifies watches, and returns it as it is stored.
    pub(crate) fn put(
        &mut self,
        kind: &KindKey,
        key: &Key,
        object: ManagedObject,
    ) -> Arc<ManagedObject> {
        let (object, event) = self.store.put(kind, key, object);
        self.work_queue.stored(self.controllers, kind, key, &object);
        if !self.raw.is_empty() {
            self.raw.remove(&(kind.clone(), key.clone()));
        }
        self.tell(kind, &event);
        object
    }

    /// Whether an object is stored in another version than its kind.
    pub(crate) fn is_raw(&self, kind: &KindKey, key: &Key) -> bool {
        !self.raw.is_empty() && self.raw.contains(&(kind.clone(), key.clone()))
    }

    /// Remembers that after a write.
    pub(crate) fn remember_raw(&mut self, kind: &KindKey, key: &Key, raw: bool) {
        if raw {
            self.raw.insert((kind.clone(), key.clone()));
        }
    }

    /// Removes an object and notifies watches.
    pub(crate) fn remove(&mut self, kind: &KindKey, key: &Key, last: &mut ManagedObject) {
        if !self.raw.is_empty() {
            self.raw.remove(&(kind.clone(), key.clone()));
        }
        if let Some(event) = self.store.remove(kind, key, last) {
            self.work_queue.removed(self.controllers, kind, key, last);
            self.tell(kind, &event);
        }
    }

    fn tell(&mut self, kind: &KindKey, event: &Event) {
        if self.log.is_some() {
            let line = format!(
                "{} {:?} {}/{} {}/{} {}",
                event.version,
                event.change,
                kind.0,
                kind.1,
                event.key.0,
                event.key.1,
                String::from_utf8_lossy(&event.text)
            );
            self.note(line);
        }
        self.watchers.retain(|watcher| !watcher.is_gone());
        for watcher in self.watchers.iter().filter(|watcher| watcher.kind == *kind) {
            watcher.tell(event, self.now);
        }
    }

    /// Adds a watch.
    pub(crate) fn watch(&mut self, mut watcher: Watcher) {
        watcher.next_bookmark = later(self.now, BOOKMARK_PERIOD);
        self.watchers.push(watcher);
    }

    /// Ends all watches of a kind.
    pub(crate) fn end_watches(&mut self, kind: &KindKey) {
        for watcher in self.watchers.iter().filter(|watcher| watcher.kind == *kind) {
            watcher.feed.end();
        }
        self.watchers.retain(|watcher| watcher.kind != *kind);
    }

    /// What a backup of etcd has, and what the controllers know of it.
    pub(crate) fn backup(&self) -> Backup {
        Backup {
            objects: self.store.objects(),
            version: self.store.version(),
            raw: self.raw.clone(),
            work_queue: self.work_queue.clone(),
            steps: self.kubelet.next.clone(),
        }
    }

    /// Goes back to a backup, at this version: all watches end, as those of a server that restarts,
    /// and the controllers look at all objects again. Serves no kinds of definitions afterwards.
    pub(crate) fn restore(&mut self, backup: &Backup, version: u64) {
        for watcher in self.watchers.drain(..) {
            watcher.feed.end();
        }
        self.store = Store::restored(&backup.objects, version);
        self.catalog = Catalog::builtin();
        self.raw.clone_from(&backup.raw);
        self.work_queue.clone_from(&backup.work_queue);
        self.kubelet.next.clone_from(&backup.steps);
        self.compaction = self.compaction.take().map(|one| one.again(self.now, version));
        for (kind, all) in &backup.objects {
            for (key, text) in all {
                let object = ManagedObject::read(text);
                self.work_queue.stored(self.controllers, kind, key, &object);
            }
        }
        self.note(format!("{version} restored the backup of version {}", backup.version));
    }

    /// The number of open watches.
    pub(crate) fn watchers(&self) -> usize {
        self.watchers.iter().filter(|watcher| !watcher.is_gone()).count()
    }

    /// Starts the log.
    pub(crate) fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// Appends a line to the log, if one is kept.
    pub(crate) fn note(&mut self, line: String) {
        if let Some(log) = &mut self.log {
            log.push(line);
        }
    }

    /// Whether a log is kept.
    pub(crate) fn keeps_log(&self) -> bool {
        self.log.is_some()
    }

    /// The log so far.
    pub(crate) fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }

    /// Sets the virtual clock.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
        self.time = text_of_time(now);
    }

    /// Sends the bookmarks that are due, and ends watches whose time is over.
    pub(crate) fn serve_watches(&mut self) {
        let (now, version) = (self.now, self.store.version());
        for watcher in &mut self.watchers {
            if watcher.ends <= now {
                watcher.feed.end();
            } else if watcher.bookmarks && watcher.next_bookmark <= now {
                watcher.next_bookmark = later(now, BOOKMARK_PERIOD);
                watcher.bookmark(version, false, now);
            }
        }
        self.watchers.retain(|watcher| watcher.ends > now);
    }

    /// Lets old versions expire every interval from now on; never if it is not positive.
    pub(crate) fn compact_every(&mut self, interval: SignedDuration) {
        let version = self.store.version();
        self.compaction =
            interval.is_positive().then(|| Compaction::begin(interval, self.now, version));
    }

    /// Lets old versions expire if it is time to.
    pub(crate) fn compact_when_due(&mut self) {
        let (now, version) = (self.now, self.store.version());
        if let Some(due) = self.compaction.as_mut().and_then(|one| one.due(now, version)) {
            self.store.expire(due);
        }
    }

    /// An object as it is stored.
    pub(crate) fn object(&self, kind: &KindKey, key: &Key) -> Option<Arc<ManagedObject>> {
        self.store.object(kind, key)
    }

    /// The text of an object in the requested version.
    pub(crate) fn text(kind: &Kind, text: &Bytes) -> Bytes {
        if !conversion::has_versions(kind) {
            return text.clone();
        }
        let mut object: Value = serde_json::from_slice(text).unwrap_or_default();
        conversion::convert(kind, &mut object);
        text_of(&object)
    }
}

fn text_of_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
