//! Validation of all objects, and of some kinds.

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::types::crd;
use crate::types::kind::Kind;
use crate::types::object::{finalizers, is_terminating, meta};
use crate::types::status_error::FieldError;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_NAME: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
/// How many bytes all keys and values of annotations may have.
const ANNOTATIONS_MAX: usize = 256 * 1024;
/// The message for an invalid label value.
pub(crate) const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

macro_rules! pattern {
    ($name:ident, $text:literal) => {
        pub(crate) fn $name(text: &str) -> bool {
            static REGEX: OnceLock<Option<Regex>> = OnceLock::new();
            REGEX
                .get_or_init(|| Regex::new($text).ok())
                .as_ref()
                .is_some_and(|regex| regex.is_match(text))
        }
    };
}

pattern!(is_subdomain, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$");
pattern!(is_label, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
pattern!(is_1035, r"^[a-z]([-a-z0-9]*[a-z0-9])?$");
pattern!(is_label_value, r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$");
pattern!(is_qualified, r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$");

/// Whether there can be an account of this name.
pub(crate) fn is_account(namespace: &str, name: &str) -> bool {
    is_label(namespace) && namespace.len() <= 63 && is_subdomain(name) && name.len() <= 253
}

/// Validates a new object.
pub(crate) fn validate_create(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    name(kind, object, &mut errors);
    metadata(kind, object, &mut errors);
    content(kind, object, None, &mut errors);
    errors
}

/// Validates a change.
pub(crate) fn validate_update(
    kind: &Kind,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    metadata(kind, new, &mut errors);
    changes(new, old, &mut errors);
    if !errors.is_empty() {
        // The server validates the metadata twice: for all kinds, and for this one.
        metadata(kind, new, &mut errors);
        changes(new, old, &mut errors);
    }
    if subresource == "status" && kind.custom.is_some() {
        errors.extend(crd::validate::validate_status(kind.schema(), new, Some(old)));
        if let Some(scale) = scale_of(kind) {
            errors.extend(crd::validate::figure(&scale.status, new));
        }
        crd::cel::check(kind.schema(), new, Some(old), &mut errors);
    } else if subresource == "status" {
        crate::types::kinds::pod::status(kind, new, &mut errors);
    } else {
        content(kind, new, Some(old), &mut errors);
        crate::types::kinds::pod::immutable(kind, new, old, &mut errors);
        if kind.is("", "Service") {
            addresses(new, old, &mut errors);
        }
    }
    errors
}

/// A Service keeps its addresses.
fn addresses(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let (new, old) = (&new["spec"], &old["spec"]);
    if new["type"] == "ExternalName" || old["type"] == "ExternalName" {
        return;
    }
    let (now, was) = (new["clusterIPs"].as_array(), old["clusterIPs"].as_array());
    let pairs = was.into_iter().flatten().zip(now.into_iter().flatten());
    for (index, (was, now)) in pairs.enumerate() {
        if was != now {
            let field = format!("spec.clusterIPs[{index}]");
            let why = "may not change once set";
            errors.push(FieldError::invalid(field, new["clusterIPs"].clone(), why));
        }
    }
}

fn scale_of(kind: &Kind) -> Option<&crd::definition::Scale> {
    kind.custom.as_ref()?.version(&kind.version)?.scale.as_ref()
}

fn name(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let name = meta(object, "name");
    let field = "metadata.name";
    match (kind.group.as_str(), kind.name.as_str()) {
        ("rbac.authorization.k8s.io", _) => {}
        ("", "Namespace") => {
            label_length(name, errors);
            if !is_label(name) {
                errors.push(FieldError::invalid(field, name, LABEL_NAME));
            }
        }
        ("", "Service") => {
            label_length(name, errors);
            if !is_1035(name) {
                errors.push(FieldError::invalid(field, name, DNS_1035));
            }
        }
        _ => {
            if name.len() > 253 {
                errors.push(FieldError::invalid(field, name, "must be no more than 253 bytes"));
            }
            if !is_subdomain(name) {
                errors.push(FieldError::invalid(field, name, SUBDOMAIN));
            }
        }
    }
}

fn label_length(name: &str, errors: &mut Vec<FieldError>) {
    if name.len() > 63 {
        let why = "must be no more than 63 characters";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
}

fn qualified(field: &str, key: &str, errors: &mut Vec<FieldError>) {
    if key.matches('/').count() > 1 {
        let of_name = QUALIFIED.trim_start_matches("name part ");
        errors.push(FieldError::invalid(field, key, format!(
            "a valid label key {of_name} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )));
        return;
    }
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    match prefix {
        Some("") => errors.push(FieldError::invalid(field, key, "prefix part must be non-empty")),
        Some(prefix) if !is_subdomain(prefix) => {
            errors.push(FieldError::invalid(field, key, format!("prefix part {SUBDOMAIN}")));
        }
        _ => {}
    }
    if name.is_empty() {
        errors.push(FieldError::invalid(field, key, "name part must be non-empty"));
    } else if name.len() > 63 {
        errors.push(FieldError::invalid(field, key, "name part must be no more than 63 bytes"));
    }
    if !is_qualified(name) {
        errors.push(FieldError::invalid(field, key, QUALIFIED));
    }
}

/// The problem of a label key in a selector, if any.
pub(crate) fn label_key_problem(key: &str) -> Option<String> {
    let mut errors = Vec::new();
    // Go has no path for it.
    qualified("<nil>", key, &mut errors);
    let details: Vec<&str> = errors.iter().map(FieldError::detail).collect();
    (!errors.is_empty()).then(|| format!("<nil>: Invalid value: {key:?}: {}", details.join("; ")))
}

fn metadata(kind: &Kind, object: &Value, errors: &mut Vec<FieldError>) {
    let metadata = &object["metadata"];
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        qualified("metadata.labels", key, errors);
        let value = value.as_str().unwrap_or_default();
        if value.len() > 63 {
            errors.push(FieldError::invalid(
                "metadata.labels",
                value,
                "must be no more than 63 bytes",
            ));
        }
        if !is_label_value(value) {
            errors.push(FieldError::invalid("metadata.labels", value, LABEL_VALUE));
        }
    }
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        qualified("metadata.annotations", &key.to_lowercase(), errors);
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long("metadata.annotations", ANNOTATIONS_MAX as u64));
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        let field = "metadata.ownerReferences";
        for (name, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[name].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::invalid(format!("{field}.{name}"), "", why));
            }
        }
    }
    let controllers = metadata["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|owner| owner["controller"] == true);
    if controllers.count() > 1 {
        let why =
            "Only one reference can have Controller set to true. Found \"true\" in references for";
        errors.push(FieldError::invalid(
            "metadata.ownerReferences",
            metadata["ownerReferences"].clone(),
            why,
        ));
    }
    for finalizer in finalizers(object) {
        qualified("metadata.finalizers", &finalizer, errors);
        let standard = matches!(finalizer.as_str(), "orphan" | "foregroundDeletion" | "kubernetes");
        // Definitions and their kinds may have any qualified name.
        let any = kind.custom.is_some() || kind.group == "apiextensions.k8s.io";
        if !any && !finalizer.contains('/') && !standard {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid("metadata.finalizers", finalizer, why));
        }
    }
}

fn changes(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if is_terminating(old) {
        let known = finalizers(old);
        let added: BTreeSet<String> = finalizers(new)
            .into_iter()
            .filter(|one| !known.contains(one))
            .map(|one| format!("{one:?}"))
            .collect();
        let added: Vec<String> = added.into_iter().collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", why));
        }
    }
    for name in ["name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let (now, was) = (&new["metadata"][name], &old["metadata"][name]);
        if now != was {
            errors.push(FieldError::invalid(
                format!("metadata.{name}"),
                now.clone(),
                "field is immutable",
            ));
        }
    }
}

fn content(kind: &Kind, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if kind.custom.is_some() {
        errors.extend(crd::validate::validate(kind.schema(), object, old));
        if let Some(scale) = scale_of(kind) {
            errors.extend(crd::validate::figure(&scale.spec, object));
            errors.extend(crd::validate::figure(&scale.status, object));
        }
        crd::cel::check(kind.schema(), object, old, errors);
    } else {
        crate::types::kinds::pod::rules(kind, object, errors);
    }
}
