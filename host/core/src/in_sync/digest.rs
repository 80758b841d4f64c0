//! The digest of a desired object, and the annotation that holds it.

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::Manager;
use crate::well_known::APPLIED_ANNOTATION;

/// Bytes kept of a SHA-256: with 16 (128 bits) a collision does not happen by chance.
pub(super) const DIGEST_BYTES: usize = 16;

/// Bytes of the hash of a manager in the annotation's name.
const MANAGER_BYTES: usize = 4;

/// The name of the annotation for fields that a primary merges into an object of another owner.
///
/// Several primaries may merge into one object, so the name ends in a short hash of the manager.
pub fn merge_annotation(manager: &Manager) -> String {
    let hash = Sha256::digest(manager.to_string());
    format!("{APPLIED_ANNOTATION}-{}", hex::encode(&hash[..MANAGER_BYTES]))
}

/// Computes the digest of a desired object: 32 hex digits. It ignores guards (`metadata.uid` and
/// `resourceVersion`) and the host's own annotations.
///
/// The input is the JSON text with members in order. That is canonical enough: a digest is only
/// compared with digests that this function made from a guest's result, and two texts for one
/// value (`1` and `1.0`) cost one needless write, not a missed one.
pub fn digest(desired: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(desired, Place::Root, &mut text);
    hex::encode(&Sha256::digest(&text)[..DIGEST_BYTES])
}

/// The canonical text of a value, for digests only: it has the members of each object in order, and
/// is no valid JSON.
pub(crate) fn canonical_text(value: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(value, Place::Below, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Writes the digest of an owned object onto it, as the annotation [`APPLIED_ANNOTATION`], and
/// returns the digest.
pub fn set_digest(desired: &mut Value) -> String {
    set_digest_as(desired, APPLIED_ANNOTATION.to_owned())
}

/// Writes the digest of the fields that `manager` merges onto them, as its [`merge_annotation`],
/// and returns the digest.
pub fn set_merge_digest(desired: &mut Value, manager: &Manager) -> String {
    set_digest_as(desired, merge_annotation(manager))
}

fn set_digest_as(desired: &mut Value, annotation: String) -> String {
    let digest = digest(desired);
    // A value that is no object cannot carry an annotation; the server refuses it on apply.
    if let Some(desired) = desired.as_object_mut()
        && let Some(metadata) = object_at(desired, "metadata")
        && let Some(annotations) = object_at(metadata, "annotations")
    {
        annotations.insert(annotation, Value::from(digest.as_str()));
    }
    digest
}

/// Returns the object under a name, and makes it if there is none.
fn object_at<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let member = parent.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut()
}

/// Reads the text of a digest; `None` if it is not 32 hex digits.
pub(super) fn decode_digest(digest: &str) -> Option<[u8; DIGEST_BYTES]> {
    let mut bytes = [0; DIGEST_BYTES];
    hex::decode_to_slice(digest, &mut bytes).ok()?;
    Some(bytes)
}

/// The part of a desired object that a value belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Metadata,
    Annotations,
    Below,
}

/// Writes JSON with the members of every object in order of their names, whatever map type
/// `serde_json` was built with, and without the members that a digest ignores.
fn write_canonical(value: &Value, place: Place, text: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().filter(|(name, value)| counts(name, value, place)).collect();
            members.sort_by_key(|(name, _)| *name);
            text.push(b'{');
            for (name, value) in members {
                write_json(name.as_str(), text);
                text.push(b':');
                let below = match (place, name.as_str()) {
                    (Place::Root, "metadata") => Place::Metadata,
                    (Place::Metadata, "annotations") => Place::Annotations,
                    _ => Place::Below,
                };
                write_canonical(value, below, text);
                text.push(b',');
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for item in items {
                write_canonical(item, Place::Below, text);
                text.push(b',');
            }
            text.push(b']');
        }
        scalar => write_json(scalar, text),
    }
}

fn write_json<T: Serialize + ?Sized>(value: &T, text: &mut Vec<u8>) {
    // Names and scalars always become JSON, and writing into memory does not fail.
    let _ = serde_json::to_writer(text, value);
}

/// Whether a member is a part of the digest.
fn counts(name: &str, value: &Value, place: Place) -> bool {
    match place {
        Place::Metadata if matches!(name, "uid" | "resourceVersion") => false,
        // `set_digest` makes these members where they are missing, so empty is the same as missing.
        Place::Root if name == "metadata" => is_filled(value, Place::Metadata),
        Place::Metadata if name == "annotations" => is_filled(value, Place::Annotations),
        Place::Annotations => !is_applied_annotation(name),
        _ => true,
    }
}

fn is_filled(value: &Value, place: Place) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => members.iter().any(|(name, value)| counts(name, value, place)),
        _ => true,
    }
}

/// Whether an annotation holds a digest of the host.
fn is_applied_annotation(name: &str) -> bool {
    name.strip_prefix(APPLIED_ANNOTATION)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn digest_is_the_same_when_members_are_in_another_order() {
        let a: Value = serde_json::from_str(r#"{"b":{"y":1,"x":[1,2]},"a":null}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":null,"b":{"x":[1,2],"y":1}}"#).unwrap();
        assert_eq!(digest(&a), digest(&b));
        assert_eq!(digest(&a).len(), 32);
    }

    #[test]
    fn digests_differ_when_objects_differ() {
        let objects = [
            json!({}),
            json!({"a": null}),
            json!({"a": {}}),
            json!({"a": []}),
            json!({"a": ""}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1, 2]}),
            json!({"a": [2, 1]}),
            json!({"a": [12]}),
            json!({"a": [[1], 2]}),
            json!({"a": {"b": 1}, "c": 1}),
            json!({"a": {"b": 1, "c": 1}}),
            json!({"metadata": {"annotations": {"a": "b"}}}),
            json!({"metadata": {"labels": {}}}),
            json!({"spec": {"metadata": {"uid": "x"}}}),
        ];
        let digests: BTreeSet<_> = objects.iter().map(digest).collect();
        assert_eq!(digests.len(), objects.len());
    }

    #[test]
    fn digest_is_the_same_with_guards_and_applied_annotations() {
        let manager = Manager::primary("m", "u");
        for object in [
            json!({"kind": "A"}),
            json!({"kind": "A", "metadata": null}),
            json!({"kind": "A", "metadata": {"name": "x", "annotations": null}}),
            json!({"kind": "A", "metadata": {"name": "x", "annotations": {"innkeeper.dev/adopt": "true"}}}),
        ] {
            let before = digest(&object);
            let mut stamped = object.clone();
            set_digest(&mut stamped);
            assert_eq!(stamped["metadata"]["annotations"][APPLIED_ANNOTATION], before);
            set_merge_digest(&mut stamped, &manager);
            assert_eq!(stamped["metadata"]["annotations"][merge_annotation(&manager)], before);
            stamped["metadata"]["uid"] = json!("u");
            stamped["metadata"]["resourceVersion"] = json!("1");
            assert_eq!(digest(&stamped), before, "{stamped}");
        }
    }

    #[test]
    fn merge_annotation_differs_by_manager() {
        let name = merge_annotation(&Manager::primary("m", "u"));
        assert_eq!(name, "innkeeper.dev/applied-144e434b");
        assert_ne!(name, merge_annotation(&Manager::primary("m", "v")));
    }

    #[test]
    fn value_that_is_no_object_gets_no_digest() {
        for mut value in
            [json!("x"), json!({"metadata": "x"}), json!({"metadata": {"annotations": 1}})]
        {
            let before = value.clone();
            set_digest(&mut value);
            assert_eq!(value, before);
        }
    }
}
