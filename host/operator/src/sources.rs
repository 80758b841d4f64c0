//! Where modules come from: the API server, or a folder on a developer's machine.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::client::Force;
use innkeeper_cluster::{
    ApiError, Caches, Change, Cluster, KindState, Lookup, Namespaces, View, crd,
};
use innkeeper_contract::{Condition, Kind};
use innkeeper_core::{Labels, LastRun, Manager, Object, ObjectKey, status};
use innkeeper_modules::chunks::{self, ChunkReader, ConfigMap, Layout};
use innkeeper_modules::consent::{self, ALLOWED_MODULES_ANNOTATION};
use innkeeper_modules::driver::snapshot_name;
use innkeeper_modules::module::{self, NAMESPACE};
use innkeeper_modules::source::COMPONENT_BYTES_MAX;
use innkeeper_modules::{
    Component, Digest, Input, Module, Rejection, Report, SourceError, SourceRef,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::component_snapshots::SNAPSHOT_LABEL;
use crate::crds::StatusSchema;
use crate::shared::Shared;

/// The name under which the host reads for itself. No Module can have it: it is no DNS label.
pub const HOST_MODULE: &str = "(host)";

/// The kind of Modules.
pub static MODULE: LazyLock<Kind> = LazyLock::new(module::kind);

/// The kind of ConfigMaps.
pub static CONFIG_MAP: LazyLock<Kind> =
    LazyLock::new(|| Kind::namespaced("v1", "ConfigMap", "configmaps"));

/// The kind of ServiceAccounts.
pub static SERVICE_ACCOUNT: LazyLock<Kind> =
    LazyLock::new(|| Kind::namespaced("v1", "ServiceAccount", "serviceaccounts"));

/// Whether a ServiceAccount allows a module to act as it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It does.
    Given,
    /// The accounts have not been read yet.
    Pending,
    /// It does not, or that cannot be known: why, and what to do.
    Missing(String),
}

/// Something that happened to modules.
pub enum SupervisorEvent {
    /// To one module.
    Input {
        /// Its name.
        module: String,
        /// What.
        input: Box<Input>,
    },
    /// These are all modules that there are.
    Present(BTreeSet<String>),
    /// A ServiceAccount in the modules' namespace came, changed or went; its name.
    AccountChanged(String),
    /// A source may give something else now.
    SourceChanged(SourceRef),
    /// Any source may give something else now: they were not watched for a while.
    SourcesChanged,
    /// A module's source could not be read and is to be read again.
    Refetch(String),
    /// The API server serves kinds otherwise than a module's candidate declares them.
    Mismatched {
        /// The module's name.
        module: String,
        /// The groups of these kinds.
        groups: BTreeSet<String>,
    },
    /// Any CustomResourceDefinition may have changed.
    DefinitionsChanged,
    /// A CustomResourceDefinition came, changed or went; its name.
    Definition(String),
    /// A CustomResourceDefinition was read: what it says of a kind's statuses.
    StatusSchema {
        /// The kind.
        kind: Kind,
        /// What it says.
        schema: StatusSchema,
    },
    /// The copy of a version that is decided is kept, or why not.
    SnapshotSaved {
        /// The module's name.
        module: String,
        /// The version.
        digest: Digest,
        /// How it ended.
        result: Result<(), Rejection>,
    },
    /// A module can read something else than before.
    ReadabilityChanged(String),
    /// Objects may be gone of kinds that only versions before declared; the module's name.
    LeftoversChanged(String),
    /// The host's finalizer comes off this Module, which is being deleted.
    RemoveFinalizer(String),
    /// The place itself has to be looked at.
    SourceStateChanged,
}

/// How the write of a Module's status ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is there.
    Applied,
    /// There is no Module to write to.
    NoObject,
    /// The Module has changed: its event comes, and the status is written then.
    Conflict,
    /// It cannot be written; the text says why. Nothing but another try mends it.
    Failed(String),
}

/// A read of a source under way.
pub type Fetch = Pin<Box<dyn Future<Output = Result<Component, SourceError>> + Send>>;

/// Where modules come from.
pub enum ModuleSource {
    /// The API server.
    Cluster(Box<ClusterSource>),
    /// A folder.
    Directory(Box<crate::directory::DirectorySource>),
}

