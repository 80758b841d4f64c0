//! Kubernetes' grammars of names, one function each, as in `apimachinery/pkg/util/validation`.
//!
//! The host checks the names of a guest where it reads the guest's result, before they reach a URL,
//! a field manager, a printed document or a log.

use innkeeper_contract::Kind;
use serde_json::{Map, Value};

use crate::foreign;

/// The longest label of a DNS name, in bytes (RFC 1123).
const LABEL_BYTES_MAX: usize = 63;

/// The longest name of an object, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// How many bytes of an invalid name a message quotes.
const QUOTED_BYTES_MAX: usize = 253;

/// Groups whose objects may have any name that is one segment of a URL path: RBAC of Kubernetes
/// (`system:node`), and users and RBAC of OpenShift.
const PATH_SEGMENT_GROUPS: [&str; 4] = [
    "rbac.authorization.k8s.io",
    "authorization.openshift.io",
    "oauth.openshift.io",
    "user.openshift.io",
];

/// Further kinds with such names: `IPAddress` (an IPv6 address), `ClusterTrustBundle`
/// (`SIGNER:NAME`).
const PATH_SEGMENT_KINDS: [(&str, &str); 2] =
    [("networking.k8s.io", "IPAddress"), ("certificates.k8s.io", "ClusterTrustBundle")];

/// Whether a text is a DNS label (RFC 1123), like the name of a namespace.
pub fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= LABEL_BYTES_MAX && is_framed(text, inner, |byte| inner(byte) || byte == b'-')
}

/// Whether a text is a DNS label that begins with a letter (RFC 1035), like a plural or a version.
pub fn is_letter_label(text: &str) -> bool {
    is_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Whether a text is a DNS subdomain (RFC 1123), like the names of most objects and of API groups.
pub fn is_subdomain(text: &str) -> bool {
    is_subdomain_of(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

fn is_subdomain_of(text: &str, inner: impl Fn(u8) -> bool + Copy) -> bool {
    text.len() <= NAME_BYTES_MAX
        && text.split('.').all(|label| is_framed(label, inner, |byte| inner(byte) || byte == b'-'))
}

/// Whether a text is the name of a kind: CamelCase, at most 63 letters and digits.
pub fn is_kind(text: &str) -> bool {
    text.len() <= LABEL_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a text is a group and a version, or a version alone for the core group.
pub fn is_api_version(text: &str) -> bool {
    match text.split_once('/') {
        Some((group, version)) => is_subdomain(group) && is_letter_label(version),
        None => is_letter_label(text),
    }
}

/// Whether a text is a qualified name (`[PREFIX/]NAME`), like the key of a label or a finalizer.
pub fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_word(name),
        None => is_qualified_word(text),
    }
}

/// Whether a text is the key of an annotation, whose prefix may have capital letters.
fn is_annotation_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => {
            is_subdomain_of(prefix, |byte| byte.is_ascii_alphanumeric()) && is_qualified_word(name)
        }
        None => is_qualified_word(text),
    }
}

/// Whether a text is the value of a label.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_word(text)
}

/// Whether a text is a key of a Secret or a `ConfigMap`.
pub fn is_data_key(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(inner)
        && text != "."
        && !text.starts_with("..")
}

/// Whether Kubernetes allows this name for objects of a kind.
///
/// The name must be a DNS subdomain. A few kinds allow any segment of a URL path; this function
/// still refuses control, format and space characters there.
pub fn is_object_name(api_version: &str, kind: &str, name: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    if PATH_SEGMENT_GROUPS.contains(&group) || PATH_SEGMENT_KINDS.contains(&(group, kind)) {
        is_path_segment(name)
    } else {
        is_subdomain(name)
    }
}

