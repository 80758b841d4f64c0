//! Incompatible changes between the versions of two definitions.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::findings::Findings;
use super::normal::normal;
use super::schema;

/// Fields of a version that [`compare`] treats one by one.
const COMPARED: [&str; 6] =
    ["name", "served", "storage", "subresources", "schema", "selectableFields"];

/// Fields of a version that affect neither objects nor clients.
const FREE: [&str; 3] = ["additionalPrinterColumns", "deprecated", "deprecationWarning"];

/// The versions of a definition, in its order.
pub(super) fn all(definition: &Value) -> impl Iterator<Item = &Value> {
    definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten()
}

/// The version with this name.
pub(super) fn named<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    all(definition).find(|version| name_of(version) == name)
}

/// The name of the storage version.
pub(super) fn storage_version(definition: &Value) -> Option<&str> {
    all(definition).find(|version| is_set(version, "storage")).map(name_of)
}

/// The names of the versions in which objects may be stored: those in `status.storedVersions`, and
/// the storage version.
pub(super) fn stored_versions(definition: &Value) -> BTreeSet<&str> {
    let listed = definition.pointer("/status/storedVersions").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_str);
    listed.chain(storage_version(definition)).collect()
}

/// The versions of `after` that are newly served, or newly the storage version.
pub(super) fn newly_used<'a>(
    before: &'a Value,
    after: &'a Value,
) -> impl Iterator<Item = &'a Value> {
    all(after).filter(|version| {
        let old = named(before, name_of(version));
        ["served", "storage"]
            .iter()
            .any(|flag| is_set(version, flag) && !old.is_some_and(|old| is_set(old, flag)))
    })
}

/// The versions of `after` that keep less than the version of `before` with the same name, and that
/// are served or have stored objects: the API server prunes an object by the version in which it is
/// written, and by the one in which it was stored.
pub(super) fn narrowed<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = &'a Value> {
    let prunes_now = preserves_unknown_fields(before) && !preserves_unknown_fields(after);
    let stored = stored_versions(before);
    let is_used =
        move |version: &&Value| is_set(version, "served") || stored.contains(name_of(version));
    all(after).filter(is_used).filter(move |version| {
        let mut lost = Findings::default();
        let old = named(before, name_of(version));
        if let Some(old) = old {
            schema::compare_objects(&schema_of(old), &schema_of(version), &mut lost);
        }
        old.is_some() && (prunes_now || !lost.into_vec().is_empty())
    })
}

/// Whether a definition keeps unknown fields everywhere, as only `apiextensions.k8s.io/v1beta1`
/// allowed.
pub(super) fn preserves_unknown_fields(definition: &Value) -> bool {
    definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true))
}

/// The schema of a version, in normal form.
pub(super) fn schema_of(version: &Value) -> Value {
    version.pointer("/schema/openAPIV3Schema").map_or(Value::Null, normal)
}

/// The name of a version.
pub(super) fn name_of(version: &Value) -> &str {
    version["name"].as_str().unwrap_or_default()
}

/// Whether a flag is `true`.
pub(super) fn is_set(value: &Value, flag: &str) -> bool {
    value.get(flag) == Some(&Value::Bool(true))
}

/// Adds each way in which a version of `after` accepts less than the same version of `before`, or
/// less than objects stored in another version need.
pub(super) fn compare(before: &Value, after: &Value, found: &mut Findings) {
    let names: Vec<&str> = all(after).map(name_of).collect();
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        found.add("a version is there twice".to_owned());
    }
    let storage = |definition| all(definition).filter(|one| is_set(one, "storage")).count();
    if storage(after) > 1 || storage(after) < storage(before).min(1) {
        found.add("not exactly one version is the storage version".to_owned());
    }
    for old in all(before) {
        match named(after, name_of(old)) {
            Some(new) => compare_version(old, new, found),
            None => found.add(format!("version {} is gone", name_of(old))),
        }
    }
    for new in newly_used(before, after) {
        for was in stored_versions(before).into_iter().filter(|name| *name != name_of(new)) {
            let Some(old) = named(before, was) else {
                found.add(format!("version {was} has stored objects and no schema"));
                continue;
            };
            // Without a webhook the API server changes only `apiVersion` between versions, so each
            // version must accept the objects that the others store.
            let mut lost = Findings::default();
            schema::compare_objects(&schema_of(old), &schema_of(new), &mut lost);
            let use_ = if is_set(new, "storage") { "stored" } else { "served" };
            for place in lost.into_vec() {
                found.add(format!(
                    "version {} would be {use_} and takes less than {was}: {place}",
                    name_of(new)
                ));
            }
        }
    }
}

fn compare_version(old: &Value, new: &Value, found: &mut Findings) {
    let name = name_of(old);
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
