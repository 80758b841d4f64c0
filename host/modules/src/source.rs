//! The bytes of a component: taken from where they lie, unpacked within bounds, named by
//! their digest.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::{GzEncoder, MultiGzDecoder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::machine::reason;
use crate::module;

/// The largest component, unpacked, in bytes: no more than the sandbox loads.
pub const COMPONENT_BYTES_MAX: usize = innkeeper_sandbox::COMPONENT_BYTES_DEFAULT;

/// The largest source as it lies there (gzip or plain), in bytes, all its parts together. Packing
/// makes nothing larger, so this is the same limit.
pub const PACKED_BYTES_MAX: usize = COMPONENT_BYTES_MAX;

/// The annotation of the first of several ConfigMaps: how many there are, with the first one.
pub const CHUNKS_ANNOTATION: &str = "innkeeper.dev/chunks";

/// The highest number of ConfigMaps that hold one component.
pub const CHUNKS_MAX: usize = 64;

/// The first bytes of gzip.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The first bytes of WebAssembly, modules and components.
const WASM_MAGIC: [u8; 4] = *b"\0asm";

/// SHA-256 of a component's bytes (unpacked, so that packing does not matter).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first 12 hex digits, for messages and names of ConfigMaps.
    pub fn short(&self) -> String {
        hex::encode(&self.0[..6])
    }
}

impl std::str::FromStr for Digest {
    type Err = hex::FromHexError;

    /// Reads all 64 hex digits.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("not a digest of 64 hex digits"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// A component's bytes and their digest.
#[derive(Clone, PartialEq, Eq)]
pub struct Component {
    /// The bytes, unpacked.
    pub bytes: Arc<[u8]>,
    /// Their digest.
    pub digest: Digest,
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({} bytes)", self.digest, self.bytes.len())
    }
}

/// Why a source gives no component to load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// It is not there.
    #[error("{0} does not exist")]
    Missing(String),
    /// It is there and may not be read, or reading failed.
    #[error("{what} cannot be read: {why}")]
    Unreadable {
        /// The source.
        what: String,
        /// The cause, as given by the API server or the system.
        why: String,
    },
    /// The named key is not in the ConfigMap's `binaryData`.
    #[error("{what} has no key {key} in binaryData{}", keys(.present))]
    NoKey {
        /// The source.
        what: String,
        /// The key that was looked for.
        key: String,
        /// The keys that it has.
        present: Vec<String>,
    },
    /// No key was named, and there is no obvious one.
    #[error(
        "{what} has several keys in binaryData ({}) and none is {}: name one in spec.source.configMap.key",
        .present.join(", "), module::SOURCE_KEY
    )]
    ManyKeys {
        /// The source.
        what: String,
        /// The keys that it has.
        present: Vec<String>,
    },
    /// A part of it is not there.
    #[error(
        "{what} says that it has {parts} chunks, and {part} does not exist: create it with its bytes under the key {key} of binaryData, or correct the annotation {}",
        CHUNKS_ANNOTATION
    )]
    MissingChunk {
        /// The source: its first part.
        what: String,
        /// How many parts it has, as it says.
        parts: usize,
        /// The part that is not there.
        part: String,
        /// The key under which each part has its piece.
        key: String,
    },
    /// The annotation of its first part is no number of parts.
    #[error(
        "{what} has {value:?} in its annotation {}: it has to be the number of its chunks, 1 to {}",
        CHUNKS_ANNOTATION,
        CHUNKS_MAX
    )]
    InvalidChunkCount {
        /// The source.
        what: String,
        /// What the annotation says.
        value: String,
    },
    /// It has no bytes.
    #[error("{0} is empty")]
    Empty(String),
    /// It is larger than allowed.
    #[error("{what} is larger than the limit of {limit} bytes{}", if *.unpacked { " when unpacked" } else { "" })]
    TooLarge {
        /// The source.
        what: String,
        /// The limit, in bytes.
        limit: usize,
        /// Whether it is what gzip gives that is too large.
        unpacked: bool,
    },
    /// It begins like gzip and is not, or is cut off.
    #[error("{what} is not whole gzip: {why}")]
    Gzip {
        /// The source.
        what: String,
        /// What the decoder says.
        why: String,
    },
    /// It is neither gzip nor WebAssembly.
    #[error("{what} is neither WebAssembly nor gzip of it: it begins with {}", hex::encode(.begins))]
    NotWasm {
        /// The source.
        what: String,
        /// Its first bytes, at most 8.
        begins: Vec<u8>,
    },
}

fn keys(present: &[String]) -> String {
    if present.is_empty() {
        " (which is empty: `kubectl create configmap --from-file` puts binary files there)"
            .to_owned()
    } else {
        format!("; it has {}", present.join(", "))
    }
}

impl SourceError {
    /// One CamelCase word for a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing(_)
            | Self::NoKey { .. }
            | Self::ManyKeys { .. }
            | Self::MissingChunk { .. } => reason::SOURCE_NOT_FOUND,
            Self::Unreadable { .. } => "SourceUnreadable",
            Self::InvalidChunkCount { .. }
            | Self::Empty(_)
            | Self::Gzip { .. }
            | Self::NotWasm { .. } => "SourceMalformed",
            Self::TooLarge { .. } => "SourceTooLarge",
        }
    }
}

