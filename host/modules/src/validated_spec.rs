//! A Module's spec, checked, in the host's own types.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use innkeeper_core::manager::MODULE_NAME_BYTES_MAX;
use innkeeper_core::{host_names, names};
use innkeeper_sandbox::Limits;
use jiff::SignedDuration;
use serde_json::{Map, Value};

use crate::module::{self, LabelOperator, LabelSelector, Module, Quantity};
use crate::rollout::{ROLLBACK_WINDOW_MAX, Rollout, Strategy};

/// The longest time that a Module may give one run.
pub const RUN_TIME_MAX: Duration = Duration::from_mins(5);

/// The longest time that a Module may give the compiler.
pub const COMPILE_TIME_MAX: Duration = Duration::from_mins(15);

/// The most memory that a Module may give one run, in bytes: all that 32 bits address.
pub const MEMORY_BYTES_MAX: usize = 4 << 30;

/// The longest output or log that a Module may give one run, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// The shortest resync period, so that a slip of units cannot keep the host busy.
pub const RESYNC_MIN: Duration = Duration::from_secs(1);

/// Writes in a second that a module may make which does not say it.
pub(crate) const WRITES_PER_SECOND: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// The most that it may say.
pub(crate) const WRITES_PER_SECOND_MAX: u32 = 10_000;

/// Bytes of the records of what a module's runs read, of a module that does not say it.
pub(crate) const RECORDED_READ_BYTES: usize = 64 << 20;

/// The fewest bytes of these records that a Module may give, and the most.
const RECORDED_READ_BYTES_MIN: usize = 1 << 20;
const RECORDED_READ_BYTES_MAX: usize = 4 << 30;

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRef {
    /// `binaryData` of a ConfigMap in the namespace [`module::NAMESPACE`].
    ConfigMap {
        /// Its name.
        name: String,
        /// The key; see [`crate::source::pick_key`] if there is none.
        key: Option<String>,
    },
    /// A file, as the Module names it.
    File(String),
}

impl fmt::Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConfigMap { name, .. } => write!(f, "ConfigMap {}/{name}", module::NAMESPACE),
            Self::File(path) => write!(f, "file {path}"),
        }
    }
}

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
    /// What the guest gets as parameters: an object, or null if the Module gives none.
    pub parameters: Value,
    /// Between two runs of an unchanged primary: `None` leaves it to the guest, zero is never.
    pub resync: Option<Duration>,
    /// Whether the host's conditions go into the primaries' status.
    pub manage_status: bool,
    /// Bounds of loading and of each run.
    pub limits: Limits,
    /// Writes that the module may make in a second, in the long run.
    pub writes_per_second: NonZeroU32,
    /// Bytes of the records of what the module's runs read; beyond it records become less exact.
    pub recorded_read_bytes: usize,
    /// Kubernetes' text form of the selector of primaries; empty for all.
    pub selector: String,
    /// Namespaces of primaries; empty for all.
    pub namespaces: BTreeSet<String>,
    /// Whether objects may lie outside the primary's namespace.
    pub allow_cross_namespace: bool,
    /// Whether the objects that the guest makes may have finalizers.
    pub allow_finalizers: bool,
    /// Secrets in a primary's namespace whose bytes the guest may read.
    pub secret_names: BTreeSet<String>,
    /// Plan, but write nothing.
    pub paused: bool,
    /// How a new version comes to serve.
    pub rollout: Rollout,
}

/// What is wrong with the values of a Module: all of it, so that it is mended in one go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct SpecErrors(pub Vec<SpecError>);

