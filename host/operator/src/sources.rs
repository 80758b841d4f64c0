//! Where modules come from: the API server, or a folder on a developer's machine.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use innkeeper_cluster::cache::Unreadable;
use innkeeper_cluster::session::Force;
use innkeeper_cluster::{
    ApiError, Caches, Change, Cluster, KindState, Namespaces, Seen, View, crd,
};
use innkeeper_contract::{Condition, Kind};
use innkeeper_core::{Figures, Key, Labels, Manager, Object, status};
use innkeeper_modules::consent::{self, ALLOWED_MODULES_ANNOTATION};
use innkeeper_modules::driver::copy_name;
use innkeeper_modules::module::{self, NAMESPACE};
use innkeeper_modules::parts::{self, ConfigMap, Layout, Reading};
use innkeeper_modules::source::COMPONENT_BYTES_MAX;
use innkeeper_modules::{
    Component, Digest, Input, Module, Report, SourceError, SourceRef, Verdict,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::copies::COPY_LABEL;
use crate::crds::Statuses;
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
pub enum Happened {
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
    ReadAgain(String),
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
    Statuses {
        /// The kind.
        kind: Kind,
        /// What it says.
        statuses: Statuses,
    },
    /// The copy of a version that is decided is kept, or why not.
    Kept {
        /// The module's name.
        module: String,
        /// The version.
        digest: Digest,
        /// How it ended.
        result: Result<(), Verdict>,
    },
    /// A module can read something else than before.
    State(String),
    /// Objects may be gone of kinds that only versions before declared; the module's name.
    MayBeGone(String),
    /// The host's finalizer comes off this Module, which is being deleted.
    LetGo(String),
    /// The place itself has to be looked at.
    PlaceChanged,
}

/// How the write of a Module's status ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It is there.
    Yes,
    /// There is no Module to write to.
    Nowhere,
    /// The Module has changed: its event comes, and the status is written then.
    Overtaken,
    /// It cannot be written; the text says why. Nothing but another try mends it.
    No(String),
}

/// A read of a source under way.
pub type Fetch = Pin<Box<dyn Future<Output = Result<Component, SourceError>> + Send>>;

/// Where modules come from.
pub enum Place {
    /// The API server.
    Cluster(Box<FromCluster>),
    /// A folder.
    Folder(Box<crate::folder::FromFolder>),
}

/// Modules of the API server.
pub struct FromCluster {
    cluster: Cluster,
    modules: Option<View>,
    config_maps: Option<View>,
    /// The accounts of the modules, which say which modules may act as them.
    accounts: Option<View>,
    sources: BTreeMap<String, SourceRef>,
}

impl FromCluster {
    /// Modules of this API server.
    pub fn new(cluster: Cluster) -> Self {
        Self { cluster, modules: None, config_maps: None, accounts: None, sources: BTreeMap::new() }
    }
}

