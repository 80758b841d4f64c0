use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Apply, Metadata, Resource};

/// An object of any kind: metadata and JSON. `K` names the kind; [`kind!`](crate::kind) declares
/// one, and any [`Resource`] works. It can be desired, owned and read. A desired object is written
/// without the `status`, which belongs to the controller of the kind.
///
/// ```
/// use innkeeper_sdk::serde_json::json;
/// use innkeeper_sdk::{Apply as _, Raw, kind};
///
/// kind!(Certificate, "cert-manager.io/v1", "certificates");
///
/// let certificate = Raw::<Certificate>::new("web", json!({ "spec": { "dnsNames": ["example.com"] } }))
///     .label("app", "web");
/// let name: Option<String> = certificate.field("/spec/dnsNames/0").unwrap();
/// assert_eq!(name.as_deref(), Some("example.com"));
/// ```
pub struct Raw<K> {
    /// Metadata.
    pub metadata: Metadata,
    /// The other members, without `apiVersion` and `kind`.
    pub members: Map<String, Value>,
    /// Finalizers that the guest desires; none of an object that the API server has returned.
    finalizers: Vec<String>,
    /// Why the object cannot be written.
    problem: Option<String>,
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Raw<K> {
    /// Creates an object with this name. `members` is a JSON object with the other members; of its
    /// `metadata` the object takes namespace, labels and annotations, and the finalizers unless it
    /// is a copy of an object that the API server has returned.
    ///
    /// Other JSON turns the outcome into a failure with the reason `UnwritableOutcome`.
    pub fn new(name: impl Into<String>, members: Value) -> Self {
        let mut object = Self::parse(members).unwrap_or_else(|problem| Self {
            metadata: Metadata::default(),
            members: Map::new(),
            finalizers: Vec::new(),
            problem: Some(problem),
            kind: PhantomData,
        });
        object.metadata.name = name.into();
        object
    }

    /// Deserializes the value at a JSON pointer (`/spec/replicas`). `None`: it is missing or null.
    ///
    /// # Errors
    /// If the value is not a `T`, the text is no JSON pointer below the object, or it points into
    /// `metadata`, which is a [field](Self::metadata) of its own.
    pub fn field<T: DeserializeOwned>(&self, pointer: &str) -> serde_json::Result<Option<T>> {
        let error = |problem| {
            <serde_json::Error as serde::de::Error>::custom(format!("{pointer:?}: {problem}"))
        };
        let Some(path) = pointer.strip_prefix('/') else {
            return Err(error("a JSON pointer begins with '/'"));
        };
        let end = path.find('/').unwrap_or(path.len());
        let (first, rest) = path.split_at(end);
        let first = first.replace("~1", "/").replace("~0", "~");
        if matches!(first.as_str(), "apiVersion" | "kind" | "metadata") {
            return Err(error("use `Raw::metadata`, or the kind's constants"));
        }
        let found = self.members.get(&first).and_then(|member| member.pointer(rest));
        found.filter(|value| !value.is_null()).map(T::deserialize).transpose()
    }

    /// Returns whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    fn parse(object: Value) -> Result<Self, String> {
        let Value::Object(mut members) = object else {
            return Err(format!("the content of a {} is not a JSON object", K::KIND));
        };
        members.remove("apiVersion");
        members.remove("kind");
        let metadata = members.remove("metadata").unwrap_or_default();
        let wrong = |error| format!("the metadata of a {}: {error}", K::KIND);
        let has = |member| metadata.get(member).filter(|value| !value.is_null());
        let is_copy = has("uid").is_some() || has("resourceVersion").is_some();
        let finalizers = match has("finalizers") {
            Some(finalizers) if !is_copy => Vec::deserialize(finalizers).map_err(wrong)?,
            _ => Vec::new(),
        };
        let metadata = if metadata.is_null() {
            Metadata::default()
        } else {
            Metadata::deserialize(metadata).map_err(wrong)?
        };
        Ok(Self { metadata, members, finalizers, problem: None, kind: PhantomData })
    }
}

impl<K: Resource> Resource for Raw<K> {
    const API_VERSION: &'static str = K::API_VERSION;
    const KIND: &'static str = K::KIND;
    const PLURAL: &'static str = K::PLURAL;
    const SCOPE: crate::Scope = K::SCOPE;
}

impl<K: Resource> Apply for Raw<K> {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }
}

impl<K: Resource> crate::Primary for Raw<K> {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl<K> Serialize for Raw<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(problem) = &self.problem {
            return Err(S::Error::custom(problem));
        }
        let mut map = serializer.serialize_map(None)?;
        let (metadata, finalizers) = (&self.metadata, self.finalizers.as_slice());
        map.serialize_entry("metadata", &DesiredMetadata { metadata, finalizers })?;
        for (key, value) in &self.members {
            // The host refuses an object that has a status. The others would be there twice.
            if !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

/// The metadata of a desired object.
#[derive(Serialize)]
struct DesiredMetadata<'a> {
    #[serde(flatten)]
    metadata: &'a Metadata,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    finalizers: &'a [String],
}

impl<'de, K: Resource> Deserialize<'de> for Raw<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<K> Clone for Raw<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            members: self.members.clone(),
            finalizers: self.finalizers.clone(),
            problem: self.problem.clone(),
            kind: PhantomData,
        }
    }
}

impl<K> std::fmt::Debug for Raw<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Raw")
            .field("metadata", &self.metadata)
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}