/// One field whose value cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The field, as `spec.limits.memory`.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Where a Module was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// On the API server.
    Cluster,
    /// In a folder, on a developer's machine.
    Directory,
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
        place: SourceKind,
        defaults: Limits,
        host_namespace: Option<&str>,
    ) -> Result<Self, SpecErrors> {
        let spec = &module.spec;
        let mut check = SpecChecker::default();
        check.name("metadata.name", &module.metadata.name, MODULE_NAME_BYTES_MAX);

        let source = check.source(&spec.source, place);
        let service_account = match (&spec.service_account_name, place) {
            (Some(name), _) => {
                check.subdomain("spec.serviceAccountName", name);
                Some(name.clone())
            }
            (None, SourceKind::Directory) => None,
            (None, SourceKind::Cluster) => {
                check.error("spec.serviceAccountName", format!(
                    "is missing: name the ServiceAccount (in the namespace {}) that this module acts as; `innkeeper rbac` prints the rights that it needs",
                    module::NAMESPACE
                ));
                None
            }
        };
        for (index, group) in spec.allowed_crd_groups.iter().enumerate() {
            check.subdomain(&format!("spec.allowedCRDGroups[{index}]"), group);
            if is_reserved_group(group) {
                check.error(&format!("spec.allowedCRDGroups[{index}]"), format!(
                    "{group} belongs to Kubernetes or to Innkeeper; a module may install definitions of its own groups only"
                ));
            }
        }
        for (index, namespace) in spec.namespaces.iter().enumerate() {
            check.name(&format!("spec.namespaces[{index}]"), namespace, 63);
            if innkeeper_core::host_objects::is_namespace_of(namespace, host_namespace) {
                let problem = format!(
                    "{namespace} belongs to Innkeeper itself: no module reconciles what lies there; name another namespace"
                );
                check.error(&format!("spec.namespaces[{index}]"), problem);
            }
        }
        let resync = spec.resync_period.as_deref().and_then(|text| {
            let period = resync_period(text);
            period.inspect_err(|problem| check.error("spec.resyncPeriod", problem.clone())).ok()
        });
        for (index, name) in spec.secret_names.iter().enumerate() {
            check.subdomain(&format!("spec.secretNames[{index}]"), name);
        }
        let limits = check.limits(&spec.limits, defaults);
        let writes_per_second = check.writes(spec.limits.writes_per_second);
        let recorded_read_bytes = match &spec.limits.recorded_reads {
            None => RECORDED_READ_BYTES,
            Some(quantity) => check.quantity(
                "spec.limits.recordedReads",
                quantity,
                RECORDED_READ_BYTES_MIN,
                RECORDED_READ_BYTES_MAX,
            ),
        };
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
                parameters: spec.parameters.clone().map_or(Value::Null, Value::Object),
                resync,
                manage_status: spec.manage_status,
                limits,
                writes_per_second,
                recorded_read_bytes,
                selector,
                namespaces: spec.namespaces.iter().cloned().collect(),
                allow_cross_namespace: spec.allow_cross_namespace,
                allow_finalizers: spec.allow_finalizers,
                secret_names: spec.secret_names.iter().cloned().collect(),
                paused: spec.paused,
                rollout,
            });
        }
        Err(SpecErrors(check.errors))
    }

    /// The parameters as an object; empty if there are none.
    pub fn parameter_members(&self) -> Map<String, Value> {
        self.parameters.as_object().cloned().unwrap_or_default()
    }
}

/// Groups that no module may define kinds in: ours, and all of `k8s.io` and `kubernetes.io` (which
/// the API server guards too, but only by an annotation).
pub fn is_reserved_group(group: &str) -> bool {
    let within = |parent: &str| host_names::is_within(group, parent);
    group == module::GROUP || within("k8s.io") || within("kubernetes.io")
}

/// Reads a resync period.
///
/// # Errors
/// What is wrong with it, for people.
pub fn resync_period(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        None => Err(not_a_duration(text)),
        Some(period) if !period.is_zero() && period < RESYNC_MIN => {
            Err(format!("{text} is too short: at least 1s, or 0s for never"))
        }
        Some(period) => Ok(period),
    }
}

fn not_a_duration(text: &str) -> String {
    format!(
        "{text:?} is not a duration: numbers with h, m, s or ms, largest first, as in 30s or 1h30m"
    )
}

#[derive(Default)]
struct SpecChecker {
    errors: Vec<SpecError>,
}

impl SpecChecker {
    fn error(&mut self, field: &str, message: impl Into<String>) {
        self.errors.push(SpecError { field: field.to_owned(), message: message.into() });
    }

    fn name(&mut self, field: &str, name: &str, bytes_max: usize) {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() {
            self.error(field, "is missing");
        } else if name.len() > bytes_max {
            self.error(
                field,
                format!("has {} characters, at most {bytes_max} are allowed", name.len()),
            );
        } else if !name.chars().all(inner) || name.starts_with('-') || name.ends_with('-') {
            self.error(field, format!(
                "{name:?} is not a name: lower case letters, digits and '-', beginning and ending with a letter or a digit"
            ));
        }
    }

    fn subdomain(&mut self, field: &str, name: &str) {
        if !names::is_subdomain(name) {
            self.error(field, format!(
                "{name:?} is not a name: lower case letters, digits, '-' and '.', each part beginning and ending with a letter or a digit, at most 253 characters"
            ));
        }
    }

