//! The forms in which a value can appear in a text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use innkeeper_core::foreign;

/// Longer values are searched for in pieces of this many bytes.
pub(super) const PIECE_BYTES: usize = 64;

/// The ranges of the pieces of a value of this length. No piece is short: the last one has the rest
/// as well.
fn ranges(length: usize) -> impl Iterator<Item = (usize, usize)> {
    let whole = (length / PIECE_BYTES).max(1);
    (0..whole).map(move |index| {
        let start = index * PIECE_BYTES;
        (start, if index + 1 == whole { length } else { start + PIECE_BYTES })
    })
}

/// The pieces of a value.
pub(super) fn pieces(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    ranges(value.len()).filter_map(|(start, end)| value.get(start..end))
}

/// The pieces of a value that is text, cut between characters.
pub(super) fn text_pieces(value: &str) -> impl Iterator<Item = &str> {
    ranges(value.len()).filter_map(|(start, end)| {
        value.get(value.floor_char_boundary(start)..value.floor_char_boundary(end))
    })
}

/// The characters of base64 that depend on a piece alone, if `shift` bytes precede it in its group
/// of three.
pub(super) fn encoded_at(piece: &[u8], shift: usize) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(piece);
    let encoded = STANDARD_NO_PAD.encode(&bytes);
    // The first characters hold bits of the bytes before, the last one may hold bits of those
    // after.
    let first = (shift * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    encoded.get(first..last).unwrap_or_default().to_owned()
}

/// The text within a JSON string.
pub(super) fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(&quoted).to_owned()
}

/// The text as the API server quotes it in an error (`%q` of Go).
pub(super) fn go_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing into a String cannot fail.
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            '\n' => write!(quoted, "\\n"),
            '\r' => write!(quoted, "\\r"),
            '\t' => write!(quoted, "\\t"),
            '\x07' => write!(quoted, "\\a"),
            '\x08' => write!(quoted, "\\b"),
            '\x0b' => write!(quoted, "\\v"),
            '\x0c' => write!(quoted, "\\f"),
            c if foreign::is_visible(c) => write!(quoted, "{c}"),
            c if c.is_ascii() => write!(quoted, "\\x{:02x}", u32::from(c)),
            c if u32::from(c) <= 0xffff => write!(quoted, "\\u{:04x}", u32::from(c)),
            c => write!(quoted, "\\U{:08x}", u32::from(c)),
        };
    }
    quoted
}

/// The text within JSON that the API server quotes in an error: Go escapes characters that HTML
/// could take for a tag.
pub(super) fn go_json(text: &str) -> String {
    let mut json = quoted(text);
    for (character, escape) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        json = json.replace(character, escape);
    }
    json
}
