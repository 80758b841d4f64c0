use std::collections::BTreeMap;

use serde::Serialize;

use innkeeper_contract::ValueSourceKind;

/// An object whose values the host copies into a desired object, without the guest seeing them.
///
/// The Module grants the source, and the namespaces of the desired objects, in
/// `spec.valueSources`. The host copies a Secret into Secrets, and a ConfigMap into ConfigMaps. It
/// writes the copy again when the source changes.
///
/// ```
/// use innkeeper_sdk::kinds::Secret;
/// use innkeeper_sdk::{Apply as _, Desired, IntoObject as _, ValueSource};
///
/// let source = ValueSource::secret("central", "registry").key(".dockerconfigjson");
/// let copy = Secret::new("registry").namespace("team-a").values_from(source);
/// let desired = Desired::new().object(copy);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ValueSource(innkeeper_contract::ValueSource);

impl ValueSource {
    /// Creates a source that is a Secret; an empty namespace means the primary's.
    pub fn secret(namespace: &str, name: &str) -> Self {
        Self::new(ValueSourceKind::Secret, namespace, name)
    }

    /// Creates a source that is a `ConfigMap`; an empty namespace means the primary's.
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self::new(ValueSourceKind::ConfigMap, namespace, name)
    }

    fn new(kind: ValueSourceKind, namespace: &str, name: &str) -> Self {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Self(innkeeper_contract::ValueSource { kind, namespace, name, keys: None })
    }

    /// Copies this key. Without a key, the host copies all of them.
    pub fn key(self, key: &str) -> Self {
        self.key_as(key, key)
    }

    /// Copies the key `from` of the source to the key `to` of the desired object.
    pub fn key_as(mut self, from: &str, to: &str) -> Self {
        let keys = self.0.keys.get_or_insert_with(BTreeMap::new);
        keys.insert(from.to_owned(), to.to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Secret;
    use crate::{Desired, IntoObject as _};

    #[test]
    fn sources_are_written_with_the_keys_that_are_named() {
        let copy = Secret::new("copy")
            .values_from(ValueSource::secret("central", "pull"))
            .values_from(ValueSource::secret("", "own").key("a").key_as("b", "c"));
        let text = Desired::new().object(copy).text().unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            document["objects"][0]["valuesFrom"],
            json!([
                { "kind": "Secret", "namespace": "central", "name": "pull" },
                { "kind": "Secret", "name": "own", "keys": { "a": "a", "b": "c" } }
            ])
        );
    }
}
