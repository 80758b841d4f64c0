//! The grant of a Module to review requests: `spec.policy`.
//!
//! Without it, an update of a component that only reconciles could make it a webhook for the whole
//! cluster.

use std::collections::BTreeSet;

use innkeeper_contract::{Manifest, PolicyKind, PolicyManifest};

use crate::machine::{Rejection, RetryPolicy, reason};
use crate::policy_manifest;
use crate::validated_spec::{ValidatedPolicy, ValidatedSpec};

/// Checks that a Module has `spec.policy` exactly if its guest has a policy, and that both fit.
///
/// # Errors
/// If only one of them has a policy, or `spec.policy` does not fit that of the guest.
pub(crate) fn check(manifest: &Manifest, spec: &ValidatedSpec) -> Result<(), Rejection> {
    let (reason, message) = match (&manifest.policy, &spec.policy) {
        (None, None) => return Ok(()),
        (Some(policy), None) => (
            reason::POLICY_NOT_GRANTED,
            format!(
                "the guest has a policy, which {} requests to the API server, and the Module has no spec.policy; add `policy: {{mode: Audit}}` to let it review without consequences, or `policy: {{}}` to let it decide",
                match policy.kind {
                    PolicyKind::Validate => "allows or denies",
                    PolicyKind::Mutate => "changes",
                }
            ),
        ),
        (None, Some(_)) => (
            reason::POLICY_MISSING,
            "the Module has spec.policy, and the guest has no policy; remove spec.policy, or use a guest with a policy".to_owned(),
        ),
        (Some(of_guest), Some(of_module)) => match misfits(of_guest, of_module) {
            misfits if misfits.is_empty() => return Ok(()),
            misfits => (reason::INVALID_POLICY_SETTINGS, misfits.join("; ")),
        },
    };
    Err(Rejection::new(reason, message, RetryPolicy::WhenSpecChanges))
}

/// The settings of the Module that do not fit the policy of the guest, each with the reason.
fn misfits(of_guest: &PolicyManifest, of_module: &ValidatedPolicy) -> Vec<String> {
    let mut misfits = Vec::new();
    if of_guest.kind == PolicyKind::Mutate {
        policy_manifest::check_mutable("spec.policy.rules", &of_module.rules, &mut misfits);
    }
    // The API server accepts each name once in a webhook.
    let taken: BTreeSet<&str> =
        of_guest.match_conditions.iter().map(|condition| &*condition.name).collect();
    for (index, condition) in of_module.match_conditions.iter().enumerate() {
        if taken.contains(&*condition.name) {
            misfits.push(format!(
                "spec.policy.matchConditions[{index}].name: the guest has a condition {:?} too; choose another name",
                condition.name
            ));
        }
    }
    misfits
}

#[cfg(test)]
mod tests {
    use innkeeper_sandbox::Limits;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::manifest;
    use crate::{Module, SourceKind};

    fn spec(policy: &Value) -> ValidatedSpec {
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "m"}, "spec": {"source": {"configMap": {"name": "m-1"}},
                "serviceAccountName": "m", "policy": policy}});
        let module = Module::from_value(&module).unwrap();
        ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None).unwrap()
    }

    /// The reason and the message for a guest with this policy; `null` for one without.
    fn refused(of_guest: &Value, of_module: &Value) -> Option<(String, String)> {
        let mut manifest = manifest("g");
        manifest.policy = serde_json::from_value(of_guest.clone()).unwrap();
        let rejection = check(&manifest, &spec(of_module)).err()?;
        assert_eq!(rejection.retry, RetryPolicy::WhenSpecChanges);
        Some((rejection.reason, rejection.message))
    }

    fn guest(kind: &str) -> Value {
        json!({"kind": kind, "matchConditions": [{"name": "own", "expression": "true"}],
            "rules": [{"groups": [""], "resources": ["pods"], "operations": ["CREATE"]}]})
    }

    #[test]
    fn policy_and_its_settings_need_each_other() {
        assert_eq!(refused(&Value::Null, &Value::Null), None);
        assert_eq!(refused(&guest("Validate"), &json!({})), None);
        let (reason, message) = refused(&guest("Mutate"), &Value::Null).unwrap();
        assert_eq!(reason, "PolicyNotGranted");
        assert!(message.contains("changes requests") && message.contains("mode: Audit"));
        assert_eq!(refused(&Value::Null, &json!({})).unwrap().0, "PolicyMissing");
    }

    #[test]
    fn module_lets_no_policy_change_what_grants_rights() {
        let rule = json!({"groups": ["rbac.authorization.k8s.io"], "resources": ["roles"],
            "operations": ["CREATE"]});
        let rules = json!({ "rules": [rule] });
        assert_eq!(refused(&guest("Validate"), &rules), None);
        let (reason, message) = refused(&guest("Mutate"), &rules).unwrap();
        assert_eq!(reason, "InvalidPolicySettings");
        assert!(message.starts_with("spec.policy.rules[0].groups: "), "{message}");
    }

    #[test]
    fn condition_with_the_name_of_one_of_the_guest_is_refused() {
        let named = |name: &str| json!({"matchConditions": [{"name": name, "expression": "true"}]});
        assert_eq!(refused(&guest("Validate"), &named("other")), None);
        let (_, message) = refused(&guest("Validate"), &named("own")).unwrap();
        assert!(message.starts_with("spec.policy.matchConditions[0].name: "), "{message}");
    }
}
