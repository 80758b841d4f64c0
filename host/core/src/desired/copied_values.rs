//! What the host copies of a value source, as a cache has it, and why it cannot.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use innkeeper_contract::ValueSourceKind;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::value_source::{KEYS_MAX, VALUES_BYTES_MAX};
use crate::{Object, ObjectRef, object};

/// Bytes of the hash of a `ConfigMap`'s value. As hexadecimal digits they are valid base64, which
/// the API server wants in `data` of a Secret and in `binaryData`.
const PLACEHOLDER_BYTES: usize = 8;

/// One version of a source, and the keys that the host copies of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedSource {
    /// The source.
    pub object_ref: ObjectRef,
    /// The uid of the source.
    pub uid: Box<str>,
    /// The resource version of the source.
    pub resource_version: Box<str>,
    /// The keys of the source, each with the key in the desired object.
    pub keys: BTreeMap<String, String>,
}

/// Why the host cannot copy the values of a source now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingValues {
    /// The source.
    pub source: ObjectRef,
    /// What is missing.
    pub problem: MissingValuesProblem,
}

/// What of a source is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingValuesProblem {
    /// The source does not exist.
    Absent,
    /// The cache may be wrong: a live read must come first.
    Unknown,
    /// The host cannot read the source, for this reason.
    Unreadable(String),
    /// The source does not have this key.
    NoKey(String),
    /// The desired object already has this key, of its own or from another source.
    KeyTaken(String),
    /// The source is a Secret of this type, which holds a token of the API server.
    Token(String),
    /// The object would get too many values, or too many bytes.
    TooLarge,
}

impl MissingValues {
    /// The reason for a condition: one CamelCase word.
    pub fn reason(&self) -> &'static str {
        match self.problem {
            MissingValuesProblem::Absent => "ValueSourceMissing",
            MissingValuesProblem::Unknown => "Unknown",
            MissingValuesProblem::Unreadable(_) => "ValueSourceUnreadable",
            MissingValuesProblem::NoKey(_) => "ValueKeyMissing",
            MissingValuesProblem::KeyTaken(_) => "ValueKeyTaken",
            MissingValuesProblem::Token(_) => "SecretNotGrantable",
            MissingValuesProblem::TooLarge => "ValuesTooLarge",
        }
    }
}

impl fmt::Display for MissingValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = &self.source;
        match &self.problem {
            MissingValuesProblem::Absent => {
                write!(f, "its value source {source} does not exist; create it")
            }
            MissingValuesProblem::Unknown => {
                write!(f, "its value source {source} must be read again first")
            }
            MissingValuesProblem::Unreadable(reason) => {
                write!(f, "its value source {source} cannot be read: {reason}")
            }
            MissingValuesProblem::NoKey(key) => {
                write!(f, "its value source {source} has no key `{key}`; add the key to the source")
            }
            MissingValuesProblem::KeyTaken(key) => write!(
                f,
                "its value source {source} has the key `{key}`, which the object already has; have the guest name the keys of the source"
            ),
            MissingValuesProblem::Token(type_) => write!(
                f,
                "its value source {source} has the type {type_}, a token of the API server; remove it from the Module's spec.valueSources"
            ),
            MissingValuesProblem::TooLarge => write!(
                f,
                "its value source {source} is too large: the host copies at most {KEYS_MAX} keys and {} KiB into an object; have the guest name fewer keys",
                VALUES_BYTES_MAX >> 10
            ),
        }
    }
}

/// A source as a cache has it: placeholders for its values.
#[derive(Clone, Debug)]
pub(crate) struct CachedSource {
    pub(super) uid: Box<str>,
    pub(super) resource_version: Box<str>,
    /// The type of a Secret.
    pub(super) type_: String,
    /// The member and the placeholder of each key.
    pub(super) values: BTreeMap<String, (&'static str, String)>,
}

impl CachedSource {
    /// Reads a source from the cache.
    ///
    /// # Errors
    /// Returns why the host may not copy it.
    pub(crate) fn read(
        kind: ValueSourceKind,
        source: &Object,
    ) -> Result<Arc<Self>, MissingValuesProblem> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Text {
            #[serde(rename = "type", default)]
            type_: Option<String>,
            #[serde(default)]
            data: Option<BTreeMap<String, String>>,
            #[serde(default)]
            binary_data: Option<BTreeMap<String, String>>,
        }
        let text: Text = serde_json::from_str(&source.text.read())
            .map_err(|_| MissingValuesProblem::Unreadable("its values are no texts".to_owned()))?;
        let mut type_ = String::new();
        let mut values = BTreeMap::new();
        match kind {
            ValueSourceKind::Secret => {
                type_ = text.type_.unwrap_or_default();
                if object::is_token_type(&type_) {
                    return Err(MissingValuesProblem::Token(type_));
                }
                let digests = text.data.unwrap_or_default().into_iter();
                values.extend(digests.map(|(key, digest)| (key, ("data", digest))));
            }
            ValueSourceKind::ConfigMap => {
                for (member, all) in [("data", text.data), ("binaryData", text.binary_data)] {
                    let all = all.unwrap_or_default().into_iter();
                    values.extend(all.map(|(key, value)| (key, (member, placeholder(&value)))));
                }
            }
        }
        let (uid, resource_version) = (source.uid.clone(), source.resource_version.clone());
        Ok(Arc::new(Self { uid, resource_version, type_, values }))
    }
}

/// What stands for a value of a `ConfigMap` in a body.
fn placeholder(value: &str) -> String {
    hex::encode(&Sha256::digest(value)[..PLACEHOLDER_BYTES])
}
