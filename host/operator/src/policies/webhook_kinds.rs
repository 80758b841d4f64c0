//! The kinds of webhook configurations.

use std::sync::LazyLock;

use innkeeper_contract::{Kind, PolicyKind};

/// The kinds of policies, each with a kind of webhook configuration.
pub(super) const POLICY_KINDS: [PolicyKind; 2] = [PolicyKind::Validate, PolicyKind::Mutate];

static VALIDATING: LazyLock<Kind> = LazyLock::new(|| {
    let (kind, plural) = ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
    Kind::cluster("admissionregistration.k8s.io/v1", kind, plural)
});

static MUTATING: LazyLock<Kind> = LazyLock::new(|| {
    let (kind, plural) = ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
    Kind::cluster("admissionregistration.k8s.io/v1", kind, plural)
});

/// Returns the kind of the webhook configuration that a policy of this kind has.
pub(super) fn webhook_kind(policy: PolicyKind) -> &'static Kind {
    match policy {
        PolicyKind::Validate => &VALIDATING,
        PolicyKind::Mutate => &MUTATING,
    }
}