impl Place {
    /// Begins to watch.
    pub fn begin(&mut self, caches: &Caches, outbox: &mpsc::UnboundedSender<Happened>) {
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
            Self::Folder(from) => from.begin(outbox),
        }
    }

    /// The place itself may have changed: says all modules that there are. Gives whether they
    /// could be read.
    pub fn look_around(&mut self, outbox: &mpsc::UnboundedSender<Happened>) -> bool {
        match self {
            Self::Cluster(from) => from.look_around(outbox),
            Self::Folder(from) => {
                from.look_around(outbox);
                true
            }
        }
    }

    /// From now on a module's source is this one.
    pub fn follow(&mut self, module: &str, source: SourceRef) {
        self.sources_mut().insert(module.to_owned(), source);
    }

    /// Whether there is a copy of a version, with all its parts; `None` if that is not known.
    pub fn has_copy(&self, module: &str, digest: Digest) -> Option<bool> {
        let Self::Cluster(from) = self else { return None };
        let view = from.config_maps.as_ref()?.freeze();
        let see = |name: &str| match view.get(&CONFIG_MAP, &Key::new(NAMESPACE, name)) {
            innkeeper_cluster::Seen::Present(object) => Some(Some(object)),
            innkeeper_cluster::Seen::Absent => Some(None),
            _ => None,
        };
        let name = copy_name(module, digest);
        let Some(first) = see(&name)? else { return Some(false) };
        let Some(parts) = parts_of(&first) else { return Some(false) };
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
            Self::Folder(from) => &from.sources,
        };
        let same = |one: &SourceRef| match (one, source) {
            (SourceRef::ConfigMap { name, .. }, SourceRef::ConfigMap { name: other, .. }) => {
                name == other || parts::first_of(other) == Some(name)
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
            Self::Folder(_) => None,
        }
    }

    /// The kind of Modules.
    pub fn module_kind(&self) -> &Kind {
        &MODULE
    }

    /// The live Module; `None` in a folder.
    pub fn module_object(&self, name: &str) -> Option<Arc<Object>> {
        let Self::Cluster(from) = self else { return None };
        match from.modules.as_ref()?.freeze().get(&MODULE, &Key::new("", name)) {
            innkeeper_cluster::Seen::Present(object) => Some(object),
            _ => None,
        }
    }

    /// All live Modules, in order; none in a folder.
    pub fn module_objects(&self) -> Vec<Arc<Object>> {
        let Self::Cluster(from) = self else { return Vec::new() };
        let Some(view) = &from.modules else { return Vec::new() };
        view.freeze().list(&MODULE, None, &|_| true).unwrap_or_default()
    }

    /// Whether a ServiceAccount allows a module to act as it. A Module of a folder acts as whom it
    /// names: who runs the host there could do the same without it.
    pub fn consent(&self, module: &str, account: &str) -> Consent {
        match self {
            Self::Cluster(from) => from.consent(module, account),
            Self::Folder(_) => Consent::Given,
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
    pub fn copies(&self, module: &str) -> BTreeMap<Key, Box<str>> {
        let Self::Cluster(from) = self else { return BTreeMap::new() };
        let Some(view) = &from.config_maps else { return BTreeMap::new() };
        let mine = |labels: &Labels| labels.get(COPY_LABEL) == Some(module);
        let found = view.freeze().list(&CONFIG_MAP, Some(NAMESPACE), &mine).unwrap_or_default();
        found.into_iter().map(|object| (object.key.clone(), object.uid.clone())).collect()
    }

    /// Writes a Module's status, if there is one and it is not that already.
    pub async fn write_status(
        &self,
        name: &str,
        report: &Report,
        shared: &Shared,
        caches: &Caches,
    ) -> Written {
        let Some(object) = self.module_object(name) else { return Written::Nowhere };
        let wanted = status::status(&status::Input {
            object: &object,
            guest: Some(&report.members),
            conditions: &report.conditions,
            manage: true,
            schema: None,
            figures: Figures::default(),
            now: shared.env.now(),
        });
        let Some(wanted) = wanted else { return Written::Yes };
        let body = json!({
            "apiVersion": module::API_VERSION,
            "kind": module::KIND,
            "metadata": {"name": name, "resourceVersion": object.resource_version},
            "status": wanted,
        });
        let host = shared.cluster.host();
        let _writing = caches.writing(&MODULE, &object.key);
        match host.apply_status(&MODULE, &object.key, &Manager::Host, &body, Force::Yes).await {
            Ok(applied) => {
                caches.wrote(&MODULE, &Arc::new(applied.object));
                Written::Yes
            }
            // Its change comes, and the status is written then.
            Err(
                ApiError::VersionConflict { .. }
                | ApiError::NotFound { .. }
                | ApiError::Gone { .. },
            ) => Written::Overtaken,
            Err(error) => {
                tracing::warn!(module = name, "the Module's status cannot be written: {error}");
                Written::No(error.to_string())
            }
        }
    }

    fn sources_mut(&mut self) -> &mut BTreeMap<String, SourceRef> {
        match self {
            Self::Cluster(from) => &mut from.sources,
            Self::Folder(from) => &mut from.sources,
        }
    }
}

impl FromCluster {
    /// Whether a ServiceAccount allows a module to act as it.
    fn consent(&self, module: &str, account: &str) -> Consent {
        let Some(view) = &self.accounts else { return Consent::Pending };
        match view.freeze().get(&SERVICE_ACCOUNT, &Key::new(NAMESPACE, account)) {
            Seen::Present(object) => {
                let annotation = object.annotation(ALLOWED_MODULES_ANNOTATION);
                let annotation = annotation.as_deref();
                if consent::allows(annotation, module) {
                    Consent::Given
                } else {
                    Consent::Missing(consent::not_allowed(account, annotation, module))
                }
            }
            Seen::Absent => Consent::Missing(consent::no_account(account, module)),
            Seen::Unknown | Seen::Unreadable(Unreadable::NotSynced(_)) => Consent::Pending,
            Seen::Unreadable(why) => Consent::Missing(format!(
                "whether ServiceAccount {NAMESPACE}/{account} allows module {module} to act as it cannot be read: {why}; give the host the rights of deploy/base/roles.yaml"
            )),
        }
    }

    fn look_around(&self, outbox: &mpsc::UnboundedSender<Happened>) -> bool {
        let accounts = self.accounts.as_ref().map(View::states).unwrap_or_default();
        // No Module is looked at before it can be asked what its account allows.
        if accounts.values().all(|state| *state == KindState::Syncing) {
            return false;
        }
        let Some(view) = &self.modules else { return false };
        let Ok(objects) = view.freeze().list(&MODULE, None, &|_| true) else { return false };
        let names = objects.iter().map(|object| object.key.name().to_string()).collect();
        let _ = outbox.send(Happened::Present(names));
        for object in objects {
            let _ = outbox.send(input_of(&object));
        }
        true
    }
}

/// What a change in the host's own caches means for modules; `None` if nothing.
pub fn meaning(change: &Change) -> Option<Happened> {
    let kind = &*change.kind;
    let key = &change.key;
    if *kind == *MODULE {
        return Some(match &change.after {
            Some(object) => input_of(object),
            None => {
                Happened::Input { module: key.name().to_string(), input: Box::new(Input::Gone) }
            }
        });
    }
    if *kind == *SERVICE_ACCOUNT && key.namespace() == NAMESPACE {
        return Some(Happened::AccountChanged(key.name().to_string()));
    }
    if *kind == crd::kind() {
        return Some(Happened::Definition(key.name().to_string()));
    }
    if *kind == *CONFIG_MAP && key.namespace() == NAMESPACE {
        let name = key.name().to_string();
        return Some(Happened::SourceChanged(SourceRef::ConfigMap { name, key: None }));
    }
    None
}

/// What a live Module is to the driver.
pub fn input_of(object: &Object) -> Happened {
    let read = serde_json::from_str::<Value>(&object.text)
        .map_err(|error| error.to_string())
        .and_then(|value| Module::from_value(&value).map_err(|error| error.to_string()));
    let input = match read {
        Ok(module) => Input::Module(Box::new(module)),
        Err(message) => Input::Malformed { generation: object.generation, message },
    };
    Happened::Input { module: object.key.name().to_string(), input: Box::new(input) }
}

/// In how many ConfigMaps a source or a copy lies, by its first one; `None` if that cannot be read.
fn parts_of(first: &Object) -> Option<Layout> {
    let config_map: ConfigMap = serde_json::from_str(&first.text).ok()?;
    config_map.parts(first.key.name()).ok()
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
    let mut reading = Reading::begin(name, &first, key)?;
    while let Some(part) = reading.wanted() {
        let part = get_config_map(cluster, &part).await?.ok_or_else(|| reading.missing())?;
        reading.take(&part)?;
    }
    reading.component(COMPONENT_BYTES_MAX)
}

/// `None` if it is not there.
async fn get_config_map(cluster: &Cluster, name: &str) -> Result<Option<ConfigMap>, SourceError> {
    match cluster.host().get_as(&CONFIG_MAP, &Key::new(NAMESPACE, name)).await {
        Ok(config_map) => Ok(Some(config_map)),
        Err(ApiError::NotFound { .. } | ApiError::NamespaceMissing { .. }) => Ok(None),
        Err(error) => Err(SourceError::Unreadable {
            what: format!("ConfigMap {NAMESPACE}/{name}"),
            why: error.to_string(),
        }),
    }
}
