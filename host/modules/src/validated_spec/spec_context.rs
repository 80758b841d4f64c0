//! The facts of a host by which it checks each Module's spec.

use std::collections::BTreeSet;

use innkeeper_sandbox::Limits;

use super::{SourceKind, SpecError, SpecErrors, ValidatedSpec};
use crate::module::Module;

/// The facts of a host by which it checks each Module's spec.
#[derive(Clone, Debug)]
pub struct SpecContext {
    /// Where its Modules are.
    pub source_kind: SourceKind,
    /// The limits of Modules that give none.
    pub defaults: Limits,
    /// The namespace that the host itself runs in.
    pub namespace: Option<Box<str>>,
    /// The namespaces in which the host may reconcile; empty for all.
    pub namespaces: BTreeSet<String>,
}

impl SpecContext {
    /// Checks a Module's values for this host. A Module without `spec.namespaces` gets those of
    /// the host.
    ///
    /// # Errors
    /// As of [`ValidatedSpec::new`], for each namespace in which the host may not reconcile, and
    /// for a missing ServiceAccount if the host may not reconcile everywhere.
    pub fn validate(&self, module: &Module) -> Result<ValidatedSpec, SpecErrors> {
        let namespace = self.namespace.as_deref();
        let mut spec = ValidatedSpec::new(module, self.source_kind, self.defaults, namespace)?;
        if self.namespaces.is_empty() {
            return Ok(spec);
        }
        let of_host: Vec<&str> = self.namespaces.iter().map(String::as_str).collect();
        let others = spec.namespaces.difference(&self.namespaces).map(|name| SpecError {
            field: "spec.namespaces".to_owned(),
            message: format!(
                "the host does not reconcile in {name}: it runs with --namespaces {}; name one of these",
                of_host.join(",")
            ),
        });
        // Without one the module would act as the host, which may act as every other module.
        let no_account = spec.service_account.is_none().then(|| SpecError {
            field: "spec.serviceAccountName".to_owned(),
            message: "is missing: name the ServiceAccount (in the namespace of the host) that this module acts as; with --namespaces no module acts as the host".to_owned(),
        });
        let errors: Vec<SpecError> = others.chain(no_account).collect();
        if !errors.is_empty() {
            return Err(SpecErrors(errors));
        }
        if spec.namespaces.is_empty() {
            spec.namespaces.clone_from(&self.namespaces);
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespaces(host: &[&str], spec: &[&str]) -> Result<Vec<String>, String> {
        let spec = json!({"source": {"file": "m.wasm"}, "serviceAccountName": "m",
            "namespaces": spec});
        validate(host, &spec)
    }

    fn validate(host: &[&str], spec: &serde_json::Value) -> Result<Vec<String>, String> {
        let module = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "m"}, "spec": spec});
        let context = SpecContext {
            source_kind: SourceKind::Directory,
            defaults: Limits::default(),
            namespace: None,
            namespaces: host.iter().map(|name| (*name).to_owned()).collect(),
        };
        let checked = context.validate(&Module::from_value(&module).unwrap());
        checked
            .map(|spec| spec.namespaces.into_iter().collect())
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn namespaces_of_the_host_limit_those_of_a_module() {
        assert_eq!(namespaces(&[], &["c"]).unwrap(), ["c"]);
        assert_eq!(namespaces(&["a", "b"], &[]).unwrap(), ["a", "b"]);
        assert_eq!(namespaces(&["a", "b"], &["b"]).unwrap(), ["b"]);
        assert_eq!(
            namespaces(&["a", "b"], &["b", "c"]).unwrap_err(),
            "spec.namespaces: the host does not reconcile in c: it runs with --namespaces a,b; name one of these"
        );
    }
    #[test]
    fn module_without_an_account_is_refused_when_the_host_has_rights_in_some_namespaces_only() {
        let spec = json!({"source": {"file": "m.wasm"}});
        assert_eq!(validate(&[], &spec).unwrap(), [""; 0]);
        let refused = validate(&["a"], &spec).unwrap_err();
        assert!(refused.starts_with("spec.serviceAccountName: is missing"), "{refused}");
    }
}
