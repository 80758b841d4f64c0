//! Checks the values of a Module field by field, and collects the errors.

use std::num::NonZeroU32;
use std::time::Duration;

use innkeeper_contract::PrimarySelector as Document;
use innkeeper_core::{PrimarySelector, host_objects, names};
use innkeeper_sandbox::Limits;

use super::bounds::{
    COMPILE_TIME_MAX, MEMORY_BYTES_MAX, OUTPUT_BYTES_MAX, RECORDED_READ_BYTES,
    RECORDED_READ_BYTES_MAX, RECORDED_READ_BYTES_MIN, RUN_TIME_MAX, WRITES_PER_SECOND,
    WRITES_PER_SECOND_MAX,
};
use super::duration::{not_a_duration, parse_duration, resync_period};
use super::errors::SpecError;
use super::reserved_group::is_reserved_group;
use super::source_ref::{SourceKind, SourceRef};
use crate::module::{self, Quantity};
use crate::rollout::{ROLLBACK_WINDOW_MAX, Rollout, Strategy};

/// The errors that were found so far.
#[derive(Default)]
pub(super) struct SpecChecker {
    pub(super) errors: Vec<SpecError>,
}

impl SpecChecker {
    pub(super) fn error(&mut self, field: &str, message: impl Into<String>) {
        self.errors.push(SpecError { field: field.to_owned(), message: message.into() });
    }

    pub(super) fn name(&mut self, field: &str, name: &str, bytes_max: usize) {
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

    pub(super) fn subdomain(&mut self, field: &str, name: &str) {
        if !names::is_subdomain(name) {
            self.error(field, format!(
                "{name:?} is not a name: lower case letters, digits, '-' and '.', each part beginning and ending with a letter or a digit, at most 253 characters"
            ));
        }
    }

    pub(super) fn source(
        &mut self,
        source: &module::Source,
        source_kind: SourceKind,
    ) -> Option<SourceRef> {
        match (&source.config_map, &source.file, source_kind) {
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

    /// The account that the module acts as.
    pub(super) fn service_account(
        &mut self,
        name: Option<&str>,
        source_kind: SourceKind,
    ) -> Option<String> {
        let field = "spec.serviceAccountName";
        match (name, source_kind) {
            (Some(name), _) => self.subdomain(field, name),
            (None, SourceKind::Directory) => {}
            (None, SourceKind::Cluster) => self.error(field, format!(
                "is missing: name the ServiceAccount (in the namespace {}) that this module acts as; `innkeeper rbac` prints the rights that it needs",
                module::NAMESPACE
            )),
        }
        name.map(str::to_owned)
    }

    /// Groups whose definitions may be installed.
    pub(super) fn crd_groups(&mut self, groups: &[String]) {
        for (index, group) in groups.iter().enumerate() {
            let field = format!("spec.allowedCRDGroups[{index}]");
            self.subdomain(&field, group);
            if is_reserved_group(group) {
                self.error(&field, format!(
                    "{group} belongs to Kubernetes or to Innkeeper; a module may install definitions of its own groups only"
                ));
            }
        }
    }

    /// Namespaces of primaries.
    pub(super) fn namespaces(&mut self, namespaces: &[String], host_namespace: Option<&str>) {
        for (index, namespace) in namespaces.iter().enumerate() {
            let field = format!("spec.namespaces[{index}]");
            self.name(&field, namespace, 63);
            if host_objects::is_namespace_of(namespace, host_namespace) {
                let problem = format!(
                    "{namespace} belongs to Innkeeper itself: no module reconciles it; name another namespace"
                );
                self.error(&field, problem);
            }
        }
    }

    pub(super) fn resync(&mut self, text: Option<&str>) -> Option<Duration> {
        let period = resync_period(text?);
        period.inspect_err(|problem| self.error("spec.resyncPeriod", problem.clone())).ok()
    }

    pub(super) fn recorded_reads(&mut self, given: Option<&Quantity>) -> usize {
        let Some(given) = given else { return RECORDED_READ_BYTES };
        let field = "spec.limits.recordedReads";
        self.quantity(field, given, RECORDED_READ_BYTES_MIN, RECORDED_READ_BYTES_MAX)
    }

    pub(super) fn limits(&mut self, limits: &module::Limits, defaults: Limits) -> Limits {
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

    pub(super) fn time(
        &mut self,
        field: &str,
        text: Option<&str>,
        max: Duration,
    ) -> Option<Duration> {
        let text = text?;
        let time = self.duration(field, text)?;
        if time.is_zero() || time > max {
            let most = max.as_secs();
            self.error(field, format!("{text} is out of bounds: more than 0s, at most {most}s"));
        }
        Some(time)
    }

    pub(super) fn writes(&mut self, given: Option<u32>) -> NonZeroU32 {
        let Some(given) = given else { return WRITES_PER_SECOND };
        let field = "spec.limits.writesPerSecond";
        self.count(field, given, 1, WRITES_PER_SECOND_MAX);
        NonZeroU32::new(given).unwrap_or(WRITES_PER_SECOND)
    }

    pub(super) fn rollout(&mut self, rollout: &module::Rollout) -> Rollout {
        let defaults = Rollout::default();
        let rollback_window = rollout.rollback_window.as_deref().and_then(|text| {
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
            newly_denied_max: rollout.max_newly_denied.unwrap_or(defaults.newly_denied_max),
            rollback_window: rollback_window.unwrap_or(defaults.rollback_window),
        }
    }

    pub(super) fn count(&mut self, field: &str, count: u32, min: u32, max: u32) -> usize {
        if count < min || count > max {
            self.error(field, format!("{count} is out of bounds: from {min} to {max}"));
        }
        count as usize
    }

    pub(super) fn quantity(
        &mut self,
        field: &str,
        quantity: &Quantity,
        min: usize,
        max: usize,
    ) -> usize {
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

    pub(super) fn duration(&mut self, field: &str, text: &str) -> Option<Duration> {
        let parsed = parse_duration(text);
        if parsed.is_none() {
            self.error(field, not_a_duration(text));
        }
        parsed
    }

    pub(super) fn selector(&mut self, selector: &Document) -> PrimarySelector {
        PrimarySelector::read(selector, "spec.selector", &mut |field, problem| {
            self.error(field, problem);
        })
    }
}
