//! Checks `spec.valueSources` of a Module.

use std::collections::BTreeSet;

use innkeeper_core::value_source::{KEYS_MAX, TargetNamespaces, ValueSourceGrant};
use innkeeper_core::{ObjectKey, foreign, host_objects, names};

use super::checker::SpecChecker;
use crate::module::ValueSource;

/// The most value sources of a Module.
const SOURCES_MAX: usize = 32;

/// The most namespaces that one source names.
const NAMESPACES_MAX: usize = 256;

/// What stands for every namespace.
const ALL: &str = "*";

/// How many bytes of an invalid key a message quotes.
const QUOTED_BYTES_MAX: usize = 253;

impl SpecChecker {
    /// Objects whose values the host copies. `namespaces` are those of the primaries.
    pub(super) fn value_sources(
        &mut self,
        sources: &[ValueSource],
        namespaces: &[String],
        host_namespace: Option<&str>,
    ) -> Vec<ValueSourceGrant> {
        let field = "spec.valueSources";
        if sources.len() > SOURCES_MAX {
            self.error(field, format!("has {} items; give at most {SOURCES_MAX}", sources.len()));
        }
        let mut named = BTreeSet::new();
        let mut grants = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            let field = format!("{field}[{index}]");
            self.source_place(&field, source, namespaces, host_namespace);
            if !named.insert((source.kind, &source.namespace, &source.name)) {
                let problem = format!(
                    "{} {}/{} is given twice; join its keys and its toNamespaces in one item",
                    source.kind, source.namespace, source.name
                );
                self.error(&field, problem);
            }
            self.source_keys(&field, &source.keys);
            let to_namespaces = self.target_namespaces(&field, &source.to_namespaces);
            grants.push(ValueSourceGrant {
                kind: source.kind,
                key: ObjectKey::new(&source.namespace, &source.name),
                keys: (!source.keys.is_empty()).then(|| source.keys.clone()),
                to_namespaces,
            });
        }
        grants
    }

    fn source_place(
        &mut self,
        field: &str,
        source: &ValueSource,
        namespaces: &[String],
        host_namespace: Option<&str>,
    ) {
        let ValueSource { namespace, name, .. } = source;
        self.subdomain(&format!("{field}.name"), name);
        let field = format!("{field}.namespace");
        self.name(&field, namespace, 63);
        if host_objects::is_namespace_of(namespace, host_namespace) {
            let problem = format!(
                "{namespace} belongs to Innkeeper itself: the host copies nothing from it; name another namespace"
            );
            self.error(&field, problem);
        } else if !namespaces.is_empty() && !namespaces.contains(namespace) {
            let problem = format!(
                "{namespace} is not in spec.namespaces, so the host does not watch it for this module; add it there"
            );
            self.error(&field, problem);
        }
    }

    fn source_keys(&mut self, field: &str, keys: &[String]) {
        let field = format!("{field}.keys");
        if keys.len() > KEYS_MAX {
            self.error(&field, format!("has {} keys; give at most {KEYS_MAX}", keys.len()));
        }
        for (index, key) in keys.iter().enumerate() {
            if !names::is_data_key(key) {
                let problem = format!(
                    "{:?} is not a key of a Secret or ConfigMap: letters, digits, '-', '_' and '.', at most 253 characters",
                    foreign::one_line(key, QUOTED_BYTES_MAX)
                );
                self.error(&format!("{field}[{index}]"), problem);
            }
        }
    }

    fn target_namespaces(&mut self, field: &str, namespaces: &[String]) -> TargetNamespaces {
        let field = format!("{field}.toNamespaces");
        match namespaces {
            [] => self.error(&field, "is empty: name namespaces, or \"*\" for all"),
            [one] if one == ALL => return TargetNamespaces::All,
            names if names.len() > NAMESPACES_MAX => {
                let problem = format!("has {} items; give at most {NAMESPACES_MAX}", names.len());
                self.error(&field, problem);
            }
            names if names.iter().any(|name| name == ALL) => {
                self.error(&field, "has \"*\" and names: give \"*\" alone, or names only");
            }
            names => {
                for (index, name) in names.iter().enumerate() {
                    self.name(&format!("{field}[{index}]"), name, 63);
                }
            }
        }
        TargetNamespaces::Named(namespaces.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::ValueSourceKind;
    use innkeeper_sandbox::Limits;
    use serde_json::{Value, json};

    use super::super::{SourceKind, ValidatedSpec};
    use super::*;
    use crate::module::{self, Module};

    fn check(spec: &Value) -> Result<ValidatedSpec, String> {
        let mut spec = spec.clone();
        spec["source"] = json!({"configMap": {"name": "m"}});
        spec["serviceAccountName"] = json!("m");
        let document = json!({"apiVersion": module::API_VERSION, "kind": module::KIND,
            "metadata": {"name": "m"}, "spec": spec});
        let module = Module::from_value(&document).map_err(|error| error.to_string())?;
        ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), Some("operators"))
            .map_err(|errors| errors.to_string())
    }

    #[test]
    fn source_becomes_a_grant_of_its_keys_and_namespaces() {
        let spec = check(&json!({"valueSources": [
            {"kind": "Secret", "namespace": "central", "name": "pull", "keys": ["a"], "toNamespaces": ["*"]},
            {"kind": "ConfigMap", "namespace": "central", "name": "pull", "toNamespaces": ["x", "y"]},
        ]}))
        .unwrap();
        let key = ObjectKey::new("central", "pull");
        let named = TargetNamespaces::Named(vec!["x".to_owned(), "y".to_owned()]);
        let expected = [
            (ValueSourceKind::Secret, Some(vec!["a".to_owned()]), TargetNamespaces::All),
            (ValueSourceKind::ConfigMap, None, named),
        ];
        let expected = expected.map(|(kind, keys, to_namespaces)| ValueSourceGrant {
            kind,
            key: key.clone(),
            keys,
            to_namespaces,
        });
        assert_eq!(spec.value_sources, expected);
    }

    #[test]
    fn source_that_the_host_cannot_or_may_not_copy_is_an_invalid_spec() {
        let source = |member: &str, value: Value| {
            let mut source = json!({"kind": "Secret", "namespace": "central", "name": "pull", "toNamespaces": ["*"]});
            source[member] = value;
            json!({ "valueSources": [source] })
        };
        let mut twice = source("keys", json!(["a"]));
        let copy = twice["valueSources"][0].clone();
        twice["valueSources"].as_array_mut().unwrap().push(copy);
        let mut elsewhere = source("keys", json!(["a"]));
        elsewhere["namespaces"] = json!(["shop"]);
        let mut many = source("keys", json!(["a"]));
        many["valueSources"] = (0..33)
            .map(|index| {
                let mut one = many["valueSources"][0].clone();
                one["name"] = json!(format!("s{index}"));
                one
            })
            .collect();
        for (spec, expected) in [
            (source("namespace", json!("innkeeper-system")), "belongs to Innkeeper itself"),
            (source("namespace", json!("innkeeper-modules")), "belongs to Innkeeper itself"),
            (source("namespace", json!("operators")), "belongs to Innkeeper itself"),
            (source("namespace", json!("a/b")), "is not a name"),
            (source("name", json!("../x")), "is not a name"),
            (source("kind", json!("Pod")), "unknown variant `Pod`"),
            (source("keys", json!(["a/b"])), "is not a key"),
            (source("keys", json!([".."])), "is not a key"),
            (source("toNamespaces", json!([])), "is empty"),
            (source("toNamespaces", json!(["*", "a"])), "give \"*\" alone"),
            (source("toNamespaces", json!(["A"])), "is not a name"),
            (twice, "is given twice"),
            (elsewhere, "is not in spec.namespaces"),
            (many, "give at most 32"),
        ] {
            let error = check(&spec).unwrap_err();
            assert!(error.contains(expected) && error.len() < 2_000, "{spec}: {error}");
        }
    }
}
