//! The hash of a Pod template.

use serde_json::Value;

/// A hash of a template, in the alphabet of the real ones: FNV-1a over its text.
pub(crate) fn hash(template: &Value, collisions: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash: u32 = 0x811c_9dc5;
    let mut text = template.to_string();
    if collisions > 0 {
        text += &collisions.to_string();
    }
    for byte in text.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let digits = hash.to_string();
    digits.bytes().map(|digit| char::from(LETTERS[usize::from(digit) % LETTERS.len()])).collect()
}
