//! What happens to modules, and which change in the host's own caches means it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use innkeeper_cluster::{Change, crd};
use innkeeper_contract::Kind;
use innkeeper_core::Object;
use innkeeper_modules::definitions::MODULE_LABEL;
use innkeeper_modules::module::{self, NAMESPACE, PolicyMode};
use innkeeper_modules::{Digest, Input, Module, PolicyPreview, Rejection, SourceRef};
use serde_json::Value;

use super::crds::StatusSchema;
use crate::policies::{AuditState, PolicyRecord, PolicyState};

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

/// The kind of Pods.
pub static POD: LazyLock<Kind> = LazyLock::new(|| Kind::namespaced("v1", "Pod", "pods"));

/// An event for the supervisor of modules.
pub enum SupervisorEvent {
    /// An input of the driver for one module.
    Input {
        /// The module's name.
        module: String,
        /// The input.
        input: Box<Input>,
    },
    /// The names of all Modules that exist.
    ModulesListed(BTreeSet<String>),
    /// A ServiceAccount in the modules' namespace was created, changed or deleted; its name.
    AccountChanged(String),
    /// A source may have another component.
    ComponentSourceChanged(SourceRef),
    /// Any source may have another component: the ConfigMaps were not watched for a while, and were
    /// listed again.
    ComponentSourcesRelisted,
    /// A module's source could not be read and is to be read again.
    Refetch(String),
    /// The wait before a module's next retry is over.
    RetryDue(String),
    /// The health of a module may be reported that changed too often before.
    HealthDue,
    /// The API server serves kinds otherwise than a module's candidate declares them.
    Mismatched {
        /// The module's name.
        module: String,
        /// The groups of these kinds.
        groups: BTreeSet<String>,
    },
    /// Any CustomResourceDefinition may have changed: the state of their watch has.
    CrdWatchStateChanged,
    /// A CustomResourceDefinition was created, changed or deleted.
    CrdChanged {
        /// Its name.
        name: String,
        /// The module that installed it, if one did.
        owner: Option<String>,
        /// Whether its spec may be another one.
        spec_changed: bool,
    },
    /// A CustomResourceDefinition was read: the schema of a kind's status.
    StatusSchema {
        /// The kind.
        kind: Kind,
        /// The number of the read: a later one has a higher number.
        number: u64,
        /// The schema.
        schema: StatusSchema,
    },
    /// The snapshot of a revision that is decided is saved, or why not.
    SnapshotSaved {
        /// The module's name.
        module: String,
        /// The revision.
        digest: Digest,
        /// The result.
        result: Result<(), Rejection>,
    },
    /// The host is to write that it returns to the previous revision of a module.
    RollbackDecided {
        /// The module's name.
        module: String,
        /// The previous revision.
        digest: Digest,
    },
    /// The host is to write that a module owns further kinds, which its parameters name.
    KindsDecided {
        /// The module's name.
        module: String,
        /// The component that owns them.
        digest: Digest,
        /// The parameters that name them.
        parameters: Value,
    },
    /// The policy record of a module is written or deleted, or why not.
    PolicyRecordKept {
        /// The module's name.
        module: String,
        /// The record; `None` if it was to be deleted.
        record: Option<Arc<PolicyRecord>>,
        /// Why that failed, for people; `None` if it did not.
        problem: Option<String>,
    },
    /// The preview of other settings of a policy has ended.
    SettingsPreviewed {
        /// The module's name.
        module: String,
        /// The record with the settings.
        record: Arc<PolicyRecord>,
        /// What it found, and the mode of the settings before; `None` if there is nothing to
        /// compare.
        preview: Option<Box<(PolicyPreview, Option<PolicyMode>)>>,
    },
    /// Settings of a policy that wait may be allowed by now; the module's name.
    SettingsChecked(String),
    /// The audit of the policy of a module has found something else.
    PolicyAuditChanged {
        /// The module.
        module: String,
        /// What it has found; `None` once there is no audit.
        state: Option<AuditState>,
    },
    /// What the leader knows of the policy of a module has changed.
    PolicyStateChanged {
        /// The module's name.
        module: String,
        /// What it knows; `None` once there is no policy.
        state: Option<PolicyState>,
    },
    /// The kinds that a module can read have changed.
    ReadabilityChanged(String),
    /// Objects of kinds that only earlier revisions declared may be gone; the module's name.
    LeftoversChanged(String),
    /// The host removes its finalizer from this Module, which is being deleted.
    RemoveFinalizer(String),
    /// The host is to list the Modules again: the state of one of its watches has changed, or the
    /// folder of Modules is to be polled.
    RelistModules,
}

impl SupervisorEvent {
    /// An input for the driver.
    pub fn input(module: impl Into<String>, input: impl Into<Input>) -> Self {
        Self::Input { module: module.into(), input: Box::new(input.into()) }
    }
}

/// The event that a change in the host's own caches means for modules; `None` if none.
pub fn classify(change: &Change) -> Option<SupervisorEvent> {
    let kind = &*change.kind;
    let key = &change.key;
    if *kind == *MODULE {
        return Some(match &change.after {
            Some(object) => input_of(object),
            None => SupervisorEvent::input(key.name(), Input::Gone),
        });
    }
    if *kind == *SERVICE_ACCOUNT && key.namespace() == NAMESPACE {
        return Some(SupervisorEvent::AccountChanged(key.name().to_string()));
    }
    if *kind == crd::kind() {
        let definition = change.after.as_ref().or(change.before.as_ref());
        let owner = definition.and_then(|definition| definition.labels.get(MODULE_LABEL));
        let owner = owner.map(str::to_owned);
        let version = |object: &Arc<Object>| (object.uid.clone(), object.generation);
        let spec_changed =
            change.before.as_ref().map(version) != change.after.as_ref().map(version);
        let name = key.name().to_string();
        return Some(SupervisorEvent::CrdChanged { name, owner, spec_changed });
    }
    if *kind == *CONFIG_MAP && key.namespace() == NAMESPACE {
        let name = key.name().to_string();
        return Some(SupervisorEvent::ComponentSourceChanged(SourceRef::ConfigMap {
            name,
            key: None,
        }));
    }
    None
}

/// The event of a Module that was created or changed.
pub fn input_of(object: &Object) -> SupervisorEvent {
    let read = serde_json::from_str::<Value>(&object.text.read())
        .map_err(|error| error.to_string())
        .and_then(|value| Module::from_value(&value).map_err(|error| error.to_string()));
    let input = match read {
        Ok(module) => Input::Module(Box::new(module)),
        Err(message) => Input::Malformed { generation: object.generation, message },
    };
    SupervisorEvent::input(object.key.name(), input)
}
