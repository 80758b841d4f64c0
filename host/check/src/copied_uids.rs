//! Objects that have the uid of their primary in their name or in a field that the host applied.
//!
//! Another cluster of the same objects gives the same result but for these uids, so a comparison of
//! two clusters does not find them: it takes each uid for that of the same object. But a restore
//! from a backup makes the primary again with another uid, and what was made is not found any more.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cluster_state::ClusterState;
use crate::subject::Subject;

/// What each object has of the uid of a primary.
pub(crate) fn copied_uids(state: &ClusterState, subject: &Subject) -> Vec<String> {
    let primaries = state.stored_objects().filter(|(_, object)| subject.is_primary(object));
    let uids: BTreeMap<&str, &str> = primaries
        .filter_map(|(name, object)| Some((object["metadata"]["uid"].as_str()?, name)))
        .collect();
    let objects = state.stored_objects().filter(|(_, object)| !subject.is_primary(object));
    let mut found = Vec::new();
    for (name, object) in objects {
        let applied = state.applied_to(name);
        if applied.is_empty() {
            continue;
        }
        for (uid, primary) in &uids {
            let own_name = object["metadata"]["name"].as_str().unwrap_or_default();
            let in_name = own_name.contains(uid).then(|| ".metadata.name".to_owned());
            let in_fields = applied.iter().find_map(|fields| path_of(object, fields, uid, ""));
            if let Some(path) = in_name.or(in_fields) {
                found.push(format!("{name}: {path} has the uid of {primary}"));
            }
        }
    }
    found
}

/// The path of the first applied field that has a text. The API server wants the uid in owner
/// references, and a status is about the objects that are there.
fn path_of(value: &Value, fields: &Value, text: &str, path: &str) -> Option<String> {
    if path == ".status" || path.ends_with(".ownerReferences") {
        return None;
    }
    let members = fields.as_object().filter(|members| !members.is_empty());
    let Some(members) = members else {
        // An entry without any field has applied nothing.
        if path.is_empty() {
            return None;
        }
        return has_text(value, text).then(|| path.to_owned());
    };
    members.iter().find_map(|(name, fields)| match name.split_once(':') {
        Some(("f", name)) => {
            let path = format!("{path}.{name}");
            if name.contains(text) {
                return Some(path);
            }
            path_of(value.get(name)?, fields, text, &path)
        }
        Some(("k", key)) => {
            let item = item(value, &serde_json::from_str(key).ok()?)?;
            path_of(item, fields, text, &format!("{path}[{key}]"))
        }
        Some(("v", item)) => item.contains(text).then(|| path.to_owned()),
        _ => None,
    })
}

/// The item of a list with these members.
fn item<'v>(list: &'v Value, key: &Value) -> Option<&'v Value> {
    let key = key.as_object()?;
    list.as_array()?
        .iter()
        .find(|item| key.iter().all(|(name, value)| item.get(name) == Some(value)))
}

/// Whether a text is in a value, or in the name of a member.
fn has_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(one) => one.contains(text),
        Value::Array(items) => items.iter().any(|item| has_text(item, text)),
        Value::Object(members) => {
            members.iter().any(|(name, one)| name.contains(text) || has_text(one, text))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "0f3c2a54-0000-4000-8000-000000000001";

    #[test]
    fn uid_is_found_in_applied_fields_at_any_depth() {
        let object = json!({
            "metadata": {"labels": {"owner": UID, "other": "x"}, "ownerReferences": [{"uid": UID}]},
            "spec": {"env": [{"name": "A", "value": "1"}, {"name": "ID", "value": format!("x-{UID}")}],
                "set": [UID], "whole": {"in": {UID: "1"}}, "free": UID},
            "status": {"by": UID},
        });
        for (fields, path) in [
            (json!({"f:metadata": {"f:labels": {"f:owner": {}}}}), Some(".metadata.labels.owner")),
            (json!({"f:metadata": {"f:labels": {"f:other": {}}}}), None),
            (json!({"f:metadata": {"f:ownerReferences": {}}}), None),
            (json!({}), None),
            (json!({"f:status": {"f:by": {}}}), None),
            (
                json!({"f:spec": {"f:env": {"k:{\"name\":\"ID\"}": {".": {}, "f:value": {}}}}}),
                Some(".spec.env[{\"name\":\"ID\"}].value"),
            ),
            (json!({"f:spec": {"f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:value": {}}}}}), None),
            (json!({"f:spec": {"f:set": {(format!("v:\"{UID}\"")): {}}}}), Some(".spec.set")),
            (json!({"f:spec": {"f:whole": {}}}), Some(".spec.whole")),
            // Somebody else has written it.
            (json!({"f:spec": {"f:gone": {}}}), None),
        ] {
            assert_eq!(path_of(&object, &fields, UID, "").as_deref(), path, "{fields}");
        }
    }

    #[test]
    fn hostile_fields_are_no_panic() {
        for fields in [json!({"k:{": {}}), json!({"k:3": {}}), json!({"nothing": {}}), json!(3)] {
            assert_eq!(path_of(&json!([]), &fields, UID, ""), None, "{fields}");
        }
    }
}
