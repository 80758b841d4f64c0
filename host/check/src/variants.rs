//! Primaries made from the samples by the schema of their kind.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::subject::Subject;

/// How many properties the schema of the primary kind has below `spec`, and how many of them the
/// variants change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// All properties without properties of their own.
    pub properties: usize,
    /// Those that at least one variant changes.
    pub changed: usize,
    /// Those that none changes.
    pub unchanged: Vec<String>,
}

/// The deepest property.
const DEPTH_MAX: usize = 6;

/// The most variants of one sample.
const VARIANTS_MAX: usize = 400;

/// The most bytes of the variants of all samples, as JSON. Each is a copy of its sample.
const VARIANTS_BYTES_MAX: usize = 64 << 20;

/// The most properties that a random variant changes.
const CHANGES_MAX: usize = 4;

/// A property that has no properties of its own.
pub(crate) struct Leaf<'s> {
    pub(crate) path: Vec<String>,
    pub(crate) schema: &'s Value,
    pub(crate) is_required: bool,
}

/// The properties of `spec` in the schema of a kind that have no properties of their own.
pub(crate) fn leaves(schema: &Value) -> Vec<Leaf<'_>> {
    let mut leaves = Vec::new();
    walk(&schema["properties"]["spec"], vec!["spec".to_owned()], true, &mut leaves);
    leaves
}

/// Variants of the samples: each property with each of its boundary values, and left out.
pub(crate) fn of(subject: &Subject) -> (Vec<Value>, Coverage) {
    let mut coverage = Coverage::default();
    let Some(schema) = schema_of(subject) else {
        return (subject.samples.clone(), coverage);
    };
    let leaves = leaves(&schema);
    coverage.properties = leaves.len();
    let mut changed = BTreeSet::new();
    let mut variants = Vec::new();
    for sample in &subject.samples {
        let before = variants.len();
        let bytes = sample.to_string().len() * subject.samples.len();
        let variants_max = (VARIANTS_BYTES_MAX / bytes.max(1)).clamp(1, VARIANTS_MAX);
        for (index, leaf) in leaves.iter().enumerate() {
            let present = get(sample, &leaf.path);
            let mut values = values(leaf.schema, present);
            values.retain(|value| Some(value) != present);
            values.truncate(variants_max.saturating_sub(variants.len() - before));
            let mut made: Vec<Value> = Vec::new();
            for value in values {
                let mut variant = sample.clone();
                if set(&mut variant, &leaf.path, value) {
                    made.push(variant);
                }
            }
            if present.is_some() && !leaf.is_required {
                let mut variant = sample.clone();
                unset(&mut variant, &leaf.path);
                made.push(variant);
            }
            if !made.is_empty() {
                changed.insert(index);
            }
            variants.extend(made);
            if variants.len() - before >= variants_max {
                break;
            }
        }
    }
    coverage.changed = changed.len();
    let unchanged = leaves.iter().enumerate().filter(|(index, _)| !changed.contains(index));
    coverage.unchanged = unchanged.map(|(_, leaf)| leaf.path.join(".")).collect();
    (variants, coverage)
}

/// A sample with one to four random properties changed.
pub(crate) fn random(subject: &Subject, random: &mut fastrand::Rng) -> Option<Value> {
    let schema = schema_of(subject)?;
    let leaves = leaves(&schema);
    let mut variant = random.choice(&subject.samples)?.clone();
    for _ in 0..random.usize(1..=CHANGES_MAX) {
        let leaf = random.choice(&leaves)?;
        let mut values = values(leaf.schema, get(&variant, &leaf.path));
        if !leaf.is_required && random.u8(..) < 64 {
            unset(&mut variant, &leaf.path);
        } else if !values.is_empty() {
            let value = values.swap_remove(random.usize(..values.len()));
            set(&mut variant, &leaf.path, value);
        }
    }
    Some(variant)
}

/// A primary with the properties that the schema of its kind requires; `None` if the manifest and
/// the objects of the subject have no schema of it.
pub fn smallest_sample(subject: &Subject) -> Option<Value> {
    let kind = subject.manifest.primary.as_ref()?;
    let schema = schema_of(subject)?;
    let mut object = json!({"apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {"name": "sample"}});
    if let Some(spec) = example(&schema["properties"]["spec"]) {
        object["spec"] = spec;
    }
    Some(object)
}

/// The schema of the primary kind, from the definitions of the manifest and of the cluster.
pub(crate) fn schema_of(subject: &Subject) -> Option<Value> {
    let kind = subject.manifest.primary.as_ref()?;
    let is_of_kind = |one: &Value| {
        one["kind"] == "CustomResourceDefinition"
            && one["spec"]["group"] == kind.group()
            && one["spec"]["names"]["kind"] == kind.kind.as_str()
    };
    let described = subject.manifest.definitions().find(is_of_kind).map(Cow::Owned);
    let in_cluster = || subject.preexisting.iter().find(|one| is_of_kind(one)).map(Cow::Borrowed);
    let definition = described.or_else(in_cluster)?;
    let version = kind.api_version.rsplit('/').next();
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    let version = versions.find(|one| one["name"].as_str() == version)?;
    Some(version["schema"]["openAPIV3Schema"].clone())
}

fn walk<'s>(schema: &'s Value, path: Vec<String>, is_required: bool, leaves: &mut Vec<Leaf<'s>>) {
    let properties = schema["properties"].as_object().filter(|all| !all.is_empty());
    let Some(properties) = properties.filter(|_| path.len() <= DEPTH_MAX) else {
        if path.len() > 1 {
            leaves.push(Leaf { path, schema, is_required });
        }
        return;
    };
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.into_iter().flatten().any(|one| one == name)
    };
    for (name, property) in properties {
        let mut path = path.clone();
        path.push(name.clone());
        walk(property, path, required(name), leaves);
    }
}

