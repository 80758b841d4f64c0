//! Whether a Module lets its guest review requests: warnings before a guest is swapped in.

use innkeeper_contract::Manifest;
use serde_json::Value;

use crate::component::Opened;
use crate::out;

/// Says whether the host would refuse a guest for this Module of the cluster, since `spec.policy`
/// is missing or superfluous.
pub(crate) fn print_mismatch(module: &Value, opened: &Opened) {
    if let Some(message) = mismatch(module, opened.guest.manifest()) {
        out::eprint(&message);
    }
}

/// Says that a host with `--modules` asks no policy.
pub(crate) fn print_unasked(opened: &Opened) {
    if let Some(message) = unasked(opened.guest.manifest()) {
        out::eprint(&message);
    }
}

fn mismatch(module: &Value, manifest: &Manifest) -> Option<String> {
    let name = module["metadata"]["name"].as_str().unwrap_or_default();
    match (&manifest.policy, module["spec"]["policy"].is_null()) {
        (Some(_), true) => Some(format!(
            "warning: the guest has a policy and the Module {name} no spec.policy, so the host refuses the guest (PolicyNotGranted); add `policy: {{mode: Audit}}` to spec, or `policy: {{}}` to let it decide"
        )),
        (None, false) => Some(format!(
            "warning: the Module {name} has spec.policy and the guest no policy, so the host refuses the guest (PolicyMissing); remove spec.policy, or push a guest with a policy"
        )),
        _ => None,
    }
}

fn unasked(manifest: &Manifest) -> Option<String> {
    manifest.policy.as_ref().map(|_| {
        "warning: the guest has a policy, and a host with --modules reviews no requests; leave --modules out, or ask the policy about files with `innkeeper review`".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(policy: &Value) -> Manifest {
        let manifest = json!({"name": "labels", "policy": policy});
        serde_json::from_value(manifest).unwrap()
    }

    fn policy() -> Value {
        json!({"kind": "Validate", "rules": [
            {"groups": [""], "resources": ["pods"], "operations": ["CREATE"]}]})
    }

    #[test]
    fn policy_without_the_consent_of_its_module_is_named_and_the_reverse() {
        let module = |spec: Value| json!({"metadata": {"name": "m"}, "spec": spec});
        let warned = |spec: Value, policy: &Value| mismatch(&module(spec), &manifest(policy));
        let refused = warned(json!({}), &policy()).unwrap();
        assert!(refused.contains("the Module m no spec.policy"), "{refused}");
        assert!(refused.contains("PolicyNotGranted"), "{refused}");
        let missing = warned(json!({"policy": {"mode": "Warn"}}), &Value::Null).unwrap();
        assert!(missing.contains("PolicyMissing"), "{missing}");
        assert_eq!(warned(json!({"policy": {}}), &policy()), None);
        assert_eq!(warned(json!({}), &Value::Null), None);
    }

    #[test]
    fn policy_of_a_folder_is_named_as_unasked() {
        assert!(unasked(&manifest(&policy())).unwrap().contains("reviews no requests"));
        assert_eq!(unasked(&manifest(&Value::Null)), None);
    }
}