    fn source(&mut self, source: &module::Source, place: SourceKind) -> Option<SourceRef> {
        match (&source.config_map, &source.file, place) {
            (Some(_), Some(_), _) => {
                self.error("spec.source", "give one of configMap and file, not both");
                None
            }
            (Some(config_map), None, SourceKind::Cluster) => {
                self.subdomain("spec.source.configMap.name", &config_map.name);
                Some(SourceRef::ConfigMap {
                    name: config_map.name.clone(),
                    key: config_map.key.clone(),
                })
            }
            (Some(_), None, SourceKind::Directory) => {
                self.error(
                    "spec.source.configMap",
                    "cannot be read with --modules: use `file: guest.wasm`, relative to this file",
                );
                None
            }
            (None, Some(_), SourceKind::Cluster) => {
                self.error("spec.source.file", "works with `innkeeper run --modules` only: use configMap, which `innkeeper push` writes");
                None
            }
            (None, Some(file), SourceKind::Directory) if file.is_empty() => {
                self.error("spec.source.file", "is empty");
                None
            }
            (None, Some(file), SourceKind::Directory) => Some(SourceRef::File(file.clone())),
            (None, None, SourceKind::Cluster) => {
                self.error(
                    "spec.source.configMap",
                    "is missing: name a ConfigMap, for example with `innkeeper push`",
                );
                None
            }
            (None, None, SourceKind::Directory) => {
                self.error(
                    "spec.source.file",
                    "is missing: name the component's file, relative to this file",
                );
                None
            }
        }
    }

    fn limits(&mut self, limits: &module::Limits, defaults: Limits) -> Limits {
        let mut out = defaults;
        if let Some(memory) = &limits.memory {
            out.memory_bytes =
                self.quantity("spec.limits.memory", memory, 1 << 16, MEMORY_BYTES_MAX);
        }
        if let Some(output) = &limits.output_bytes {
            out.output_bytes =
                self.quantity("spec.limits.outputBytes", output, 1 << 10, OUTPUT_BYTES_MAX);
        }
        if let Some(log) = &limits.log_bytes {
            out.log_bytes = self.quantity("spec.limits.logBytes", log, 0, OUTPUT_BYTES_MAX);
        }
        if let Some(time) =
            self.time("spec.limits.timeout", limits.timeout.as_deref(), RUN_TIME_MAX)
        {
            out.time = time;
        }
        let compile = limits.compile_timeout.as_deref();
        if let Some(time) = self.time("spec.limits.compileTimeout", compile, COMPILE_TIME_MAX) {
            out.compile_time = time;
        }
        if let Some(objects) = limits.max_objects {
            out.objects = self.count("spec.limits.maxObjects", objects, 1, 100_000);
        }
        if let Some(reads) = limits.max_reads {
            out.reads = self.count("spec.limits.maxReads", reads, 0, 1_000_000);
        }
        if let Some(elements) = limits.table_elements {
            out.table_elements = self.count("spec.limits.tableElements", elements, 1, 1 << 20);
        }
        out
    }

    fn time(&mut self, field: &str, text: Option<&str>, max: Duration) -> Option<Duration> {
        let text = text?;
        let time = self.duration(field, text)?;
        if time.is_zero() || time > max {
            let most = max.as_secs();
            self.error(field, format!("{text} is out of bounds: more than 0s, at most {most}s"));
        }
        Some(time)
    }

    fn writes(&mut self, given: Option<u32>) -> NonZeroU32 {
        let Some(given) = given else { return WRITES_PER_SECOND };
        let field = "spec.limits.writesPerSecond";
        self.count(field, given, 1, WRITES_PER_SECOND_MAX);
        NonZeroU32::new(given).unwrap_or(WRITES_PER_SECOND)
    }

    fn rollout(&mut self, rollout: &module::Rollout) -> Rollout {
        let defaults = Rollout::default();
        let probation = rollout.rollback_window.as_deref().and_then(|text| {
            let time = self.duration("spec.rollout.rollbackWindow", text)?;
            if time > ROLLBACK_WINDOW_MAX {
                let most = ROLLBACK_WINDOW_MAX.as_secs() / 3600;
                self.error(
                    "spec.rollout.rollbackWindow",
                    format!("{text} is too long: at most {most}h"),
                );
            }
            Some(time)
        });
        let percent = rollout.max_changed_percent.unwrap_or(defaults.changed_percent_max);
        if percent > 100 {
            let message = format!("{percent} is out of bounds: from 0 to 100");
            self.error("spec.rollout.maxChangedPercent", message);
        }
        Rollout {
            strategy: match rollout.strategy {
                Some(module::Strategy::Immediate) => Strategy::Immediate,
                Some(module::Strategy::Guarded) | None => Strategy::Guarded,
                Some(module::Strategy::Manual) => Strategy::Manual,
            },
            deletions_max: rollout.max_deletions.unwrap_or(defaults.deletions_max),
            changed_percent_max: percent,
            failures_max: rollout.max_failures.unwrap_or(defaults.failures_max),
            rollback_window: probation.unwrap_or(defaults.rollback_window),
        }
    }

