//! Where modules come from: the API server, or a folder on a developer's machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_cluster::Caches;
use innkeeper_contract::Condition;
use innkeeper_core::{Object, ObjectKey, status};
use innkeeper_modules::{Digest, Report, SourceRef, chunks};
use tokio::sync::mpsc;

use super::account_access::AccountAccess;
use super::cluster_source::{ClusterSource, SourceRead, WriteOutcome};
use super::directory_source::DirectorySource;
use super::event::SupervisorEvent;

/// Where modules come from.
pub enum ModuleSource {
    /// The API server.
    Cluster(Box<ClusterSource>),
    /// A folder. Its Modules have no live object and no status.
    Directory(Box<DirectorySource>),
}

impl ModuleSource {
    /// Starts to watch.
    pub fn begin(&mut self, caches: &Caches, outbox: &mpsc::UnboundedSender<SupervisorEvent>) {
        match self {
            Self::Cluster(source) => source.begin(caches),
            Self::Directory(source) => source.begin(outbox),
        }
    }

    /// Sends all Modules again. Returns whether they could be listed.
    pub fn relist(&mut self, outbox: &mpsc::UnboundedSender<SupervisorEvent>) -> bool {
        match self {
            Self::Cluster(source) => source.relist(outbox),
            Self::Directory(source) => {
                source.relist(outbox);
                true
            }
        }
    }

    /// Replaces the source of a module's component.
    pub fn set_source(&mut self, module: &str, source: SourceRef) {
        self.sources_mut().insert(module.to_owned(), source);
    }

    /// Forgets a module that was deleted.
    pub fn forget(&mut self, module: &str) {
        self.sources_mut().remove(module);
    }

    /// The modules with this source, or with a source of which this is a further chunk.
    pub fn modules_of(&self, source: &SourceRef) -> Vec<String> {
        let same = |one: &SourceRef| match (one, source) {
            (SourceRef::ConfigMap { name, .. }, SourceRef::ConfigMap { name: other, .. }) => {
                name == other || chunks::first_of(other) == Some(name)
            }
            (one, other) => one == other,
        };
        self.sources()
            .iter()
            .filter(|(_, one)| same(one))
            .map(|(module, _)| module.clone())
            .collect()
    }

    /// Starts to read a module's source; `None` if it has none, or is a file: the folder sends
    /// those by itself.
    pub fn read(&self, module: &str) -> Option<SourceRead> {
        self.cluster()?.read(module)
    }

    /// The name of the ConfigMap that is a module's source.
    pub fn source_name(&self, module: &str) -> Option<String> {
        self.cluster()?.source_name(module)
    }

    /// Whether a revision's snapshot is complete; `None` if that is not known.
    pub fn has_snapshot(&self, module: &str, digest: Digest) -> Option<bool> {
        self.cluster()?.has_snapshot(module, digest)
    }

    /// The snapshots of a module's components: names and uids.
    pub fn snapshots(&self, module: &str) -> BTreeMap<ObjectKey, Box<str>> {
        self.cluster().map(|source| source.snapshots(module)).unwrap_or_default()
    }

    /// The live Module; `None` in a folder.
    pub fn module_object(&self, name: &str) -> Option<Arc<Object>> {
        self.cluster()?.module_object(name)
    }

    /// All live Modules, in order; none in a folder.
    pub fn module_objects(&self) -> Vec<Arc<Object>> {
        self.cluster().map(ClusterSource::module_objects).unwrap_or_default()
    }

    /// The conditions of a live Module; none in a folder.
    pub fn live_conditions(&self, name: &str) -> Vec<Condition> {
        let Some(object) = self.module_object(name) else { return Vec::new() };
        status::live_conditions(&object)
    }

    /// Whether a ServiceAccount allows a module to act as it. A Module of a folder acts as the
    /// account that it names: the user of the host could do the same without it.
    pub fn account_access(&self, module: &str, account: &str) -> AccountAccess {
        match self {
            Self::Cluster(source) => source.account_access(module, account),
            Self::Directory(_) => AccountAccess::Allowed,
        }
    }

    /// Whether decisions are written to Modules: those of a folder have no status.
    pub fn keeps_decisions(&self) -> bool {
        self.cluster().is_some()
    }

    /// Applies a Module's status, if the live status differs.
    pub async fn write_status(&self, name: &str, report: &Report, caches: &Caches) -> WriteOutcome {
        match self {
            Self::Cluster(source) => source.write_status(name, report, caches).await,
            Self::Directory(_) => WriteOutcome::NoObject,
        }
    }

    fn cluster(&self) -> Option<&ClusterSource> {
        match self {
            Self::Cluster(source) => Some(source),
            Self::Directory(_) => None,
        }
    }

    fn sources(&self) -> &BTreeMap<String, SourceRef> {
        match self {
            Self::Cluster(source) => &source.sources,
            Self::Directory(source) => &source.sources,
        }
    }

    fn sources_mut(&mut self) -> &mut BTreeMap<String, SourceRef> {
        match self {
            Self::Cluster(source) => &mut source.sources,
            Self::Directory(source) => &mut source.sources,
        }
    }
}
