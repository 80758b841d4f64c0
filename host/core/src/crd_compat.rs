//! Whether one version of a CustomResourceDefinition accepts everything that another accepts:
//! stored objects stay valid, the API server prunes nothing of them, and it still accepts manifests
//! that it accepted before.
//!
//! A change that is not proven to be an addition is incompatible: a keyword or field that this
//! module does not know must not change.

mod display;
mod findings;
mod lost_fields;
mod normal;
mod objects;
mod schema;
#[cfg(test)]
mod tests;
mod unchecked;
mod versions;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{diff, foreign};

use findings::{FINDING_BYTES_MAX, Findings};

pub use lost_fields::{LOST_FIELDS_MAX, Misfit};
pub use objects::StoredObjects;

/// The longest lists that [`changed_fields`] compares item by item.
const LIST_MAX: usize = 100;

/// Fields of a definition's spec that are compared one by one.
const COMPARED: [&str; 6] =
    ["group", "scope", "names", "versions", "conversion", "preserveUnknownFields"];

/// Lists the incompatible changes from `before` to `after`, each with its place, in order; empty if
/// `after` only adds. At most 100 changes.
pub fn incompatible_changes(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Findings::default();
    compare_identity(before, after, &mut found);
    let preserves = versions::preserves_unknown_fields;
    if preserves(before) != preserves(after) {
        found.add(".spec.preserveUnknownFields changes".to_owned());
    }
    versions::compare(before, after, &mut found);
    found.into_vec()
}

/// Lists the changes that make `after` another kind or another conversion than `before`, and those
/// of fields that this module does not know, each with its place, in order.
pub fn identity_changes(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Findings::default();
    compare_identity(before, after, &mut found);
    let stored = versions::stored_versions(before);
    for name in stored.into_iter().filter(|name| versions::named(after, name).is_none()) {
        found.add(format!("version {name}, in which objects are stored, is gone"));
    }
    found.into_vec()
}

/// Lists the patterns, formats and rules of `after` that `before` does not have at the same place,
/// as in `.spec.size (pattern)`: [`StoredObjects`] does not check them. At most 100.
pub fn unchecked_changes(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Findings::default();
    unchecked::find(before, after, &mut found);
    found.into_vec()
}

/// Lists the short names, categories and columns of `before` that are gone when `after` replaces
/// it, as in `the short name wd`. At most 100.
pub fn display_losses(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Findings::default();
    display::find_losses(before, after, &mut found);
    found.into_vec()
}

fn compare_identity(before: &Value, after: &Value, found: &mut Findings) {
    for pointer in ["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"] {
        if before.pointer(pointer) != after.pointer(pointer) {
            found.add(format!("{} changes", pointer.replace('/', ".")));
        }
    }
    for (name, effective) in
        [("singular", singular as fn(&Value) -> String), ("listKind", list_kind)]
    {
        if effective(before) != effective(after) {
            found.add(format!(".spec.names.{name} changes"));
        }
    }
    // `kubectl delete all --all` would delete objects that it did not delete before.
    if categories(after).any(|name| name == "all") && !categories(before).any(|name| name == "all")
    {
        found.add(".spec.names.categories gets all".to_owned());
    }
    if conversion(before) != conversion(after) && after.pointer("/spec/conversion").is_some() {
        found.add(".spec.conversion changes".to_owned());
    }
    let (was, now) = (&before["spec"], &after["spec"]);
    for name in member_names(was).union(&member_names(now)).filter(|name| !COMPARED.contains(name))
    {
        if was.get(name) != now.get(name) {
            found.add(format!(".spec.{name} changes"));
        }
    }
}

/// Lists the fields of the spec in which two definitions differ, compatible or not, at most `max`.
/// Documentation and fields that the API server fills in are no difference.
pub fn changed_fields(before: &Value, after: &Value, max: usize) -> Vec<String> {
    let places = diff::changed_fields(&normal_spec(before), &normal_spec(after), max);
    places.iter().map(|place| foreign::one_line(place, FINDING_BYTES_MAX)).collect()
}

/// The spec without documentation, and with the fields that the API server fills in.
fn normal_spec(definition: &Value) -> Value {
    let mut spec = definition["spec"].clone();
    for version in spec["versions"].as_array_mut().into_iter().flatten() {
        let schema = versions::schema_of(version);
        for column in version["additionalPrinterColumns"].as_array_mut().into_iter().flatten() {
            if let Some(column) = column.as_object_mut() {
                column.retain(|name, value| name != "priority" || *value != 0);
            }
        }
        if let Some(version) = version.as_object_mut() {
            version.retain(|_, value| !is_omitted(value));
            version.retain(|name, value| name != "deprecated" || *value != false);
            version.insert("schema".into(), serde_json::json!({ "openAPIV3Schema": schema }));
        }
    }
    if let Some(members) = spec.as_object_mut() {
        members.insert("conversion".into(), conversion(definition).0.into());
        members.retain(|name, value| name != "preserveUnknownFields" || *value != false);
    }
    if let Some(names) = spec["names"].as_object_mut() {
        names.insert("singular".into(), singular(definition).into());
        names.insert("listKind".into(), list_kind(definition).into());
        names.retain(|_, value| !is_omitted(value));
    }
    shorten(&mut spec);
    serde_json::json!({ "spec": spec })
}

/// Whether the API server leaves a value out.
fn is_omitted(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Replaces each long list by its JSON text: pairing the items of two lists takes time that grows
/// with the square of their length.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(items) if items.len() > LIST_MAX => *value = value.to_string().into(),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

fn member_names(value: &Value) -> BTreeSet<&str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

fn name_in_spec<'a>(definition: &'a Value, name: &str) -> Option<&'a str> {
    definition.get("spec")?.get("names")?.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The singular name, as the API server fills it in.
fn singular(definition: &Value) -> String {
    let of_kind = || name_in_spec(definition, "kind").unwrap_or_default().to_lowercase();
    name_in_spec(definition, "singular").map_or_else(of_kind, str::to_owned)
}

/// The kind of lists, as the API server fills it in.
fn list_kind(definition: &Value) -> String {
    let of_kind = || format!("{}List", name_in_spec(definition, "kind").unwrap_or_default());
    name_in_spec(definition, "listKind").map_or_else(of_kind, str::to_owned)
}

fn categories(definition: &Value) -> impl Iterator<Item = &str> {
    let names = definition.pointer("/spec/names/categories").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// The conversion, as the API server fills it in.
fn conversion(definition: &Value) -> (&str, Option<&Value>) {
    let conversion = definition.pointer("/spec/conversion");
    let strategy = conversion.and_then(|one| one.get("strategy")).and_then(Value::as_str);
    let webhook = conversion.and_then(|one| one.get("webhook")).filter(|one| !one.is_null());
    (strategy.unwrap_or("None"), webhook)
}
