//! A Module's spec, checked, in the host's own types.

mod bounds;
mod checker;
mod duration;
mod errors;
mod policy;
mod quantity;
mod reserved_group;
mod source_ref;
mod spec_context;
mod value_sources;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use innkeeper_core::PrimarySelector;
use innkeeper_core::manager::MODULE_NAME_BYTES_MAX;
use innkeeper_core::value_source::ValueSourceGrant;
use innkeeper_sandbox::Limits;
use serde_json::{Map, Value};

use crate::module::{self, Module, RunResultRenewal};
use crate::rollout::Rollout;

pub use bounds::{COMPILE_TIME_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, RUN_TIME_MAX};
use checker::SpecChecker;
pub use duration::{RESYNC_MIN, resync_period};
pub use errors::{SpecError, SpecErrors};
pub use policy::{REVIEW_TIME_MAX, ValidatedPolicy};
pub use reserved_group::is_reserved_group;
pub use source_ref::{SourceKind, SourceRef};
pub use spec_context::SpecContext;

/// How a module is run: its spec, checked.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct ValidatedSpec {
    /// Where the component comes from.
    pub source: SourceRef,
    /// The ServiceAccount in [`module::NAMESPACE`]; `None` only for a Module of a folder.
    pub service_account: Option<String>,
    /// Groups whose CustomResourceDefinitions may be installed.
    pub allowed_crd_groups: BTreeSet<String>,
    /// Whether the host changes foreign definitions of these groups.
    pub adopts_crds: bool,
    /// What the guest gets as parameters: an object, or null if the Module gives none.
    pub parameters: Value,
    /// Between two runs of an unchanged primary: `None` leaves it to the guest, zero is never.
    pub resync: Option<Duration>,
    /// Whether the host's conditions go into the primaries' status.
    pub manage_status: bool,
    /// When the result of the last run is renewed; `None` leaves it to the schema of the status
    /// whether there is one.
    pub run_result: Option<RunResultRenewal>,
    /// Bounds of loading and of each run.
    pub limits: Limits,
    /// Writes that the module may make in a second, in the long run.
    pub writes_per_second: NonZeroU32,
    /// Bytes of the records of what the module's runs read; beyond it records become less exact.
    pub recorded_read_bytes: usize,
    /// The Module's selector of primaries.
    pub selector: PrimarySelector,
    /// Namespaces of primaries; empty for all.
    pub namespaces: BTreeSet<String>,
    /// Whether objects may lie outside the primary's namespace.
    pub allow_cross_namespace: bool,
    /// Whether the objects that the guest makes may have finalizers.
    pub allow_finalizers: bool,
    /// Secrets in a primary's namespace whose bytes the guest may read.
    pub secret_names: BTreeSet<String>,
    /// Objects whose values the host copies, unseen by the guest.
    pub value_sources: Vec<ValueSourceGrant>,
    /// The host plans, but writes nothing.
    pub paused: bool,
    /// How the guest's policy reviews requests; `None` if it may review none.
    pub policy: Option<ValidatedPolicy>,
    /// How a candidate becomes active.
    pub rollout: Rollout,
}

impl ValidatedSpec {
    /// Checks a Module's values.
    ///
    /// `defaults` are the limits of modules that give none; a Module may raise or lower them
    /// within fixed bounds. `host_namespace` is the namespace that the host itself runs in.
    ///
    /// # Errors
    /// Every field that cannot be used, with its path.
    pub fn new(
        module: &Module,
        source_kind: SourceKind,
        defaults: Limits,
        host_namespace: Option<&str>,
    ) -> Result<Self, SpecErrors> {
        let spec = &module.spec;
        let mut check = SpecChecker::default();
        check.name("metadata.name", &module.metadata.name, MODULE_NAME_BYTES_MAX);

        let source = check.source(&spec.source, source_kind);
        let service_account =
            check.service_account(spec.service_account_name.as_deref(), source_kind);
        check.crd_groups(&spec.allowed_crd_groups);
        check.namespaces(&spec.namespaces, host_namespace);
        let resync = check.resync(spec.resync_period.as_deref());
        for (index, name) in spec.secret_names.iter().enumerate() {
            check.subdomain(&format!("spec.secretNames[{index}]"), name);
        }
        let value_sources =
            check.value_sources(&spec.value_sources, &spec.namespaces, host_namespace);
        let limits = check.limits(&spec.limits, defaults);
        let writes_per_second = check.writes(spec.limits.writes_per_second);
        let recorded_read_bytes = check.recorded_reads(spec.limits.recorded_reads.as_ref());
        let policy = check.policy(spec.policy.as_ref(), limits.time);
        let rollout = check.rollout(&spec.rollout);
        let selector =
            spec.selector.as_ref().map(|selector| check.selector(selector)).unwrap_or_default();

        if check.errors.is_empty()
            && let Some(source) = source
        {
            return Ok(Self {
                source,
                service_account,
                allowed_crd_groups: spec.allowed_crd_groups.iter().cloned().collect(),
                adopts_crds: spec.crds == Some(module::CrdPolicy::Adopt),
                parameters: spec.parameters.clone().map_or(Value::Null, Value::Object),
                resync,
                manage_status: spec.manage_status,
                run_result: spec.run_result,
                limits,
                writes_per_second,
                recorded_read_bytes,
                selector,
                namespaces: spec.namespaces.iter().cloned().collect(),
                allow_cross_namespace: spec.allow_cross_namespace,
                allow_finalizers: spec.allow_finalizers,
                secret_names: spec.secret_names.iter().cloned().collect(),
                value_sources,
                paused: spec.paused,
                policy,
                rollout,
            });
        }
        Err(SpecErrors(check.errors))
    }

    /// Whether foreign definitions become the module's at present: not while the Module is paused.
    pub fn adopts_now(&self) -> bool {
        self.adopts_crds && !self.paused
    }

    /// The parameters as an object; empty if there are none.
    pub fn parameter_members(&self) -> Map<String, Value> {
        self.parameters.as_object().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod tests;