/// Modules of the API server.
pub struct ClusterSource {
    cluster: Cluster,
    modules: Option<View>,
    config_maps: Option<View>,
    /// The accounts of the modules, which say which modules may act as them.
    accounts: Option<View>,
    sources: BTreeMap<String, SourceRef>,
}

impl ClusterSource {
    /// Modules of this API server.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, modules: None, config_maps: None, accounts: None, sources: BTreeMap::new() }
    }
}

impl ModuleSource {
    /// Begins to watch.
    pub fn begin(&mut self, caches: &Caches, outbox: &mpsc::UnboundedSender<SupervisorEvent>) {
        match self {
            Self::Cluster(from) => {
                let host = from.cluster.host();
                from.modules = Some(caches.open(
                    &host,
                    HOST_MODULE,
                    std::slice::from_ref(&*MODULE),
                    &Namespaces::All,
                ));
                let sources = Namespaces::Only([NAMESPACE.to_owned()].into());
                from.config_maps = Some(caches.open_metadata(
                    &host,
                    HOST_MODULE,
                    std::slice::from_ref(&*CONFIG_MAP),
                    &sources,
                ));
                from.accounts = Some(caches.open_metadata(
                    &host,
                    HOST_MODULE,
                    std::slice::from_ref(&*SERVICE_ACCOUNT),
                    &sources,
                ));
            }
            Self::Directory(from) => from.begin(outbox),
        }
    }

    /// The place itself may have changed: says all modules that there are. Gives whether they
    /// could be read.
    pub fn relist(&mut self, outbox: &mpsc::UnboundedSender<SupervisorEvent>) -> bool {
        match self {
            Self::Cluster(from) => from.relist(outbox),
            Self::Directory(from) => {
                from.relist(outbox);
                true
            }
        }
    }

    /// From now on a module's source is this one.
    pub fn set_source(&mut self, module: &str, source: SourceRef) {
        self.sources_mut().insert(module.to_owned(), source);
    }