/// Values of a property: its boundaries, all of an enumeration, empty and long ones.
pub(crate) fn values(schema: &Value, present: Option<&Value>) -> Vec<Value> {
    if let Some(all) = schema["enum"].as_array() {
        return all.clone();
    }
    let number = |name: &str| schema[name].as_i64();
    if schema["x-kubernetes-int-or-string"] == true {
        return vec![json!(0), json!(1), json!("1"), json!("100m"), json!("1Gi")];
    }
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => vec![json!(true), json!(false)],
        "integer" | "number" => {
            let minimum = number("minimum").unwrap_or(-1);
            let maximum = number("maximum").unwrap_or(minimum.max(0).saturating_add(5));
            let (next, last) = (minimum.saturating_add(1), maximum.saturating_sub(1));
            let mut values = vec![minimum, next, 0, 1, 3, last, maximum];
            values.retain(|value| (minimum..=maximum).contains(value));
            values.sort_unstable();
            values.dedup();
            // An object that wants thousands of copies is valid, and of no use for a check.
            let most = minimum.unsigned_abs().saturating_add(1).max(1_000);
            let is_small = |value: &i64| value.unsigned_abs() <= most;
            values.into_iter().filter(is_small).map(Value::from).collect()
        }
        "string" => texts(schema, present),
        "array" => {
            let items = present.and_then(Value::as_array).cloned().unwrap_or_default();
            let mut values = vec![json!([])];
            let first = items.first().cloned().or_else(|| example(&schema["items"]));
            if let Some(item) = first {
                values.push(json!([item.clone()]));
                values.push(json!([item.clone(), item]));
            }
            // Items with properties of their own are left as they are.
            if schema["items"]["type"] != "object" && schema["items"]["type"] != "array" {
                let others = self::values(&schema["items"], items.first());
                values.extend(others.into_iter().map(|item| json!([item])));
            }
            let mut reversed = items;
            reversed.reverse();
            values.push(reversed.into());
            values
        }
        "object" => {
            let mut values = vec![json!({})];
            if let Some(value) = example(&schema["additionalProperties"]) {
                values.push(json!({"a": value.clone()}));
                values.push(json!({"a": value.clone(), "z": value}));
            }
            values
        }
        _ => vec![json!({}), json!("text")],
    }
}

fn texts(schema: &Value, present: Option<&Value>) -> Vec<Value> {
    let minimum = schema["minLength"].as_u64().unwrap_or(0);
    let maximum = schema["maxLength"].as_u64().unwrap_or(200).min(2_000);
    let mut texts: Vec<String> = match schema["format"].as_str() {
        Some("date-time") => vec!["2026-01-01T00:00:00Z".into(), "2030-12-31T23:59:59Z".into()],
        Some("duration") => vec!["0s".into(), "1h30m".into()],
        _ => ["", "a", "web", "1", "5Gi", "Ünï code", "nginx:1.27", "../x", "{{ .Name }}"]
            .map(str::to_owned)
            .to_vec(),
    };
    texts.push("x".repeat(usize::try_from(maximum).unwrap_or(200)));
    if let Some(present) = present.and_then(Value::as_str) {
        texts.push(format!("{present}-2"));
    }
    texts.retain(|text| (minimum..=maximum).contains(&(text.chars().count() as u64)));
    texts.into_iter().map(Value::from).collect()
}

/// A value that fits a schema: the smallest with all required properties.
fn example(schema: &Value) -> Option<Value> {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return Some(first.clone());
    }
    Some(match schema["type"].as_str()? {
        "boolean" => json!(true),
        "integer" | "number" => schema["minimum"].as_i64().unwrap_or(1).into(),
        "string" => json!("a"),
        "array" => json!([]),
        "object" => {
            let mut object = Map::new();
            for name in schema["required"].as_array().into_iter().flatten() {
                let name = name.as_str()?;
                // A schema may name a property twice.
                if !object.contains_key(name) {
                    object.insert(name.to_owned(), example(&schema["properties"][name])?);
                }
            }
            object.into()
        }
        _ => return None,
    })
}

pub(crate) fn get<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

/// Sets a property; objects on the way are made. False if something else is in the way.
pub(crate) fn set(object: &mut Value, path: &[String], value: Value) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut place = object;
    for name in parents {
        let Some(members) = place.as_object_mut() else { return false };
        place = members.entry(name.clone()).or_insert_with(|| json!({}));
    }
    let Some(members) = place.as_object_mut() else { return false };
    members.insert(last.clone(), value);
    true
}

pub(crate) fn unset(object: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, name| value.get_mut(name));
    if let Some(members) = parent.and_then(Value::as_object_mut) {
        members.remove(last);
    }
}
