//! The versions of two definitions.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::findings::Findings;
use super::normal::normal;
use super::schema;

/// Fields of a version that are compared one by one.
const COMPARED: [&str; 6] =
    ["name", "served", "storage", "subresources", "schema", "selectableFields"];

/// Fields of a version that change nothing for objects and clients.
const FREE: [&str; 3] = ["additionalPrinterColumns", "deprecated", "deprecationWarning"];

/// The versions of a definition, in its order.
pub(super) fn all(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

/// The version with this name.
pub(super) fn named<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    all(definition).find(|version| text(version) == name)
}

/// The name of the version in which new objects are stored.
pub(super) fn stored_now(definition: &Value) -> Option<&str> {
    all(definition).find(|version| is_set(version, "storage")).map(text)
}

/// The names of the versions in which objects may be stored.
pub(super) fn stored(definition: &Value) -> BTreeSet<&str> {
    let listed = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_str);
    listed.chain(stored_now(definition)).collect()
}

/// The versions of `after` that objects stored by `before` are newly read or stored in.
pub(super) fn entered<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = &'a Value> {
    all(after).filter(|version| {
        let old = named(before, text(version));
        ["served", "storage"]
            .iter()
            .any(|flag| is_set(version, flag) && !old.is_some_and(|old| is_set(old, flag)))
    })
}

/// The schema of a version, in normal form.
pub(super) fn schema_of(version: &Value) -> Value {
    version.pointer("/schema/openAPIV3Schema").map_or(Value::Null, normal)
}

pub(super) fn text(version: &Value) -> &str {
    version["name"].as_str().unwrap_or_default()
}

pub(super) fn is_set(value: &Value, flag: &str) -> bool {
    value.get(flag) == Some(&Value::Bool(true))
}

/// Adds each way in which a version of `after` accepts less than the same version of `before`.
pub(super) fn compare(before: &Value, after: &Value, found: &mut Findings) {
    let names: Vec<&str> = all(after).map(text).collect();
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        found.add("a version is there twice".to_owned());
    }
    let storage = |definition| all(definition).filter(|one| is_set(one, "storage")).count();
    if storage(after) > 1 || storage(after) < storage(before).min(1) {
        found.add("not exactly one version is the storage version".to_owned());
    }
    for old in all(before) {
        match named(after, text(old)) {
            Some(new) => version(old, new, found),
            None => found.add(format!("version {} is gone", text(old))),
        }
    }
    for new in entered(before, after) {
        for was in stored(before).into_iter().filter(|name| *name != text(new)) {
            let Some(old) = named(before, was) else {
                found.add(format!("version {was} has stored objects and no schema"));
                continue;
            };
            // Without a webhook nothing is converted: each version must take what the others store.
            let mut lost = Findings::default();
            schema::compare_objects(&schema_of(old), &schema_of(new), &mut lost);
            let use_ = if is_set(new, "storage") { "stored" } else { "served" };
            for place in lost.into_vec() {
                found.add(format!(
                    "version {} would be {use_} and takes less than {was}: {place}",
                    text(new)
                ));
            }
        }
    }
}

fn version(old: &Value, new: &Value, found: &mut Findings) {
    let name = text(old);
    if is_set(old, "served") && !is_set(new, "served") {
        found.add(format!("version {name} is no longer served"));
    }
    let subresource = |version: &Value, which: &str| version["subresources"].get(which).cloned();
    for which in ["status", "scale"] {
        match (subresource(old, which), subresource(new, which)) {
            (Some(_), None) => {
                found.add(format!("version {name} loses its subresource {which}"));
            }
            (Some(was), Some(now)) if was != now => {
                found.add(format!("version {name} has another subresource {which}"));
            }
            _ => {}
        }
    }
    let selectable = |version: &Value| -> BTreeSet<String> {
        let fields = version["selectableFields"].as_array().into_iter().flatten();
        fields.map(|field| field["jsonPath"].as_str().unwrap_or_default().to_owned()).collect()
    };
    for field in selectable(old).difference(&selectable(new)) {
        found.add(format!("version {name} is no longer selected by {field}"));
    }
    let names = |version: &Value| -> BTreeSet<String> {
        version.as_object().into_iter().flat_map(Map::keys).cloned().collect()
    };
    for field in names(old).union(&names(new)) {
        let is_known = [&COMPARED[..], &FREE[..]].iter().any(|all| all.contains(&field.as_str()));
        if !is_known && old.get(field) != new.get(field) {
            found.add(format!("version {name} has another {field}"));
        }
    }
    schema::compare_objects(&schema_of(old), &schema_of(new), found);
}
