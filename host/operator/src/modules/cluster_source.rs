//! Modules, their sources and their accounts in the API server.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiError, CacheLookup, Caches, Cluster, KindState, Namespaces, View};
use innkeeper_contract::Kind;
use innkeeper_core::{Labels, LastRun, Manager, Object, ObjectKey, status};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::{self, NAMESPACE};
use innkeeper_modules::{Component, Digest, Report, SourceError, SourceRef};
use serde_json::json;
use tokio::sync::mpsc;

use super::account_access::AccountAccess;
use super::component_snapshots::SNAPSHOT_LABEL;
use super::config_maps::{chunks_of, read_config_map};
use super::event::{CONFIG_MAP, HOST_MODULE, MODULE, SERVICE_ACCOUNT, SupervisorEvent, input_of};

/// The result of a write of a Module's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The live Module has the status.
    Applied,
    /// No such Module exists.
    NoObject,
    /// The Module has changed: the watch delivers it, and the status is written then.
    Conflict,
    /// The API server refused the write, and why; only another try helps.
    Failed(String),
}

/// A read of a source under way.
pub type SourceRead = Pin<Box<dyn Future<Output = Result<Component, SourceError>> + Send>>;

/// Modules of the API server.
pub struct ClusterSource {
    cluster: Cluster,
    modules: Option<View>,
    config_maps: Option<View>,
    /// The accounts of the modules; their annotation names the modules that may act as them.
    accounts: Option<View>,
    pub(super) sources: BTreeMap<String, SourceRef>,
}

impl ClusterSource {
    /// Modules of this API server.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, modules: None, config_maps: None, accounts: None, sources: BTreeMap::new() }
    }

    /// Opens the host's views of Modules, ConfigMaps and ServiceAccounts.
    pub(super) fn begin(&mut self, caches: &Caches) {
        let host = self.cluster.host();
        let namespace = Namespaces::Only([NAMESPACE.to_owned()].into());
        let of = std::slice::from_ref::<Kind>;
        self.modules = Some(caches.open(&host, HOST_MODULE, of(&MODULE), &Namespaces::All));
        self.config_maps =
            Some(caches.open_metadata(&host, HOST_MODULE, of(&CONFIG_MAP), &namespace));
        self.accounts =
            Some(caches.open_metadata(&host, HOST_MODULE, of(&SERVICE_ACCOUNT), &namespace));
    }

    /// Sends the names of all Modules, and each Module. Returns whether they could be listed.
    pub(super) fn relist(&self, outbox: &mpsc::UnboundedSender<SupervisorEvent>) -> bool {
        let accounts = self.accounts.as_ref().map(View::states).unwrap_or_default();
        // No Module is read before its account can be asked whether it allows the module.
        if accounts.values().all(|state| *state == KindState::Syncing) {
            return false;
        }
        let Some(view) = &self.modules else { return false };
        let Ok(objects) = view.snapshot().list(&MODULE, None, &|_| true) else { return false };
        let names = objects.iter().map(|object| object.key.name().to_string()).collect();
        let _ = outbox.send(SupervisorEvent::ModulesListed(names));
        for object in objects {
            let _ = outbox.send(input_of(&object));
        }
        true
    }

    /// Whether a ServiceAccount allows a module to act as it.
    pub(super) fn account_access(&self, module: &str, account: &str) -> AccountAccess {
        match &self.accounts {
            Some(accounts) => AccountAccess::of(accounts, module, account),
            None => AccountAccess::Unknown,
        }
    }

    /// Starts to read a module's source; `None` if it has none.
    pub(super) fn read(&self, module: &str) -> Option<SourceRead> {
        let SourceRef::ConfigMap { name, key } = self.sources.get(module)?.clone() else {
            return None;
        };
        let cluster = self.cluster.clone();
        Some(Box::pin(async move { read_config_map(&cluster, &name, key.as_deref()).await }))
    }

    /// The name of the ConfigMap that is a module's source.
    pub(super) fn source_name(&self, module: &str) -> Option<String> {
        match self.sources.get(module)? {
            SourceRef::ConfigMap { name, .. } => Some(name.clone()),
            SourceRef::File(_) => None,
        }
    }

    /// Whether all chunks of a revision's snapshot exist; `None` if that is not known.
    pub(super) fn has_snapshot(&self, module: &str, digest: Digest) -> Option<bool> {
        let view = self.config_maps.as_ref()?.snapshot();
        let find = |name: &str| match view.get(&CONFIG_MAP, &ObjectKey::new(NAMESPACE, name)) {
            CacheLookup::Found(object) => Some(Some(object)),
            CacheLookup::Absent => Some(None),
            _ => None,
        };
        let name = snapshot_name(module, digest);
        let Some(first) = find(&name)? else { return Some(false) };
        let Some(chunks) = chunks_of(&first) else { return Some(false) };
        for number in 2..=chunks.count {
            if find(&chunks.name(&name, number))?.is_none() {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The snapshots of a module's components: names and uids.
    pub(super) fn snapshots(&self, module: &str) -> BTreeMap<ObjectKey, Box<str>> {
        let Some(view) = &self.config_maps else { return BTreeMap::new() };
        let of_module = |labels: &Labels| labels.get(SNAPSHOT_LABEL) == Some(module);
        let found =
            view.snapshot().list(&CONFIG_MAP, Some(NAMESPACE), &of_module).unwrap_or_default();
        found.into_iter().map(|object| (object.key.clone(), object.uid.clone())).collect()
    }

    /// The live Module, if the cache has it.
    pub(super) fn module_object(&self, name: &str) -> Option<Arc<Object>> {
        match self.modules.as_ref()?.snapshot().get(&MODULE, &ObjectKey::new("", name)) {
            CacheLookup::Found(object) => Some(object),
            _ => None,
        }
    }

    /// All live Modules, in order.
    pub(super) fn module_objects(&self) -> Vec<Arc<Object>> {
        let Some(view) = &self.modules else { return Vec::new() };
        view.snapshot().list(&MODULE, None, &|_| true).unwrap_or_default()
    }

    /// Applies a Module's status, if the live status differs.
    pub(super) async fn write_status(
        &self,
        name: &str,
        report: &Report,
        caches: &Caches,
    ) -> WriteOutcome {
        let Some(object) = self.module_object(name) else { return WriteOutcome::NoObject };
        let desired = status::status(&status::Input {
            object: &object,
            guest: Some(&report.members),
            conditions: &report.conditions,
            manage: true,
            schema: None,
            last_run: LastRun::default(),
            run_result: None,
            now: self.cluster.env().now(),
        });
        let Some(desired) = desired else { return WriteOutcome::Applied };
        let body = json!({
            "apiVersion": module::API_VERSION,
            "kind": module::KIND,
            "metadata": {"name": name, "resourceVersion": object.resource_version},
            "status": desired,
        });
        let host = self.cluster.host();
        let _in_flight = caches.begin_write(&MODULE, &object.key);
        match host.apply_status(&MODULE, &object.key, &Manager::Host, &body, Force::Yes).await {
            Ok(applied) => {
                caches.record_write(&MODULE, applied.object);
                WriteOutcome::Applied
            }
            // The watch delivers the change, and the status is written then.
            Err(
                ApiError::Conflict { .. }
                | ApiError::NotFound { .. }
                | ApiError::ObjectDeleted { .. },
            ) => WriteOutcome::Conflict,
            Err(error) => {
                tracing::warn!(module = name, "the Module's status cannot be written: {error}");
                WriteOutcome::Failed(error.to_string())
            }
        }
    }
}
