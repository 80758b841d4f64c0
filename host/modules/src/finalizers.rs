//! Whose finalizer a guest may name: one of its own domain, or the one that is made of the name of
//! its Module.
//!
//! The name comes from the guest, the domains from the API server (the group that serves the
//! primary) and from the Module (`spec.allowedCRDGroups`). A guest that decorates its primaries
//! shares their group with the module that controls them, so that group gives it no domain.

use innkeeper_contract::{Kind, Manifest};
use innkeeper_core::control;
use innkeeper_core::host_names::{self, DOMAIN};

use crate::machine::{Rejection, RetryPolicy};
use crate::validated_spec::{ValidatedSpec, is_reserved_group};

/// Checks the finalizer that a guest of the Module `module` names.
///
/// # Errors
/// If it belongs to another domain or to another module.
pub(crate) fn check(
    module: &str,
    manifest: &Manifest,
    spec: &ValidatedSpec,
) -> Result<(), Rejection> {
    let Some(name) = manifest.finalizer.as_deref().filter(|name| !name.is_empty()) else {
        return Ok(());
    };
    if name == format!("{DOMAIN}/{module}") {
        return Ok(());
    }
    let domain = host_names::domain(name);
    let of_primary = manifest.primary.as_ref().map(Kind::group);
    let of_primary = of_primary.filter(|_| !control::decorates(manifest));
    let granted = spec.allowed_crd_groups.iter().map(String::as_str);
    let is_own = of_primary
        .into_iter()
        .chain(granted)
        .any(|group| !group.is_empty() && host_names::is_within(domain, group));
    if is_own && !is_reserved_group(domain) && !host_names::is_reserved(name) {
        return Ok(());
    }
    let message = format!(
        "the finalizer \"{}\" does not belong to this module: name one of the group of the primary that the module controls, or of a group in spec.allowedCRDGroups, or leave the name empty for {DOMAIN}/{module}",
        host_names::shortened(name)
    );
    Err(Rejection::new("FinalizerNotGranted", message, RetryPolicy::WhenSpecChanges))
}

#[cfg(test)]
mod tests {
    use innkeeper_sandbox::Limits;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::manifest;
    use crate::{Module, SourceKind};

    fn spec(groups: &Value) -> ValidatedSpec {
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "m"}, "spec": {"source": {"configMap": {"name": "m-1"}},
                "serviceAccountName": "m", "allowedCRDGroups": groups}});
        ValidatedSpec::new(
            &Module::from_value(&module).unwrap(),
            SourceKind::Cluster,
            Limits::default(),
            None,
        )
        .unwrap()
    }

    /// Whether a guest whose primary is a Podroute of `quay.io` may name this finalizer.
    fn may(name: &str, change: impl FnOnce(&mut Manifest), groups: &Value) -> bool {
        let mut manifest = manifest("g");
        manifest.finalizer = Some(name.to_owned());
        change(&mut manifest);
        check("m", &manifest, &spec(groups)).is_ok()
    }

    #[test]
    fn finalizer_of_the_primarys_group_or_of_the_module_is_allowed() {
        for name in ["", "innkeeper.dev/m", "quay.io/cleanup", "x.quay.io/a", "finalizer.quay.io"] {
            assert!(may(name, |_| {}, &json!([])), "{name}");
        }
        assert!(may("example.com/a", |_| {}, &json!(["example.com"])));
    }

    #[test]
    fn finalizer_of_another_domain_or_module_is_refused() {
        for name in [
            "innkeeper.dev/other",
            "innkeeper.dev/module",
            "m.innkeeper.dev/x",
            "INNKEEPER.dev/m",
            "example.com/a",
            "notquay.io/a",
            "quay.io.example.com/a",
            "kubernetes.io/pvc-protection",
        ] {
            assert!(!may(name, |_| {}, &json!([])), "{name}");
        }
    }

    #[test]
    fn guest_that_decorates_has_no_domain_of_its_primarys_group() {
        assert!(!may("quay.io/a", |manifest| manifest.decorates = true, &json!([])));
        assert!(may("quay.io/a", |manifest| manifest.decorates = true, &json!(["quay.io"])));
        let ingress = Kind::namespaced("networking.k8s.io/v1", "Ingress", "ingresses");
        assert!(!may(
            "networking.k8s.io/a",
            |manifest| manifest.primary = Some(ingress),
            &json!([])
        ));
        let apps = Kind::namespaced("apps/v1", "Deployment", "deployments");
        assert!(!may("apps/a", |manifest| manifest.primary = Some(apps), &json!([])));
        let core = Kind::cluster("v1", "Namespace", "namespaces");
        assert!(!may("kubernetes", |manifest| manifest.primary = Some(core), &json!([])));
    }

    #[test]
    fn primary_below_the_hosts_domain_gives_no_finalizer_of_the_host() {
        let stack = Kind::namespaced("example.innkeeper.dev/v1", "Stack", "stacks");
        let named = |name| may(name, |manifest| manifest.primary = Some(stack.clone()), &json!([]));
        assert!(!named("example.innkeeper.dev/a"));
        assert!(named("innkeeper.dev/m"));
    }
}
