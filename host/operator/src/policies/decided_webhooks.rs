//! The webhook configuration that belongs to a decided policy.

use innkeeper_admission::webhook_configuration::failure::Coverage;
use innkeeper_admission::webhook_configuration::{
    self, ModeOverride, PolicyWebhooks, effective_failure_policy,
};
use innkeeper_admission::{FailurePolicy, Mode};
use innkeeper_contract::PolicyKind;
use innkeeper_core::well_known::BREAK_GLASS_ANNOTATION;
use innkeeper_core::{Object, foreign};
use innkeeper_modules::module::{self, PolicyMode};
use serde_json::Value;

use super::admission_settings::{AdmissionEndpoint, AdmissionSettings};
use super::policy_state::PolicyProblem;
use super::record::PolicyRecord;

/// How many bytes of the reason for a break-glass a message repeats.
const REASON_BYTES_MAX: usize = 256;

/// Where the replicas are, and whom the API server trusts.
#[derive(Clone, Copy)]
pub(super) struct Endpoint<'a> {
    pub(super) settings: &'a AdmissionSettings,
    pub(super) namespace: &'a str,
    /// The certificates that the API server is to trust, as PEM.
    pub(super) bundle: &'a str,
}

/// What a Module says of its policy.
pub(super) enum Consent {
    /// It reviews.
    Given,
    /// Nothing, or the Module is another one or is being deleted: the record goes soon.
    None,
    /// A user has switched it off.
    BreakGlass(PolicyProblem),
}

/// Whether the Module of a record lets its policy review.
pub(super) fn consent(record: &PolicyRecord, module: Option<&Object>) -> Consent {
    let Some(module) = module else { return Consent::None };
    let has_policy = serde_json::from_str::<Value>(&module.text)
        .is_ok_and(|document| document["spec"]["policy"].is_object());
    if !has_policy || module.deletion_timestamp.is_some() || *module.uid != *record.module_uid {
        return Consent::None;
    }
    match module.annotation(BREAK_GLASS_ANNOTATION) {
        None => Consent::Given,
        Some(reason) => Consent::BreakGlass(PolicyProblem {
            reason: "BreakGlass",
            message: format!(
                "The annotation {BREAK_GLASS_ANNOTATION} switches the policy off ({}); remove it, and the policy reviews again.",
                foreign::one_line(reason, REASON_BYTES_MAX)
            ),
        }),
    }
}

/// The webhook configuration of a record, and the position of its kind; `None` for a record without
/// a policy.
pub(super) fn configuration(
    record: &PolicyRecord,
    endpoint: Endpoint<'_>,
    coverage: Coverage,
) -> Option<(usize, Value)> {
    let of_guest = record.manifest.policy.as_ref()?;
    let settings = &record.settings;
    let policy = &settings.policy;
    let failure_policy = match endpoint.settings.endpoint {
        AdmissionEndpoint::Service { .. } => {
            let asked = policy.failure_policy.map(asked);
            effective_failure_policy(asked, of_guest.kind, Mode::Enforce, coverage)
        }
        AdmissionEndpoint::Url { .. } => FailurePolicy::Ignore,
    };
    let document = webhook_configuration::configuration(&PolicyWebhooks {
        module: &record.module,
        module_api_version: module::API_VERSION,
        module_uid: &record.module_uid,
        kind: of_guest.kind,
        rules: policy.rules_of(of_guest),
        match_conditions: of_guest
            .match_conditions
            .iter()
            .chain(&policy.match_conditions)
            .collect(),
        namespace_selector: policy.namespace_selector.requirements(),
        object_selector: policy.object_selector.requirements(),
        namespaces: &settings.namespaces,
        mode: mode(policy.mode),
        overrides: policy
            .overrides
            .iter()
            .map(|one| ModeOverride { namespaces: &one.namespaces, mode: mode(one.mode) })
            .collect(),
        failure_policy,
        timeout: settings.limits.limits().time,
        reinvocation: of_guest.reinvocation,
        client: endpoint.settings.client(endpoint.namespace),
        ca_bundle: endpoint.bundle,
        host_namespace: endpoint.namespace,
    });
    Some((kind_position(of_guest.kind), document))
}

/// What a configuration does with requests that nobody answers.
pub(super) fn shown(configuration: &Value) -> FailurePolicy {
    if fails(configuration) { FailurePolicy::Fail } else { FailurePolicy::Ignore }
}

/// Whether a webhook of a configuration denies requests that nobody answers.
pub(super) fn fails(configuration: &Value) -> bool {
    let mut webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    webhooks.any(|webhook| webhook["failurePolicy"] == "Fail")
}

/// The position of the kind of a policy's configuration among those of webhook configurations.
pub(super) fn kind_position(kind: PolicyKind) -> usize {
    match kind {
        PolicyKind::Validate => 0,
        PolicyKind::Mutate => 1,
    }
}

fn mode(mode: PolicyMode) -> Mode {
    match mode {
        PolicyMode::Enforce => Mode::Enforce,
        PolicyMode::Warn => Mode::Warn,
        PolicyMode::Audit => Mode::Audit,
    }
}

fn asked(policy: module::FailurePolicy) -> FailurePolicy {
    match policy {
        module::FailurePolicy::Fail => FailurePolicy::Fail,
        module::FailurePolicy::Ignore => FailurePolicy::Ignore,
    }
}
