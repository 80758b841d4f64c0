//! Paths of the Kubernetes API: of a group and version, a kind, and an object.

use innkeeper_contract::Kind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::ApiError;

/// The bytes that are percent-encoded in a segment of a path and in a value of a query.
const SEGMENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Percent-encodes a segment of a path or a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// The path of a kind's group and version: `/apis/apps/v1`.
pub(crate) fn group_path(kind: &Kind) -> String {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let version = encoded(kind.version());
    match kind.group() {
        "" => format!("{root}/{version}"),
        group => format!("{root}/{}/{version}", encoded(group)),
    }
}

/// The path of a kind, or of one object of it. A guest chooses the names: none of them leaves its
/// segment of the path.
///
/// # Errors
/// [`ApiError::Invalid`] for a plural name, namespace or name that cannot be one segment.
pub(crate) fn resource_path(
    kind: &Kind,
    namespace: Option<&str>,
    name: Option<&str>,
    subresource: &str,
) -> Result<String, ApiError> {
    // The server splits the path after it has decoded it: a slash is no part of a name.
    let segment = |what: &str, text: &str| {
        if matches!(text, "" | "." | "..") || text.contains(['/', '%']) {
            Err(ApiError::Invalid { message: format!("{kind}: {text:?} is no {what}") })
        } else {
            Ok(encoded(text))
        }
    };
    let mut path = group_path(kind);
    if let Some(namespace) = namespace
        && kind.is_namespaced()
    {
        path = format!("{path}/namespaces/{}", segment("namespace", namespace)?);
    }
    path = format!("{path}/{}", segment("plural name", &kind.plural)?);
    if let Some(name) = name {
        path = format!("{path}/{}", segment("name", name)?);
    }
    if !subresource.is_empty() {
        path = format!("{path}/{}", encoded(subresource));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_with_special_characters_stays_within_its_segment() {
        let kind = Kind::namespaced("apps/v1", "Deployment", "deployments");
        assert_eq!(
            resource_path(&kind, Some("n"), Some("a"), "status").unwrap(),
            "/apis/apps/v1/namespaces/n/deployments/a/status"
        );
        assert_eq!(
            resource_path(&kind, Some("n"), Some("x?y# "), "").unwrap(),
            "/apis/apps/v1/namespaces/n/deployments/x%3Fy%23%20"
        );
        for wrong in ["", ".", "..", "a/status", "../secrets/x", "a%2Fb"] {
            let of_name = resource_path(&kind, Some("n"), Some(wrong), "");
            assert_eq!(of_name.unwrap_err().reason(), "Invalid");
            let of_namespace = resource_path(&kind, Some(wrong), Some("a"), "");
            assert_eq!(of_namespace.unwrap_err().reason(), "Invalid");
        }
        let role = Kind::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles");
        assert_eq!(
            resource_path(&role, Some(""), Some("system:x"), "").unwrap(),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:x"
        );
    }
}
