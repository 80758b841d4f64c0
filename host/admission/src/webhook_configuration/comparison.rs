//! The comparison of a webhook configuration with the one that the host expects.

use innkeeper_core::well_known::POLICY_LABEL;
use serde_json::Value;

/// Whether a live configuration is as the host expects it.
///
/// Ignores labels and annotations of others, and members of webhooks that the host does not set,
/// which are defaults of the API server. A further owner is a difference: the configuration would
/// outlive its Module.
pub fn equals(live: &Value, expected: &Value) -> bool {
    let of = |object: &Value, path: &str| object.pointer(path).cloned().unwrap_or_default();
    let label = format!("/metadata/labels/{}", POLICY_LABEL.replace('/', "~1"));
    let same = [&label, "/kind", "/metadata/name", "/metadata/ownerReferences"];
    same.iter().all(|path| of(live, path) == of(expected, path))
        && are_same_webhooks(&live["webhooks"], &expected["webhooks"])
}

fn are_same_webhooks(live: &Value, expected: &Value) -> bool {
    // The API server leaves an empty list out.
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (live, expected) = (list(live), list(expected));
    live.len() == expected.len()
        && live.iter().zip(&expected).all(|(live, expected)| covers(live, expected))
}

/// Whether a webhook has all members of another one, unchanged.
fn covers(live: &Value, expected: &Value) -> bool {
    expected
        .as_object()
        .is_some_and(|members| members.iter().all(|(name, member)| live.get(name) == Some(member)))
}
