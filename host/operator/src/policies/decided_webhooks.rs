//! The webhook configuration that belongs to a decided policy.

use innkeeper_admission::FailurePolicy;
use innkeeper_admission::webhook_configuration::failure::Coverage;
use innkeeper_admission::webhook_configuration::{
    self, ModeOverride, PolicyWebhooks, effective_failure_policy,
};
use innkeeper_core::well_known::BREAK_GLASS_ANNOTATION;
use innkeeper_core::{Object, foreign};
use innkeeper_modules::module;
use serde_json::Value;

use super::admission_mode::{admission_failure_policy, admission_mode};
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

/// Whether a Module lets its policy review.
pub(super) enum PolicyGrant {
    /// `spec.policy` of the Module lets the policy review.
    Given,
    /// The Module has no `spec.policy`, is another one or is being deleted: the supervisor is about
    /// to delete the record.
    Missing,
    /// A user has switched the policy off.
    BreakGlass(PolicyProblem),
}

/// Returns whether the Module of a record lets its policy review.
pub(super) fn grant(record: &PolicyRecord, module: Option<&Object>) -> PolicyGrant {
    let Some(module) = module else { return PolicyGrant::Missing };
    let has_policy = serde_json::from_str::<Value>(&module.text.read())
        .is_ok_and(|document| document["spec"]["policy"].is_object());
    if !has_policy || module.deletion_timestamp.is_some() || *module.uid != *record.module_uid {
        return PolicyGrant::Missing;
    }
    match module.annotation(BREAK_GLASS_ANNOTATION) {
        None => PolicyGrant::Given,
        Some(reason) => PolicyGrant::BreakGlass(PolicyProblem {
            reason: "BreakGlass",
            message: format!(
                "The annotation {BREAK_GLASS_ANNOTATION} switches the policy off ({}); remove it, and the policy reviews again.",
                foreign::one_line(reason, REASON_BYTES_MAX)
            ),
        }),
    }
}

/// The webhook configuration of a record; `None` for a record without a policy.
pub(super) fn configuration(
    record: &PolicyRecord,
    endpoint: Endpoint<'_>,
    coverage: Coverage,
) -> Option<Value> {
    let of_guest = record.manifest.policy.as_ref()?;
    let settings = &record.settings;
    let policy = &settings.policy;
    let failure_policy = match endpoint.settings.endpoint {
        AdmissionEndpoint::Service { .. } => {
            let spec = policy.failure_policy.map(admission_failure_policy);
            effective_failure_policy(spec, of_guest.kind, coverage)
        }
        AdmissionEndpoint::Url { .. } => FailurePolicy::Ignore,
    };
    Some(webhook_configuration::configuration(&PolicyWebhooks {
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
        mode: admission_mode(policy.mode),
        overrides: policy
            .overrides
            .iter()
            .map(|one| ModeOverride { namespaces: &one.namespaces, mode: admission_mode(one.mode) })
            .collect(),
        failure_policy,
        timeout: settings.limits.limits().time,
        reinvocation: of_guest.reinvocation,
        client: endpoint.settings.client(endpoint.namespace),
        ca_bundle: endpoint.bundle,
        host_namespace: endpoint.namespace,
    }))
}

/// The failure policy of a configuration: `Fail` if that of one of its webhooks is.
pub(super) fn failure_policy_of(configuration: &Value) -> FailurePolicy {
    let mut webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    if webhooks.any(|webhook| webhook["failurePolicy"] == "Fail") {
        FailurePolicy::Fail
    } else {
        FailurePolicy::Ignore
    }
}