    fn count(&mut self, field: &str, count: u32, min: u32, max: u32) -> usize {
        if count < min || count > max {
            self.error(field, format!("{count} is out of bounds: from {min} to {max}"));
        }
        count as usize
    }

    fn quantity(&mut self, field: &str, quantity: &Quantity, min: usize, max: usize) -> usize {
        match quantity.bytes() {
            Some(bytes) if bytes >= min as u64 && bytes <= max as u64 => {
                usize::try_from(bytes).unwrap_or(max)
            }
            Some(bytes) => {
                self.error(field, format!("{bytes} bytes is out of bounds: from {min} to {max}"));
                max
            }
            None => {
                self.error(field, format!(
                    "{quantity} is not a number of bytes: a whole number, or one with k, M, G, Ki, Mi or Gi, as in 64Mi"
                ));
                max
            }
        }
    }

    fn duration(&mut self, field: &str, text: &str) -> Option<Duration> {
        let parsed = parse_duration(text);
        if parsed.is_none() {
            self.error(field, not_a_duration(text));
        }
        parsed
    }

    fn selector(&mut self, selector: &LabelSelector) -> String {
        let mut parts = Vec::new();
        for (key, value) in &selector.match_labels {
            let field = format!("spec.selector.matchLabels[{key:?}]");
            self.label_key(&field, key);
            self.label_value(&field, value);
            parts.push(format!("{key}={value}"));
        }
        for (index, requirement) in selector.match_expressions.iter().enumerate() {
            let field = format!("spec.selector.matchExpressions[{index}]");
            let key = &requirement.key;
            self.label_key(&format!("{field}.key"), key);
            for (index, value) in requirement.values.iter().enumerate() {
                self.label_value(&format!("{field}.values[{index}]"), value);
            }
            let values = requirement.values.join(",");
            let wants_values =
                matches!(requirement.operator, LabelOperator::In | LabelOperator::NotIn);
            if wants_values && requirement.values.is_empty() {
                self.error(
                    &format!("{field}.values"),
                    "is empty: In and NotIn need at least one value",
                );
            }
            if !wants_values && !requirement.values.is_empty() {
                self.error(
                    &format!("{field}.values"),
                    "must be left out with Exists and DoesNotExist",
                );
            }
            parts.push(match requirement.operator {
                LabelOperator::In => format!("{key} in ({values})"),
                LabelOperator::NotIn => format!("{key} notin ({values})"),
                LabelOperator::Exists => key.clone(),
                LabelOperator::DoesNotExist => format!("!{key}"),
            });
        }
        parts.join(",")
    }

    fn label_key(&mut self, field: &str, key: &str) {
        if !names::is_qualified(key) {
            self.error(field, format!("{key:?} is not a label: letters, digits, '-', '_' and '.', at most 63 characters, perhaps after a DNS name and '/'"));
        }
    }

    fn label_value(&mut self, field: &str, value: &str) {
        if !names::is_label_value(value) {
            self.error(field, format!("{value:?} is not a label's value: letters, digits, '-', '_' and '.', at most 63 characters"));
        }
    }
}

/// A duration as Kubernetes users write it: `30s`, `1h30m`, `500ms`, and the bare `0`.
fn parse_duration(text: &str) -> Option<Duration> {
    let allowed = |c: char| c.is_ascii_digit() || "hms".contains(c);
    if text.is_empty() || text.len() > 32 || !text.chars().all(allowed) {
        return None;
    }
    if text == "0" {
        return Some(Duration::ZERO);
    }
    text.parse::<SignedDuration>().ok()?.try_into().ok()
}

impl Quantity {
    /// The number of bytes; `None` if it is not one.
    pub fn bytes(&self) -> Option<u64> {
        let text = match self {
            Self::Number(bytes) => return Some(*bytes),
            Self::Text(text) => text.as_str(),
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits);
        let unit: u64 = match suffix {
            "" => 1,
            "k" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "Ki" => 1 << 10,
            "Mi" => 1 << 20,
            "Gi" => 1 << 30,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(unit)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(bytes) => bytes.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
