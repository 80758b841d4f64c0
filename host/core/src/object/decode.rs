//! Decoding an object from the API server's JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use innkeeper_contract::Kind;
use jiff::Timestamp;
use serde::Deserialize;

use super::error::DecodeError;
use super::raw_json::{Members, join, quoted};
use super::secret::{SecretDigest, holds_secrets};
use super::type_meta::TypeMeta;
use super::{Object, OwnerReference, managed_fields, shown_text};
use crate::{Labels, ObjectKey};

/// The members of `metadata` that an object keeps in its head.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(default, borrow)]
    namespace: Cow<'a, str>,
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    labels: Option<Labels>,
    #[serde(default)]
    owner_references: Option<Box<[OwnerReference]>>,
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    finalizers: Option<Box<[Box<str>]>>,
}

impl Object {
    /// Reads an object as the API server writes it.
    ///
    /// The text gets `kind` where the server omits it, as in lists. `digest` replaces each value of
    /// `data` and `stringData` of a Secret, so that the host never keeps a Secret's bytes. An
    /// object is a Secret if its resource ([`holds_secrets`]) or the kind that it names says so.
    ///
    /// # Errors
    /// Returns an error if the text is not an object, or names another kind than `kind`.
    pub fn decode(
        kind: &Kind,
        text: &str,
        digest: Option<&SecretDigest<'_>>,
    ) -> Result<Self, DecodeError> {
        let members: Members<'_> = serde_json::from_str(text)?;
        let type_meta = TypeMeta::of(&members)?;
        type_meta.check(kind)?;
        let metadata_text = members.get("metadata").map_or("{}", |metadata| metadata.get());
        let metadata: Metadata<'_> = serde_json::from_str(metadata_text)?;
        let key = ObjectKey::new(&metadata.namespace, &metadata.name);

        let mut metadata_members: Members<'_> = serde_json::from_str(metadata_text)?;
        let (entries, other_managers) = match metadata_members.remove("managedFields") {
            Some(fields) => managed_fields::read(fields)?,
            None => Default::default(),
        };
        let digest = digest.filter(|_| holds_secrets(kind) || type_meta.is_secret());
        let metadata_text =
            shown_text::metadata(&metadata_members, digest.is_some(), metadata_text.len())?;

        let mut replaced = BTreeMap::from([("metadata", metadata_text)]);
        for (name, value) in [("apiVersion", &kind.api_version), ("kind", &kind.kind)] {
            if !members.contains_key(name) {
                replaced.insert(name, quoted(value));
            }
        }
        if let Some(digest) = digest {
            replaced.extend(shown_text::values(&members, &key, digest)?);
        }
        Ok(Self {
            key,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            labels: metadata.labels.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default(),
            deletion_timestamp: metadata.deletion_timestamp,
            finalizers: metadata.finalizers.unwrap_or_default(),
            entries,
            other_managers,
            text: join(&members, &replaced, text.len()).into(),
        })
    }
}