/// Checks apiVersion, kind, name and namespace of a reference to an object; the namespace may be
/// empty.
///
/// # Errors
/// Returns the first invalid member, and its grammar.
pub fn check_reference(
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<(), String> {
    let quoted = |text: &str| foreign::one_line(text, QUOTED_BYTES_MAX);
    if !is_api_version(api_version) {
        return Err(format!("apiVersion `{}` is not a group and a version", quoted(api_version)));
    }
    if !is_kind(kind) {
        return Err(format!("kind `{}` is not a CamelCase name", quoted(kind)));
    }
    if !is_object_name(api_version, kind, name) {
        return Err(format!("name `{}` is not a name that Kubernetes allows", quoted(name)));
    }
    if !namespace.is_empty() && !is_label(namespace) {
        return Err(format!("namespace `{}` is not a label of RFC 1123", quoted(namespace)));
    }
    Ok(())
}

/// Checks the labels, annotations and finalizers of `metadata`.
///
/// # Errors
/// Returns the first invalid member, and its grammar.
pub fn check_metadata(metadata: &Value) -> Result<(), String> {
    let quoted = |text: &str| foreign::one_line(text, QUOTED_BYTES_MAX);
    for member in ["labels", "annotations"] {
        let texts = match metadata.get(member) {
            None => continue,
            Some(Value::Object(texts)) => texts,
            Some(_) => return Err(format!("metadata.{member} is not an object")),
        };
        let invalid = invalid_key(texts, |key| match member {
            "annotations" => is_annotation_key(key),
            _ => is_qualified(key),
        });
        if let Some(key) = invalid {
            return Err(format!(
                "metadata.{member} has the key `{}`: not a qualified name ([DNS name/]name of letters, digits, `-`, `_` and `.`)",
                quoted(key)
            ));
        }
        for (key, value) in texts {
            let Some(value) = value.as_str() else {
                return Err(format!("metadata.{member}.{key} is not a text"));
            };
            if member == "labels" && !is_label_value(value) {
                return Err(format!(
                    "metadata.labels.{key} is `{}`: not the value of a label (at most 63 letters, digits, `-`, `_` and `.`)",
                    quoted(value)
                ));
            }
        }
    }
    let finalizers = match metadata.get("finalizers") {
        None => return Ok(()),
        Some(Value::Array(finalizers)) => finalizers,
        Some(_) => return Err("metadata.finalizers is not a list".to_owned()),
    };
    for finalizer in finalizers {
        let Some(name) = finalizer.as_str() else {
            return Err("metadata.finalizers has a member that is not a text".to_owned());
        };
        if !is_qualified(name) {
            return Err(format!(
                "metadata.finalizers has `{}`: not a qualified name",
                quoted(name)
            ));
        }
    }
    Ok(())
}

/// Finds the first key that is not valid.
fn invalid_key(texts: &Map<String, Value>, is_valid: impl Fn(&str) -> bool) -> Option<&str> {
    texts.keys().map(String::as_str).find(|key| !is_valid(key))
}

/// Whether a text is one segment of a URL path, with visible characters only.
fn is_path_segment(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= NAME_BYTES_MAX
        && !matches!(text, "." | "..")
        && !text.contains([' ', '/', '%', '?', '#'])
        && text.chars().all(foreign::is_visible)
}

/// Whether a text is a name without prefix.
fn is_qualified_word(text: &str) -> bool {
    let ends = |byte: u8| byte.is_ascii_alphanumeric();
    text.len() <= LABEL_BYTES_MAX
        && is_framed(text, ends, |byte| ends(byte) || matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether a text is not empty, its first and last byte satisfy `ends`, and all bytes `inner`.
fn is_framed(text: &str, ends: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&byte| ends(byte))
        && bytes.last().is_some_and(|&byte| ends(byte))
        && bytes.iter().all(|&byte| inner(byte))
}

/// Whether Kubernetes allows this name for objects of a kind that a manifest declares.
pub fn is_name_of(kind: &Kind, name: &str) -> bool {
    is_object_name(&kind.api_version, &kind.kind, name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Texts that are no name of any kind.
    const HOSTILE: [&str; 16] = [
        "",
        ".",
        "..",
        "a/b",
        "a%2fb",
        "a?b",
        "a#b",
        "a b",
        " a",
        "a\nb",
        "a\rb",
        "a\0b",
        "a\u{1b}[2Jb",
        "a\u{202e}b",
        "a\u{200b}b",
        "a\u{85}b",
    ];

    #[test]
    fn hostile_names_are_refused_for_every_kind() {
        for name in HOSTILE {
            for (api_version, kind) in [
                ("v1", "ConfigMap"),
                ("rbac.authorization.k8s.io/v1", "ClusterRole"),
                ("networking.k8s.io/v1", "IPAddress"),
                ("example.com/v1", "Tiny"),
            ] {
                assert!(!is_object_name(api_version, kind, name), "{kind} {name:?}");
            }
            assert!(!is_label(name) && !is_subdomain(name) && !is_kind(name), "{name:?}");
            if name != "a/b" {
                assert!(!is_qualified(name) && !is_api_version(name), "{name:?}");
            }
        }
    }

    #[test]
    fn object_name_follows_the_grammar_of_its_kind() {
        for (api_version, kind, name, is_good) in [
            ("v1", "ConfigMap", "kube-root-ca.crt", true),
            ("v1", "ConfigMap", "0a", true),
            ("v1", "ConfigMap", "system:x", false),
            ("v1", "ConfigMap", "Upper", false),
            ("v1", "ConfigMap", "a_b", false),
            ("v1", "ConfigMap", "-a", false),
            ("v1", "ConfigMap", "a..b", false),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node", true),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", "Upper_Case", true),
            ("user.openshift.io/v1", "Group", "system:authenticated", true),
            ("networking.k8s.io/v1", "IPAddress", "2001:db8::1", true),
            ("networking.k8s.io/v1", "Ingress", "2001:db8::1", false),
            ("certificates.k8s.io/v1beta1", "ClusterTrustBundle", "example.com:a:b", true),
        ] {
            assert_eq!(is_object_name(api_version, kind, name), is_good, "{kind} {name}");
        }
        let long = "a".repeat(253);
        assert!(is_subdomain(&long) && !is_subdomain(&format!("{long}a")) && !is_label(&long));
    }

    #[test]
    fn wildcards_and_yaml_scalars_are_no_groups_versions_kinds_or_plurals() {
        for good in ["v1", "apps/v1", "quay.io/v1alpha1"] {
            assert!(is_api_version(good), "{good}");
        }
        for bad in ["*", "*/v1", "a/*", "/v1", "apps/", "a/b/c", "v1 ", "1", "apps/1e3", "V1"] {
            assert!(!is_api_version(bad), "{bad}");
        }
        for bad in ["*", "1e3", "0x1f", "12", "-", "~"] {
            assert!(!is_letter_label(bad), "{bad}");
        }
        assert!(is_kind("HTTPRoute") && !is_kind("httpRoute") && !is_kind("A-B"));
    }

    #[test]
    fn invalid_metadata_is_refused_with_its_member() {
        let good = json!({"labels": {"app": "", "example.com/a_B": "x.y"},
            "annotations": {"Example.com/note": "any\ntext"}, "finalizers": ["a.b/c", "orphan"]});
        assert_eq!(check_metadata(&good), Ok(()));
        for (metadata, member) in [
            (json!({"labels": {"a b": "c"}}), "metadata.labels"),
            (json!({"labels": {"a\n": "c"}}), "metadata.labels"),
            (json!({"labels": {"a": "\u{202e}"}}), "metadata.labels.a"),
            (json!({"labels": {"a": "x".repeat(64)}}), "metadata.labels.a"),
            (json!({"labels": {"a": 1}}), "metadata.labels.a is not a text"),
            (json!({"labels": []}), "metadata.labels is not an object"),
            (json!({"annotations": {"a/b/c": ""}}), "metadata.annotations"),
            (json!({"annotations": {"\u{1b}[2J": ""}}), "metadata.annotations"),
            (json!({"annotations": {"a": null}}), "metadata.annotations.a is not a text"),
            (json!({"finalizers": ["a b"]}), "metadata.finalizers"),
            (json!({"finalizers": "a"}), "metadata.finalizers is not a list"),
            (json!({"finalizers": [1]}), "metadata.finalizers"),
        ] {
            let error = check_metadata(&metadata).unwrap_err();
            assert!(error.starts_with(member), "{error}");
            assert!(error.chars().all(foreign::is_visible), "{error:?}");
        }
    }
}
