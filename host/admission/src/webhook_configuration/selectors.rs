//! Which namespaces reach which webhook of a policy.
//!
//! The webhooks of a policy divide the namespaces: an override takes those that meet its
//! requirement and none of the earlier ones, and the webhook of the Module all others. So no
//! request is reviewed twice, and none is left out.

use innkeeper_contract::{LabelRequirement, SelectorOperator};
use innkeeper_core::host_objects::{HOST_NAMESPACE, MODULES_NAMESPACE};
use innkeeper_core::review_scope::SYSTEM_NAMESPACES;
use serde_json::{Value, json};

use super::{ModeOverride, PolicyWebhooks};

/// The label with the name of a namespace. The API server sets it and lets nobody change it.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The namespaces that no webhook selects. No label of a namespace can add another one: its
/// editors could evade policies.
pub fn never_selected(host_namespace: &str) -> Vec<String> {
    let own = [HOST_NAMESPACE, MODULES_NAMESPACE, host_namespace];
    let mut all: Vec<String> =
        SYSTEM_NAMESPACES.into_iter().chain(own).map(ToOwned::to_owned).collect();
    all.retain(|name| !name.is_empty());
    all.sort();
    all.dedup();
    all
}

/// The requirements on the namespaces of a webhook.
pub(super) fn of_namespaces(webhooks: &PolicyWebhooks<'_>, index: usize) -> Vec<LabelRequirement> {
    let by_name = |operator, values| LabelRequirement { key: NAME_LABEL.into(), operator, values };
    let excluded = never_selected(webhooks.host_namespace);
    let mut all = vec![by_name(SelectorOperator::NotIn, excluded)];
    if !webhooks.namespaces.is_empty() {
        let names = webhooks.namespaces.iter().cloned().collect();
        all.push(by_name(SelectorOperator::In, names));
    }
    all.extend(webhooks.namespace_selector.iter().cloned());
    let (earlier, own) = match index.checked_sub(1) {
        None => (&webhooks.overrides[..], None),
        Some(at) => (webhooks.overrides.get(..at).unwrap_or_default(), webhooks.overrides.get(at)),
    };
    all.extend(own.map(|one| one.namespaces.clone()));
    all.extend(earlier.iter().map(|ModeOverride { namespaces, .. }| negated(namespaces)));
    all
}

/// The requirement that holds exactly where another one does not.
fn negated(requirement: &LabelRequirement) -> LabelRequirement {
    let operator = match requirement.operator {
        SelectorOperator::In => SelectorOperator::NotIn,
        SelectorOperator::NotIn => SelectorOperator::In,
        SelectorOperator::Exists => SelectorOperator::DoesNotExist,
        SelectorOperator::DoesNotExist => SelectorOperator::Exists,
    };
    LabelRequirement { operator, ..requirement.clone() }
}

/// The requirements as the API server takes them; `{}` for none.
pub(super) fn document(requirements: &[LabelRequirement]) -> Value {
    match requirements {
        [] => json!({}),
        all => json!({ "matchExpressions": all }),
    }
}
