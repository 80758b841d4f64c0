//! Messages about keys and values of labels that Kubernetes does not allow.

use crate::names;

/// The longest name and value of a label, in bytes (Kubernetes' limit).
const LABEL_BYTES_MAX: usize = 63;

/// Checks the key of a label.
///
/// # Errors
/// Returns a message with the grammar of keys.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    if names::is_qualified(key) {
        return Ok(());
    }
    Err(match key.split_once('/') {
        None if key.is_empty() => "a label's name is missing".to_owned(),
        Some((_, "")) => format!("`{key}` is no label: its name is empty"),
        _ => format!(
            "`{key}` is no label: it must be [prefix/]name, the prefix a DNS name, the name at most \
             {LABEL_BYTES_MAX} letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit"
        ),
    })
}

/// Checks the value of a label.
///
/// # Errors
/// Returns a message with the grammar of values.
pub(super) fn check_value(value: &str) -> Result<(), String> {
    if names::is_label_value(value) {
        return Ok(());
    }
    Err(format!(
        "`{value}` is no label's value: at most {LABEL_BYTES_MAX} letters, digits, `-`, `_` and `.`, \
         beginning and ending with a letter or digit"
    ))
}
