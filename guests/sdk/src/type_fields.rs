//! The fields that a Rust type deserializes, found without a value of the type.
//!
//! [`warning`] compares them with the definition that the guest installs: the API server prunes
//! a field that the definition lacks, so a stale `crd.json` loses what users write.

pub(crate) mod probe;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::probe::{Found, Shape, Step};
use crate::Manifest;

/// The deepest level that is compared. Types may contain themselves.
const DEPTH_MAX: usize = 12;

/// The most differences that a warning names.
const DIFFERENCES_MAX: usize = 8;

/// Says where the type of the primary and the definition that the guest installs for it differ, and
/// what to do.
pub(crate) fn warning<P: DeserializeOwned>(manifest: &Manifest) -> Option<String> {
    let kind = &manifest.primary.as_ref()?.kind;
    let mut found = differences::<P>(manifest);
    if found.is_empty() {
        return None;
    }
    let more = found.len().saturating_sub(DIFFERENCES_MAX);
    found.truncate(DIFFERENCES_MAX);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    Some(format!(
        "the definition of {kind} differs from the guest's types: {}; the API server drops a field that its definition lacks: write crd.json again from the types (`UPDATE_EXPECT=1 cargo test`, if a test compares the two), and build again",
        found.join(", ")
    ))
}

/// Lists where the type of the primary and the definition that the guest installs for it differ:
/// fields that the definition lacks, and fields of another type. Empty if the guest installs no
/// definition of its primary.
fn differences<P: DeserializeOwned>(manifest: &Manifest) -> Vec<String> {
    let Some(schema) = schema(manifest) else { return Vec::new() };
    let mut found = Vec::new();
    compare(&probe::probe::<P>, &mut Vec::new(), &schema, "", &mut found);
    found
}

/// The schema of the version of the primary.
fn schema(manifest: &Manifest) -> Option<Value> {
    let primary = manifest.primary.as_ref()?;
    let (group, version) = primary.api_version.split_once('/')?;
    let definition = manifest.definitions().find(|one| {
        one["spec"]["group"] == group && one["spec"]["names"]["kind"] == *primary.kind
    })?;
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    versions.find(|one| one["name"] == version)?.pointer("/schema/openAPIV3Schema").cloned()
}

fn compare<'a>(
    probe: &dyn Fn(&[Step<'a>]) -> Found,
    path: &mut Vec<Step<'a>>,
    schema: &'a Value,
    place: &str,
    found: &mut Vec<String>,
) {
    if path.len() > DEPTH_MAX {
        return;
    }
    let shape = probe(path).shape;
    if let Some(wrong) = wrong_type(shape, schema) {
        found.push(format!("{} is {wrong}", shown(place)));
        return;
    }
    match shape {
        Shape::Struct(fields) => {
            for &field in fields {
                // The API server itself knows these.
                if path.is_empty() && matches!(field, "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                if let Some(inner) = schema["properties"].get(field) {
                    path.push(Step::Field(field));
                    compare(probe, path, inner, &format!("{place}.{field}"), found);
                    path.pop();
                } else if !is_open(schema) && !is_metadata(fields) {
                    let names = names(probe, path, fields, field);
                    let is_known = names.iter().any(|one| schema["properties"].get(one).is_some());
                    if names.first() == Some(&field) && !is_known {
                        let places =
                            names.iter().map(|one| format!("{place}.{one}")[1..].to_owned());
                        let places: Vec<String> = places.collect();
                        found.push(format!("{} is missing", places.join(" or ")));
                    }
                }
            }
        }
        Shape::Enum(variants) => {
            let Some(known) = schema["enum"].as_array() else { return };
            // The variant that takes every other name.
            let other = identity(probe, path, "\0");
            for &variant in variants {
                let names = names(probe, path, variants, variant);
                let is_known = names.iter().any(|one| known.iter().any(|known| known == one));
                let is_other = other.is_some() && other == identity(probe, path, variant);
                if names.first() == Some(&variant) && !is_known && !is_other {
                    let names: Vec<String> = names.iter().map(|one| format!("{one:?}")).collect();
                    found.push(format!("{} lacks the value {}", shown(place), names.join(" or ")));
                }
            }
        }
        Shape::List => below(probe, path, Step::Item, &schema["items"], place, "[]", found),
        Shape::Map => {
            let values = &schema["additionalProperties"];
            below(probe, path, Step::Value, values, place, ".*", found);
        }
        _ => {}
    }
}

/// Lists the names of one field or variant: its own and its aliases. The type does not say which is
/// its own.
fn names<'a>(
    probe: &dyn Fn(&[Step<'a>]) -> Found,
    path: &mut Vec<Step<'a>>,
    all: &[&'static str],
    name: &'static str,
) -> Vec<&'static str> {
    let wanted = identity(probe, path, name);
    let mut is_name = |one| one == name || wanted.is_some() && wanted == identity(probe, path, one);
    all.iter().copied().filter(|one| is_name(one)).collect()
}

/// A number that all names of one field or variant have in common.
fn identity<'a>(
    probe: &dyn Fn(&[Step<'a>]) -> Found,
    path: &mut Vec<Step<'a>>,
    name: &'static str,
) -> Option<u64> {
    path.push(Step::Name(name));
    let found = probe(path);
    path.pop();
    found.identity
}

/// Whether these are the fields of the metadata of an object in another one: which of them the
/// guest reads, its type does not say.
fn is_metadata(fields: &[&str]) -> bool {
    ["annotations", "generation", "labels", "uid"].iter().all(|name| fields.contains(name))
}

/// A place as a warning names it; empty for the whole object.
fn shown(place: &str) -> &str {
    place.trim_start_matches('.')
}

/// Compares the items of a list, or the values of a map.
fn below<'a>(
    probe: &dyn Fn(&[Step<'a>]) -> Found,
    path: &mut Vec<Step<'a>>,
    step: Step<'a>,
    schema: &'a Value,
    place: &str,
    suffix: &str,
    found: &mut Vec<String>,
) {
    if schema.is_object() {
        path.push(step);
        compare(probe, path, schema, &format!("{place}{suffix}"), found);
        path.pop();
    }
}

/// Whether objects of the schema may have fields that it does not name.
fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema.get("additionalProperties").is_some_and(|more| *more != false)
        || schema["x-kubernetes-embedded-resource"] == true
}

/// The two types, if a value that the schema allows is not one that the Rust type takes.
fn wrong_type(shape: Shape, schema: &Value) -> Option<String> {
    let (expected, fits): (&str, &[&str]) = match shape {
        Shape::Unknown | Shape::Ignored | Shape::Enum(_) => return None,
        Shape::Boolean => ("boolean", &["boolean"]),
        Shape::Integer => ("integer", &["integer"]),
        Shape::Number => ("number", &["integer", "number"]),
        Shape::Text => ("string", &["string"]),
        Shape::List => ("array", &["array"]),
        Shape::Map | Shape::Struct(_) => ("object", &["object"]),
    };
    let actual = schema["type"].as_str()?;
    (!fits.contains(&actual)).then(|| format!("of type {actual} instead of {expected}"))
}

#[cfg(test)]
mod tests;
