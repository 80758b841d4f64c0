//! The webhook configuration of a policy: which requests the API server sends to the host.
//!
//! The host writes one configuration for each policy, which the Module owns. Whatever a Module
//! says, its webhooks leave out the requests that repair the cluster or the host: those in system
//! namespaces and in namespaces of the host, and those of [`conditions`].
//!
//! - [`conditions`]: the requests that no policy reviews, as CEL.
//! - [`selectors`]: each namespace reaches exactly one webhook of a policy.
//! - [`rules`]: the rules of the policy, as the API server takes them.
//! - [`failure`]: the failure policy.
//! - [`comparison`]: whether a configuration is still as the host has written it.
//!
//! Source of the formats: `admissionregistration.k8s.io/v1` of Kubernetes 1.35.

pub mod comparison;
pub mod conditions;
pub mod failure;
mod rules;
pub mod selectors;

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_contract::{LabelRequirement, MatchCondition, PolicyKind, PolicyRule};
use innkeeper_core::host_names::DOMAIN;
use innkeeper_core::host_objects::policy_object_name;
use innkeeper_core::well_known::POLICY_LABEL;
use serde_json::{Value, json};

pub use self::comparison::equals;
pub use self::failure::effective_failure_policy;

use crate::mode::{FailurePolicy, Mode};
use crate::reviewer::WebhookRef;

/// How much longer than the limit of one call the API server waits, in seconds: for the connection,
/// the permit of the sandbox, and the response.
const TIMEOUT_RESERVE: u64 = 2;

/// The longest `timeoutSeconds` that the API server accepts.
const TIMEOUT_SECONDS_MAX: u64 = 30;

/// The input of [`configuration`].
#[derive(Clone, Debug)]
pub struct PolicyWebhooks<'a> {
    /// The name of the Module, at most 63 bytes.
    pub module: &'a str,
    /// The API version of the Module, which owns the configuration.
    pub module_api_version: &'a str,
    /// The uid of the Module.
    pub module_uid: &'a str,
    /// Whether the policy only decides, or also changes objects.
    pub kind: PolicyKind,
    /// The requests that the policy reviews.
    pub rules: &'a [PolicyRule],
    /// The conditions of the guest, and then those of the Module.
    pub match_conditions: Vec<&'a MatchCondition>,
    /// Namespaces whose objects are reviewed, by their labels.
    pub namespace_selector: Vec<LabelRequirement>,
    /// Objects that are reviewed, by their labels.
    pub object_selector: Vec<LabelRequirement>,
    /// The only namespaces whose objects are reviewed; empty for all, and for cluster-scoped
    /// objects.
    pub namespaces: &'a BTreeSet<String>,
    /// The mode where no override applies.
    pub mode: Mode,
    /// Other modes for some namespaces; the first that fits counts.
    pub overrides: Vec<ModeOverride<'a>>,
    /// The failure policy where the mode is Enforce: see [`effective_failure_policy`]. In the other
    /// modes it is `Ignore`.
    pub failure_policy: FailurePolicy,
    /// The limit of one call of the guest.
    pub timeout: Duration,
    /// Whether a policy that changes objects is called again after a later change.
    pub reinvocation: bool,
    /// Where the replicas are reached.
    pub client: ClientConfig<'a>,
    /// The certificates that the API server trusts, as PEM.
    pub ca_bundle: &'a str,
    /// The namespace in which the host runs.
    pub host_namespace: &'a str,
}

/// Another mode for some namespaces.
#[derive(Clone, Copy, Debug)]
pub struct ModeOverride<'a> {
    /// Which namespaces.
    pub namespaces: &'a LabelRequirement,
    /// The mode in these namespaces.
    pub mode: Mode,
}

/// Where the API server reaches the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientConfig<'a> {
    /// At a Service.
    Service {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
        /// Its port.
        port: u16,
    },
    /// At a URL, without the path of the policy.
    Url(&'a str),
}

