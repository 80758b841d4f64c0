//! Bytes as text of WebAssembly.

use std::fmt::Write as _;

/// Bytes as a string of the text format.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "\\{byte:02x}").unwrap();
        text
    })
}
