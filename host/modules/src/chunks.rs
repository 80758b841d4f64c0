//! A component in ConfigMaps: in one, or, since one holds 1 MiB, over several.
//!
//! The first part is the ConfigMap that a Module names; its annotation [`ANNOTATION`] says how many
//! parts there are. The further ones are named after it: `web`, `web-chunk-2`, `web-chunk-3`. Each
//! has its piece under the same key, and the pieces in their order are what a single ConfigMap
//! would have: a component, plain or gzip.
//!
//! So a Module still names one ConfigMap, and going back to another version is still one field.
//! The first part is written last: who finds it finds the others.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::module::{NAMESPACE, SOURCE_KEY};
use crate::renamed::{PART_INFIX, PARTS_ANNOTATION};
use crate::source::{self, Component, PACKED_BYTES_MAX, SourceError};

pub use crate::source::{CHUNKS_ANNOTATION as ANNOTATION, CHUNKS_MAX};

/// The annotation with the digest of the component, for users.
const DIGEST_ANNOTATION: &str = "innkeeper.dev/digest";

/// The largest piece that goes into one of several ConfigMaps, in bytes.
pub const CHUNK_BYTES_MAX: usize = 900 << 10;

/// What one ConfigMap holds, in bytes: Kubernetes' limit.
pub const CONFIG_MAP_BYTES_MAX: usize = 1 << 20;

// What is allowed can be split.
const _: () = assert!(CHUNKS_MAX * CHUNK_BYTES_MAX >= PACKED_BYTES_MAX);

/// Between the name of the first part and the number of a further one.
const INFIX: &str = "-chunk-";

/// The name of a part; the first one is number 1.
pub fn name(first: &str, number: usize) -> String {
    Layout { count: number, infix: INFIX }.name(first, number)
}

/// In how many ConfigMaps a component lies, and how the further ones are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How many there are, with the first one.
    pub count: usize,
    infix: &'static str,
}

impl Layout {
    /// The name of a ConfigMap; the first one is number 1.
    pub fn name(&self, first: &str, number: usize) -> String {
        let infix = self.infix;
        if number == 1 { first.to_owned() } else { format!("{first}{infix}{number}") }
    }
}

/// The name of the first part, if this is how a further part is named.
pub fn first_of(name: &str) -> Option<&str> {
    let (first, number) = name.rsplit_once(INFIX).or_else(|| name.rsplit_once(PART_INFIX))?;
    let is_number = (2..=CHUNKS_MAX).any(|part| part.to_string() == number);
    (is_number && !first.is_empty()).then_some(first)
}

/// Of a ConfigMap, what is read of a source.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMap {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    binary_data: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl ConfigMap {
    /// In how many ConfigMaps the component lies, if this is the first. `what` names it in errors.
    /// The old annotation is read too.
    ///
    /// # Errors
    /// What is wrong with its annotation.
    pub fn chunks(&self, what: &str) -> Result<Layout, SourceError> {
        let annotation = |name: &str| self.metadata.annotations.get(name);
        let (text, infix) = match (annotation(ANNOTATION), annotation(PARTS_ANNOTATION)) {
            (Some(text), _) => (text, INFIX),
            (None, Some(text)) => (text, PART_INFIX),
            (None, None) => return Ok(Layout { count: 1, infix: INFIX }),
        };
        match text.parse() {
            Ok(count) if (1..=CHUNKS_MAX).contains(&count) => Ok(Layout { count, infix }),
            _ => Err(SourceError::InvalidChunkCount { what: what.to_owned(), value: text.clone() }),
        }
    }

    fn chunk(&self, what: &str, key: &str) -> Result<Vec<u8>, SourceError> {
        let encoded = self.binary_data.get(key).ok_or_else(|| SourceError::NoKey {
            what: what.to_owned(),
            key: key.to_owned(),
            present: self.binary_data.keys().cloned().collect(),
        })?;
        STANDARD.decode(encoded).map_err(|error| SourceError::Unreadable {
            what: what.to_owned(),
            why: format!("binaryData is not base64: {error}"),
        })
    }
}