/// Makes the webhook configuration of a policy.
pub fn configuration(webhooks: &PolicyWebhooks<'_>) -> Value {
    let kind = match webhooks.kind {
        PolicyKind::Validate => "ValidatingWebhookConfiguration",
        PolicyKind::Mutate => "MutatingWebhookConfiguration",
    };
    let all = (0..=webhooks.overrides.len()).filter_map(|index| webhook(webhooks, index));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": policy_object_name(webhooks.module),
            "labels": { POLICY_LABEL: webhooks.module },
            "ownerReferences": [{
                "apiVersion": webhooks.module_api_version,
                "kind": "Module",
                "name": webhooks.module,
                "uid": webhooks.module_uid,
            }],
        },
        "webhooks": all.collect::<Vec<_>>(),
    })
}

/// One webhook: 0 is the mode of the Module, and each further one an override. `None` for one that
/// no request could reach.
fn webhook(webhooks: &PolicyWebhooks<'_>, index: usize) -> Option<Value> {
    let PolicyWebhooks { module, namespaces, .. } = *webhooks;
    let (name, mode) = match index.checked_sub(1).map(|at| webhooks.overrides.get(at)) {
        None => (format!("{module}.policy.{DOMAIN}"), webhooks.mode),
        Some(one) => (format!("override-{index}.{module}.policy.{DOMAIN}"), one?.mode),
    };
    let reach = rules::Reach {
        // Cluster-scoped objects have no namespace whose labels could give them another mode.
        has_cluster_scoped: index == 0 && namespaces.is_empty(),
        has_namespaces: namespaces.is_empty(),
    };
    let rules = rules::rules(webhooks.rules, reach);
    if rules.is_empty() {
        return None;
    }
    let failure_policy = match mode {
        Mode::Enforce => webhooks.failure_policy,
        Mode::Warn | Mode::Audit => FailurePolicy::Ignore,
    };
    let mut webhook = json!({
        "name": name,
        "clientConfig": client_config(webhooks, index),
        "rules": rules,
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": selectors::document(&selectors::of_namespaces(webhooks, index)),
        "objectSelector": selectors::document(&webhooks.object_selector),
        "matchConditions": conditions::all(&webhooks.match_conditions),
        "sideEffects": "None",
        "timeoutSeconds": timeout_seconds(webhooks.timeout),
        "admissionReviewVersions": ["v1"],
    });
    if webhooks.kind == PolicyKind::Mutate {
        let again = if webhooks.reinvocation { "IfNeeded" } else { "Never" };
        webhook["reinvocationPolicy"] = again.into();
    }
    Some(webhook)
}

fn client_config(webhooks: &PolicyWebhooks<'_>, index: usize) -> Value {
    let path = WebhookRef { module: webhooks.module.to_owned(), index }.path();
    let bundle = STANDARD.encode(webhooks.ca_bundle);
    match webhooks.client {
        ClientConfig::Service { namespace, name, port } => json!({
            "service": { "namespace": namespace, "name": name, "port": port, "path": path },
            "caBundle": bundle,
        }),
        ClientConfig::Url(url) => json!({
            "url": format!("{}{path}", url.trim_end_matches('/')),
            "caBundle": bundle,
        }),
    }
}

/// How long the API server waits for a policy with this limit of one call, in seconds.
fn timeout_seconds(call: Duration) -> u64 {
    let whole = call.as_secs().saturating_add(u64::from(call.subsec_nanos() > 0));
    whole.saturating_add(TIMEOUT_RESERVE).min(TIMEOUT_SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_server_waits_longer_than_a_call_and_no_longer_than_it_may() {
        for (milliseconds, seconds) in [(1, 3), (1_000, 3), (1_001, 4), (20_000, 22), (90_000, 30)]
        {
            let waits = timeout_seconds(Duration::from_millis(milliseconds));
            assert_eq!(waits, seconds, "{milliseconds}");
        }
        assert_eq!(timeout_seconds(Duration::MAX), 30);
    }
}
