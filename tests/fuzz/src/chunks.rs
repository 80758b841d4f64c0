//! Components in ConfigMaps, in one or in several.

use std::sync::Arc;

use innkeeper_modules::chunks::{self, ChunkReader, ConfigMap};
use innkeeper_modules::{Component, Digest};
use serde_json::{Map, Value};

/// The largest component of a test, in bytes: three ConfigMaps.
const BYTES_MAX: usize = 2_500_000;

/// The limit under which foreign ConfigMaps are joined, in bytes.
const LIMIT: usize = 4_096;

/// Reads ConfigMaps if the bytes are a JSON list of them; otherwise splits a component made of the
/// bytes. What is split and joined is as before and no piece is larger than a ConfigMap; what is
/// joined is never larger than the limit.
pub fn fuzz_entry(data: &[u8]) {
    if let Ok(documents) = serde_json::from_slice::<Vec<Value>>(data) {
        join(&documents, LIMIT);
        return;
    }
    let bytes = component(data);
    let component = Component { digest: Digest::of(&bytes), bytes: Arc::from(bytes) };
    let mut documents = chunks::config_maps("web", &component, &Map::new());
    for document in &documents {
        let encoded = document["binaryData"]["guest.wasm"].as_str().map_or(0, str::len);
        assert!(encoded / 4 * 3 <= chunks::CONFIG_MAP_BYTES_MAX + 3, "{encoded} encoded bytes");
    }
    assert!(documents.len() <= chunks::CHUNKS_MAX);
    // The first part is written last.
    documents.reverse();
    let joined = join(&documents, BYTES_MAX + 8).expect("what was split is joined");
    assert_eq!(joined, component, "what is joined is not what was split");
    if documents.len() > 1 {
        documents.pop();
        assert!(join(&documents, BYTES_MAX + 8).is_none(), "joined without the last part");
    }
}

/// Joins the parts in this order; `None` if they are no component.
fn join(documents: &[Value], limit: usize) -> Option<Component> {
    let mut maps =
        documents.iter().map(|one| serde_json::from_value::<ConfigMap>(one.clone()).ok());
    let mut reading = ChunkReader::begin("web", &maps.next()??, None).ok()?;
    let mut names = 1;
    while let Some(name) = reading.wanted() {
        names += 1;
        assert!(names <= chunks::CHUNKS_MAX, "more parts than there may be");
        assert_eq!(chunks::first_of(&name), Some("web"), "{name}");
        reading.take(&maps.next()??).ok()?;
    }
    let component = reading.component(limit).ok()?;
    assert!(component.bytes.len() <= limit, "{} bytes of {limit}", component.bytes.len());
    assert_eq!(component.digest, Digest::of(&component.bytes));
    Some(component)
}

/// A component that begins with the bytes. The first three say how long it is, so that short input
/// makes large components too; what follows cannot be packed.
fn component(data: &[u8]) -> Vec<u8> {
    let (head, rest) = data.split_at(data.len().min(4));
    let number = head.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
    // Most are small: large ones take milliseconds.
    let length = if number % 8 == 7 { number % BYTES_MAX } else { number % 70_000 };
    let mut bytes = b"\0asm".to_vec();
    bytes.extend(rest);
    let mut state = number as u64 | 1;
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length.max(8));
    bytes
}
