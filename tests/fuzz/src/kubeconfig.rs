//! Kubeconfigs, as files give them.

use innkeeper_cluster::kubeconfig::check_text;

/// Reads a kubeconfig, with its current context and with one of each name. Neither panics, and the
/// message of an error is bounded.
pub fn fuzz_entry(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for context in [None, Some("here"), Some("")] {
        if let Err(error) = check_text(text, context) {
            let message = error.message;
            assert!(!message.is_empty() && message.len() < 1 << 20, "{message}");
        }
    }
}
