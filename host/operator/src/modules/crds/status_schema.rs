//! What the schema of a kind keeps of a status.

use innkeeper_contract::Kind;
use serde_json::Value;

/// The members of a status that a CustomResourceDefinition keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StatusSchema {
    /// Nothing would be pruned, or nothing is known.
    #[default]
    Whole,
    /// What this schema does not name is pruned.
    Pruned(Value),
    /// There is no status subresource.
    Absent,
}

impl StatusSchema {
    /// Reads a definition; `Whole` if it has no such version or schema.
    pub fn of(definition: &Value, kind: &Kind) -> Self {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let is_version = |version: &&Value| version["name"] == kind.version();
        let Some(version) = versions.and_then(|versions| versions.iter().find(is_version)) else {
            return Self::Whole;
        };
        if version.pointer("/subresources/status").is_none() {
            return Self::Absent;
        }
        // Only a definition that was created by `apiextensions.k8s.io/v1beta1` has it.
        if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            return Self::Whole;
        }
        let Some(schema) = version.pointer("/schema/openAPIV3Schema") else { return Self::Whole };
        match schema.pointer("/properties/status") {
            Some(status) => Self::Pruned(status.clone()),
            // Without a schema of its own the status is pruned, unless unknown fields are kept.
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => Self::Whole,
            None => Self::Pruned(serde_json::json!({"type": "object"})),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_of_the_status_is_found_by_version() {
        let kind = Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes");
        let with = |schema: Value| {
            json!({"spec": {"versions": [
                {"name": "v1", "schema": {}},
                {"name": "v1alpha1", "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
            ]}})
        };
        let of = |definition: &Value| StatusSchema::of(definition, &kind);
        assert_eq!(
            of(&with(json!({"properties": {"status": {"type": "object", "properties": {}}}}))),
            StatusSchema::Pruned(json!({"type": "object", "properties": {}}))
        );
        assert_eq!(
            of(&with(json!({"type": "object"}))),
            StatusSchema::Pruned(json!({"type": "object"}))
        );
        assert_eq!(
            of(&with(json!({"x-kubernetes-preserve-unknown-fields": true}))),
            StatusSchema::Whole
        );
        assert_eq!(of(&json!({})), StatusSchema::Whole);
        let mut born_as_v1beta1 = with(json!({"properties": {"status": {"type": "object"}}}));
        born_as_v1beta1["spec"]["preserveUnknownFields"] = true.into();
        assert_eq!(of(&born_as_v1beta1), StatusSchema::Whole);
        let v1 = Kind::namespaced("quay.io/v1", "Podroute", "podroutes");
        assert_eq!(StatusSchema::of(&with(json!({})), &v1), StatusSchema::Absent);
    }
}
