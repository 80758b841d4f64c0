//! An object as a policy sees it.

use serde_json::value::RawValue;

use super::input::ReviewInput;
use crate::ObjectKey;
use crate::object::{DecodeError, SecretDigest, shown_text};

/// Returns an object of a request as a policy sees it: without `managedFields` and without
/// annotations that hold a copy of the object; a Secret has digests in place of its values.
///
/// Members are left out and texts replaced, and no item of a list moves. So a JSON patch of the
/// shown object fits the real one.
///
/// # Errors
/// If the text is no object of Kubernetes.
pub fn shown(
    input: &ReviewInput<'_>,
    object: &RawValue,
    digest: &SecretDigest<'_>,
) -> Result<String, DecodeError> {
    let key = ObjectKey::new(input.namespace, input.name);
    shown_text(object, &key, input.is_of_secrets(), digest)
}
