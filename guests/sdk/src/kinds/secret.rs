use std::collections::BTreeMap;

use serde::Serialize;

use crate::Metadata;

/// A Secret. A guest never reads the values of a Secret ([`read::Secret`](crate::read::Secret) has
/// digests); it writes values that it computes or that are no secrets.
///
/// ```
/// use innkeeper_sdk::kinds::Secret;
///
/// let secret = Secret::new("web").value("config.yaml", "mode: fast");
/// assert_eq!(secret.string_data["config.yaml"], "mode: fast");
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Secret {
    /// Metadata.
    pub metadata: Metadata,
    /// Type; `Opaque` if `None`. Immutable.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Values by key, in base64.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub data: BTreeMap<String, String>,
    /// Values by key, as text.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub string_data: BTreeMap<String, String>,
}

impl Secret {
    /// Creates an empty Secret.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            metadata: Metadata::named(name),
            type_: None,
            data: BTreeMap::new(),
            string_data: BTreeMap::new(),
        }
    }

    /// Adds a key with its value as text.
    pub fn value(mut self, key: &str, text: impl Into<String>) -> Self {
        self.string_data.insert(key.to_owned(), text.into());
        self
    }

    /// Adds a key with its value in base64.
    pub fn data(mut self, key: &str, base64: impl Into<String>) -> Self {
        self.data.insert(key.to_owned(), base64.into());
        self
    }

    setters! {
        /// Sets the type: `kubernetes.io/tls`.
        type_(type_: String);
    }
}

crate::kind!(Apply for Secret, "v1", "secrets");