/// A source that is being read, part by part.
#[derive(Clone, Debug)]
pub struct ChunkReader {
    first: String,
    key: String,
    chunks: Layout,
    /// How many have been read.
    read: usize,
    bytes: Vec<u8>,
}

impl ChunkReader {
    /// Begins with the first part, or with the only one. For `key` see [`source::pick_key`].
    ///
    /// # Errors
    /// Why it is no source.
    pub fn begin(
        first: &str,
        config_map: &ConfigMap,
        key: Option<&str>,
    ) -> Result<Self, SourceError> {
        let what = quoted_name(first);
        let parts = config_map.chunks(&what)?;
        let key = source::pick_key(&what, &config_map.binary_data, key)?;
        let bytes = config_map.chunk(&what, key)?;
        Ok(Self { first: first.to_owned(), key: key.to_owned(), chunks: parts, read: 1, bytes })
    }

    /// The name of the next part; `None` if all have been read.
    pub fn wanted(&self) -> Option<String> {
        (self.read < self.chunks.count).then(|| self.chunks.name(&self.first, self.read + 1))
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    /// What is wrong with it, with its name.
    pub fn take(&mut self, config_map: &ConfigMap) -> Result<(), SourceError> {
        let number = self.read + 1;
        let what = format!(
            "{}, chunk {number} of {},",
            quoted_name(&self.chunks.name(&self.first, number)),
            self.first
        );
        self.bytes.extend(config_map.chunk(&what, &self.key)?);
        self.read = number;
        // More is not even fetched.
        if self.bytes.len() > PACKED_BYTES_MAX {
            let what = quoted_name(&self.first);
            return Err(SourceError::TooLarge { what, limit: PACKED_BYTES_MAX, unpacked: false });
        }
        Ok(())
    }

    /// The error if the next chunk does not exist.
    pub fn missing(&self) -> SourceError {
        SourceError::MissingChunk {
            what: quoted_name(&self.first),
            parts: self.chunks.count,
            part: quoted_name(&self.chunks.name(&self.first, self.read + 1)),
            key: self.key.clone(),
        }
    }

    /// The component, when all parts have been read; `bytes_max` as for [`source::unpack`].
    ///
    /// # Errors
    /// Why the bytes are none.
    pub fn component(&self, bytes_max: usize) -> Result<Component, SourceError> {
        if self.wanted().is_some() {
            return Err(self.missing());
        }
        source::unpack(&quoted_name(&self.first), &self.bytes, bytes_max)
    }
}

fn quoted_name(name: &str) -> String {
    format!("ConfigMap {NAMESPACE}/{name}")
}

/// The ConfigMaps that hold a component, in the order in which they are to be written: the first
/// part is the last. They never change.
///
/// `metadata` (labels, annotations, owners) is that of each of them, except its name; `name` is the
/// first one's.
pub fn config_maps(name: &str, component: &Component, metadata: &Map<String, Value>) -> Vec<Value> {
    let plain = &component.bytes;
    let gzip = source::gzip(plain);
    let packed = if gzip.len() < plain.len() { &gzip[..] } else { plain };
    let pieces = split(packed);
    let body = |(index, piece): (usize, &&[u8])| {
        let mut metadata = Value::Object(metadata.clone());
        metadata["name"] = self::name(name, index + 1).into();
        metadata["namespace"] = NAMESPACE.into();
        metadata["annotations"][DIGEST_ANNOTATION] = format!("sha256:{}", component.digest).into();
        if index == 0 && pieces.len() > 1 {
            metadata["annotations"][ANNOTATION] = pieces.len().to_string().into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "immutable": true,
            "binaryData": { SOURCE_KEY: STANDARD.encode(piece) },
        })
    };
    pieces.iter().enumerate().rev().map(body).collect()
}

/// One piece if it fits into one ConfigMap; else as few as can be, of about the same size.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    if bytes.len() <= CONFIG_MAP_BYTES_MAX {
        return vec![bytes];
    }
    let parts = bytes.len().div_ceil(CHUNK_BYTES_MAX);
    bytes.chunks(bytes.len().div_ceil(parts)).collect()
}

#[cfg(test)]
mod tests;