/// The key in a ConfigMap's `binaryData` of the component: `key`, or else
/// [`module::SOURCE_KEY`], or else the only one.
///
/// `what` names the ConfigMap in errors.
///
/// # Errors
/// If the ConfigMap lacks the given key, or if none is given and it has no default key and not
/// exactly one other.
pub fn pick_key<'a, V>(
    what: &str,
    binary_data: &'a BTreeMap<String, V>,
    key: Option<&str>,
) -> Result<&'a str, SourceError> {
    let present = || binary_data.keys().cloned().collect::<Vec<_>>();
    let wanted = key.unwrap_or(module::SOURCE_KEY);
    match (binary_data.get_key_value(wanted), key) {
        (Some((key, _)), _) => Ok(key),
        (None, Some(key)) => Err(SourceError::NoKey {
            what: what.to_owned(),
            key: key.to_owned(),
            present: present(),
        }),
        (None, None) => {
            let mut keys = binary_data.keys();
            match (keys.next(), keys.next()) {
                (Some(only), None) => Ok(only),
                (None, _) => Err(SourceError::NoKey {
                    what: what.to_owned(),
                    key: wanted.to_owned(),
                    present: Vec::new(),
                }),
                (Some(_), Some(_)) => {
                    Err(SourceError::ManyKeys { what: what.to_owned(), present: present() })
                }
            }
        }
    }
}

/// Unpacks a source (one layer of gzip, or none) and names it by its digest.
///
/// `bytes_max` bounds what comes out: no more than that is ever unpacked, so a small file
/// cannot fill the memory. `what` names the source in errors.
///
/// # Errors
/// If the source is empty or too large, is invalid gzip, or is no WebAssembly binary.
pub fn unpack(what: &str, bytes: &[u8], bytes_max: usize) -> Result<Component, SourceError> {
    let too_large =
        |limit, unpacked| SourceError::TooLarge { what: what.to_owned(), limit, unpacked };
    if bytes.is_empty() {
        return Err(SourceError::Empty(what.to_owned()));
    }
    if bytes.len() > PACKED_BYTES_MAX {
        return Err(too_large(PACKED_BYTES_MAX, false));
    }
    let unpacked: Arc<[u8]> = if bytes.starts_with(&GZIP_MAGIC) {
        let mut out = Vec::new();
        MultiGzDecoder::new(bytes)
            .take(bytes_max as u64 + 1)
            .read_to_end(&mut out)
            .map_err(|error| SourceError::Gzip { what: what.to_owned(), why: error.to_string() })?;
        if out.len() > bytes_max {
            return Err(too_large(bytes_max, true));
        }
        out.into()
    } else {
        if bytes.len() > bytes_max {
            return Err(too_large(bytes_max, false));
        }
        bytes.into()
    };
    if !unpacked.starts_with(&WASM_MAGIC) {
        return Err(SourceError::NotWasm {
            what: what.to_owned(),
            begins: unpacked.iter().take(8).copied().collect(),
        });
    }
    let digest = Digest::of(&unpacked);
    Ok(Component { bytes: unpacked, digest })
}

/// A component as gzip: the same bytes give the same gzip, since no time is in it.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 2);
    // Reading from memory and writing to memory cannot fail.
    let _ = GzEncoder::new(bytes, Compression::best()).read_to_end(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const WASM: &[u8] = b"\0asm\x0d\0\x01\0 and the rest";

    #[test]
    fn packing_does_not_change_the_digest() {
        let plain = unpack("it", WASM, 100).unwrap();
        let packed = unpack("it", &gzip(WASM), 100).unwrap();
        assert_eq!(plain, packed);
        assert_eq!(plain.digest.to_string().len(), 64);
        assert!(plain.digest.to_string().starts_with(&plain.digest.short()));
    }

    #[test]
    fn a_bomb_is_unpacked_no_further_than_the_limit() {
        let mut bytes = WASM.to_vec();
        bytes.resize(10 << 20, 0);
        let bomb = gzip(&bytes);
        assert!(bomb.len() < 20_000);
        assert_eq!(
            unpack("ConfigMap a", &bomb, 1 << 20).unwrap_err().to_string(),
            "ConfigMap a is larger than the limit of 1048576 bytes when unpacked"
        );
    }

    #[test]
    fn bytes_that_are_no_component_are_refused_with_their_format() {
        let two_layers = gzip(&gzip(WASM));
        let whole = gzip(WASM);
        let cut = &whole[..whole.len() - 9];
        for (bytes, limit, reason) in [
            (&b""[..], 100, "SourceMalformed"),
            (b"#!/bin/sh", 100, "SourceMalformed"),
            (two_layers.as_slice(), 100, "SourceMalformed"),
            (cut, 100, "SourceMalformed"),
            (WASM, 4, "SourceTooLarge"),
        ] {
            let error = unpack("it", bytes, limit).unwrap_err();
            assert_eq!(error.reason(), reason, "{error}");
        }
    }

    #[test]
    fn the_key_is_the_named_one_or_the_usual_one_or_the_only_one() {
        let data = |keys: &[&str]| {
            keys.iter()
                .map(|key| ((*key).to_owned(), (*key).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let pick =
            |keys: &[&str], key| pick_key("ConfigMap a", &data(keys), key).map(str::to_owned);
        assert_eq!(pick(&["a", "b"], Some("b")).unwrap(), "b");
        assert_eq!(pick(&["a", "guest.wasm"], None).unwrap(), "guest.wasm");
        assert_eq!(pick(&["a"], None).unwrap(), "a");
        assert_eq!(
            pick(&["a"], Some("b")).unwrap_err().to_string(),
            "ConfigMap a has no key b in binaryData; it has a"
        );
        assert!(pick(&["a", "b"], None).unwrap_err().to_string().contains("name one in"));
        assert!(pick(&[], None).unwrap_err().to_string().contains("which is empty"));
    }
}