    /// Whether there is a copy of a version, with all its parts; `None` if that is not known.
    pub fn has_snapshot(&self, module: &str, digest: Digest) -> Option<bool> {
        let Self::Cluster(from) = self else { return None };
        let view = from.config_maps.as_ref()?.snapshot();
        let see = |name: &str| match view.get(&CONFIG_MAP, &ObjectKey::new(NAMESPACE, name)) {
            innkeeper_cluster::Lookup::Found(object) => Some(Some(object)),
            innkeeper_cluster::Lookup::Absent => Some(None),
            _ => None,
        };
        let name = snapshot_name(module, digest);
        let Some(first) = see(&name)? else { return Some(false) };
        let Some(parts) = chunks_of(&first) else { return Some(false) };
        for number in 2..=parts.count {
            if see(&parts.name(&name, number))?.is_none() {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The name of the ConfigMap that is a module's source.
    pub fn source_name(&self, module: &str) -> Option<String> {
        let Self::Cluster(from) = self else { return None };
        match from.sources.get(module)? {
            SourceRef::ConfigMap { name, .. } => Some(name.clone()),
            SourceRef::File(_) => None,
        }
    }

    /// A module is gone.
    pub fn forget(&mut self, module: &str) {
        self.sources_mut().remove(module);
    }

    /// The modules with this source, or with a source that this is a further part of.
    pub fn modules_of(&self, source: &SourceRef) -> Vec<String> {
        let sources = match self {
            Self::Cluster(from) => &from.sources,
            Self::Directory(from) => &from.sources,
        };
        let same = |one: &SourceRef| match (one, source) {
            (SourceRef::ConfigMap { name, .. }, SourceRef::ConfigMap { name: other, .. }) => {
                name == other || chunks::first_of(other) == Some(name)
            }
            (one, other) => one == other,
        };
        sources.iter().filter(|(_, one)| same(one)).map(|(module, _)| module.clone()).collect()
    }

    /// Reads a module's source; `None` if it has none.
    pub fn fetch(&self, module: &str, cluster: &Cluster) -> Option<Fetch> {
        match self {
            Self::Cluster(from) => match from.sources.get(module)?.clone() {
                SourceRef::ConfigMap { name, key } => {
                    let cluster = cluster.clone();
                    Some(Box::pin(
                        async move { read_config_map(&cluster, &name, key.as_deref()).await },
                    ))
                }
                SourceRef::File(_) => None,
            },
            // The folder tells of its sources by itself.
            Self::Directory(_) => None,
        }
    }

    /// The kind of Modules.
    pub fn module_kind(&self) -> &Kind {
        &MODULE
    }

    /// The live Module; `None` in a folder.
    pub fn module_object(&self, name: &str) -> Option<Arc<Object>> {
        let Self::Cluster(from) = self else { return None };
        match from.modules.as_ref()?.snapshot().get(&MODULE, &ObjectKey::new("", name)) {
            innkeeper_cluster::Lookup::Found(object) => Some(object),
            _ => None,
        }
    }

    /// All live Modules, in order; none in a folder.
    pub fn module_objects(&self) -> Vec<Arc<Object>> {
        let Self::Cluster(from) = self else { return Vec::new() };
        let Some(view) = &from.modules else { return Vec::new() };
        view.snapshot().list(&MODULE, None, &|_| true).unwrap_or_default()
    }

    /// Whether a ServiceAccount allows a module to act as it. A Module of a folder acts as whom it
    /// names: who runs the host there could do the same without it.
    pub fn consent(&self, module: &str, account: &str) -> Consent {
        match self {
            Self::Cluster(from) => from.consent(module, account),
            Self::Directory(_) => Consent::Given,
        }
    }

    /// The conditions that a live Module has; none in a folder.
    pub fn live_conditions(&self, name: &str) -> Vec<Condition> {
        let Some(object) = self.module_object(name) else { return Vec::new() };
        status::live_conditions(&object)
    }

    /// Whether a decision for a version is written down: in a folder there is nothing to write.
    pub fn keeps_decisions(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    /// The host's copies of a module's components: names and uids.
    pub fn snapshots(&self, module: &str) -> BTreeMap<ObjectKey, Box<str>> {
        let Self::Cluster(from) = self else { return BTreeMap::new() };
        let Some(view) = &from.config_maps else { return BTreeMap::new() };
        let mine = |labels: &Labels| labels.get(SNAPSHOT_LABEL) == Some(module);
        let found = view.snapshot().list(&CONFIG_MAP, Some(NAMESPACE), &mine).unwrap_or_default();
        found.into_iter().map(|object| (object.key.clone(), object.uid.clone())).collect()
    }

    /// Writes a Module's status, if there is one and it is not that already.
    pub async fn write_status(
        &self,
        name: &str,
        report: &Report,
        shared: &Shared,
        caches: &Caches,
    ) -> WriteOutcome {
        let Some(object) = self.module_object(name) else { return WriteOutcome::NoObject };
        let wanted = status::status(&status::Input {
            object: &object,
            guest: Some(&report.members),
            conditions: &report.conditions,
            manage: true,
            schema: None,
            last_run: LastRun::default(),
            now: shared.env.now(),
        });
        let Some(wanted) = wanted else { return WriteOutcome::Applied };
        let body = json!({
            "apiVersion": module::API_VERSION,
            "kind": module::KIND,
            "metadata": {"name": name, "resourceVersion": object.resource_version},
            "status": wanted,
        });
        let host = shared.cluster.host();
        let _writing = caches.begin_write(&MODULE, &object.key);
        match host.apply_status(&MODULE, &object.key, &Manager::Host, &body, Force::Yes).await {
            Ok(applied) => {
                caches.record_write(&MODULE, &Arc::new(applied.object));
                WriteOutcome::Applied
            }
            // Its change comes, and the status is written then.
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

    fn sources_mut(&mut self) -> &mut BTreeMap<String, SourceRef> {
        match self {
            Self::Cluster(from) => &mut from.sources,
            Self::Directory(from) => &mut from.sources,
        }
    }
}

impl ClusterSource {
    /// Whether a ServiceAccount allows a module to act as it.
    fn consent(&self, module: &str, account: &str) -> Consent {
        let Some(view) = &self.accounts else { return Consent::Pending };
        match view.snapshot().get(&SERVICE_ACCOUNT, &ObjectKey::new(NAMESPACE, account)) {
            Lookup::Found(object) => {
                let annotation = object.annotation(ALLOWED_MODULES_ANNOTATION);
                let annotation = annotation.as_deref();
                if consent::allows(annotation, module) {
                    Consent::Given
                } else {
                    Consent::Missing(consent::not_allowed(account, annotation, module))
                }
            }
            Lookup::Absent => Consent::Missing(consent::no_account(account, module)),
            Lookup::Unknown | Lookup::Unreadable(CacheReadError::NotSynced(_)) => Consent::Pending,
            Lookup::Unreadable(why) => Consent::Missing(format!(
                "whether ServiceAccount {NAMESPACE}/{account} allows module {module} to act as it cannot be read: {why}; give the host the rights of deploy/base/roles.yaml"
            )),
        }
    }

    fn relist(&self, outbox: &mpsc::UnboundedSender<SupervisorEvent>) -> bool {
        let accounts = self.accounts.as_ref().map(View::states).unwrap_or_default();
        // No Module is looked at before it can be asked what its account allows.
        if accounts.values().all(|state| *state == KindState::Syncing) {
            return false;
        }
        let Some(view) = &self.modules else { return false };
        let Ok(objects) = view.snapshot().list(&MODULE, None, &|_| true) else { return false };
        let names = objects.iter().map(|object| object.key.name().to_string()).collect();
        let _ = outbox.send(SupervisorEvent::Present(names));
        for object in objects {
            let _ = outbox.send(input_of(&object));
        }
        true
    }
}

/// What a change in the host's own caches means for modules; `None` if nothing.
pub fn classify(change: &Change) -> Option<SupervisorEvent> {
    let kind = &*change.kind;
    let key = &change.key;
    if *kind == *MODULE {
        return Some(match &change.after {
            Some(object) => input_of(object),
            None => SupervisorEvent::Input {
                module: key.name().to_string(),
                input: Box::new(Input::Gone),
            },
        });
    }
    if *kind == *SERVICE_ACCOUNT && key.namespace() == NAMESPACE {
        return Some(SupervisorEvent::AccountChanged(key.name().to_string()));
    }
    if *kind == crd::kind() {
        return Some(SupervisorEvent::Definition(key.name().to_string()));
    }
    if *kind == *CONFIG_MAP && key.namespace() == NAMESPACE {
        let name = key.name().to_string();
        return Some(SupervisorEvent::SourceChanged(SourceRef::ConfigMap { name, key: None }));
    }
    None
}

/// What a live Module is to the driver.
pub fn input_of(object: &Object) -> SupervisorEvent {
    let read = serde_json::from_str::<Value>(&object.text)
        .map_err(|error| error.to_string())
        .and_then(|value| Module::from_value(&value).map_err(|error| error.to_string()));
    let input = match read {
        Ok(module) => Input::Module(Box::new(module)),
        Err(message) => Input::Malformed { generation: object.generation, message },
    };
    SupervisorEvent::Input { module: object.key.name().to_string(), input: Box::new(input) }
}

/// In how many ConfigMaps a source or a copy lies, by its first one; `None` if that cannot be read.
fn chunks_of(first: &Object) -> Option<Layout> {
    let config_map: ConfigMap = serde_json::from_str(&first.text).ok()?;
    config_map.chunks(first.key.name()).ok()
}

/// Reads the component in a ConfigMap of the modules' namespace, and in its further parts.
///
/// # Errors
/// Why there is none to be had.
pub async fn read_config_map(
    cluster: &Cluster,
    name: &str,
    key: Option<&str>,
) -> Result<Component, SourceError> {
    let missing = || SourceError::Missing(format!("ConfigMap {NAMESPACE}/{name}"));
    let first = get_config_map(cluster, name).await?.ok_or_else(missing)?;
    let mut reading = ChunkReader::begin(name, &first, key)?;
    while let Some(part) = reading.wanted() {
        let part = get_config_map(cluster, &part).await?.ok_or_else(|| reading.missing())?;
        reading.take(&part)?;
    }
    reading.component(COMPONENT_BYTES_MAX)
}

/// `None` if it is not there.
async fn get_config_map(cluster: &Cluster, name: &str) -> Result<Option<ConfigMap>, SourceError> {
    match cluster.host().get_as(&CONFIG_MAP, &ObjectKey::new(NAMESPACE, name)).await {
        Ok(config_map) => Ok(Some(config_map)),
        Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => Ok(None),
        Err(error) => Err(SourceError::Unreadable {
            what: format!("ConfigMap {NAMESPACE}/{name}"),
            why: error.to_string(),
        }),
    }
}
