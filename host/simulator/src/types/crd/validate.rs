//! Whether a custom resource keeps the rules of its schema, in the server's words.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use crate::apply::shape::{go, go_type};
use crate::mutation::{Mutation, is_active};
use crate::types::crd::cel::counterpart;
use crate::types::schema::{Additional, ListType, Rules, Schema, Type};
use crate::types::status_error::FieldError;
use crate::types::value;

/// Validates an object that replaces `old`. Unchanged values are ignored.
pub(crate) fn validate(schema: &Schema, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, old, "", &mut errors);
    errors.extend(new_duplicates(schema, value, old, ""));
    errors
}

/// Reports duplicates in lists, unless the old object had some.
fn new_duplicates(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
) -> Vec<FieldError> {
    let found = |value: &Value| {
        let mut errors = Vec::new();
        lists(schema, value, path, &mut errors);
        errors
    };
    if old.is_some_and(|old| !found(old).is_empty()) { Vec::new() } else { found(value) }
}

/// Validates only the status of an object.
pub(crate) fn validate_status(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let (Some(inner), Some(status)) = (schema.properties.get("status"), value.get("status")) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let before = old.and_then(|old| old.get("status"));
    walk(inner, status, before, "", &mut errors);
    for error in &mut errors {
        error.field = if error.field.is_empty() {
            "status".to_owned()
        } else {
            format!("status.{}", error.field)
        };
    }
    errors.extend(new_duplicates(inner, status, before, "status"));
    errors
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if is_whole(number) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_whole(number: &serde_json::Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|value| value.fract() == 0.0)
}

fn wanted(kind: Type) -> &'static str {
    match kind {
        Type::Any => "",
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
    }
}

fn fits(kind: Type, value: &Value) -> bool {
    match kind {
        Type::Any => true,
        Type::Object => value.is_object(),
        Type::Array => value.is_array(),
        Type::String => value.is_string(),
        Type::Integer => value.as_number().is_some_and(is_whole),
        Type::Number => value.is_number(),
        Type::Boolean => value.is_boolean(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn walk(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let unchanged = old == Some(value);
    if schema.reference.is_some() || (value.is_null() && schema.nullable) || unchanged {
        return;
    }
    if schema.int_or_string {
        if !value.is_string() && !value.as_number().is_some_and(is_whole) {
            let why =
                format!("{path} in body must be of type integer,string: {:?}", type_name(value));
            errors.push(FieldError::wrong_type(path, type_name(value), why));
        }
    } else if !fits(schema.kind, value) {
        let why = format!(
            "{path} in body must be of type {}: {:?}",
            wanted(schema.kind),
            type_name(value)
        );
        errors.push(FieldError::wrong_type(path, type_name(value), why));
        enumerated(&schema.rules, value, path, errors);
        return;
    }
    rules(&schema.rules, value, path, errors);
    match value {
        Value::Object(map) => {
            for name in &schema.required {
                if !map.contains_key(name) && !is_active(Mutation::RequiredIsNotChecked) {
                    errors.push(FieldError::required(join(path, name), ""));
                }
            }
            for (name, member) in map {
                let before = old.and_then(|old| old.get(name));
                match (schema.properties.get(name), &schema.additional) {
                    (Some(inner), _) => walk(inner, member, before, &join(path, name), errors),
                    (None, Additional::Of(inner)) => {
                        walk(inner, member, before, &join(path, name), errors);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    let before = counterpart(schema, item, old);
                    walk(inner, item, before, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn rules(rules: &Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut invalid = |why: String| {
        let why = format!("{path} in body {why}");
        errors.push(FieldError::invalid(path, value.clone(), why));
    };
    match value {
        Value::Number(number) => {
            for why in number_rules(rules, number) {
                invalid(why);
            }
        }
        Value::String(text) => {
            let length = text.chars().count() as u64;
            if let Some(least) = rules.min_length.filter(|least| length < *least) {
                invalid(format!("should be at least {least} chars long"));
            }
            if let Some(pattern) = &rules.pattern
                && !Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
            {
                invalid(format!("should match '{pattern}'"));
            }
            if let Some(most) = rules.max_length.filter(|most| length > *most) {
                errors.push(FieldError::too_long(path, most));
            }
        }
        Value::Array(items) => {
            let length = items.len() as u64;
            if let Some(least) = rules.min_items.filter(|least| length < *least) {
                invalid(format!("should have at least {least} items"));
            }
            if let Some(most) = rules.max_items.filter(|most| length > *most) {
                errors.push(FieldError::too_many(path, items.len(), most));
            }
        }
        Value::Object(map) => {
            let length = map.len() as u64;
            if let Some(least) = rules.min_properties.filter(|least| length < *least) {
                invalid(format!("should have at least {least} properties"));
            }
            if let Some(most) = rules.max_properties.filter(|most| length > *most) {
                errors.push(FieldError::too_many(path, map.len(), most));
            }
        }
        _ => {}
    }
    enumerated(rules, value, path, errors);
    combined(rules, value, path, errors);
}

/// Checks that a value is in the enum; reports a value of the wrong type too.
fn enumerated(rules: &Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(known) = &rules.enumeration
        && !known.iter().any(|one| value::same(one, value))
        && !is_active(Mutation::EnumIsNotChecked)
    {
        let known: Vec<String> = known
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect();
        errors.push(FieldError::unsupported(path, value.clone(), &known));
    }
}

fn number_rules(rules: &Rules, number: &serde_json::Number) -> Vec<String> {
    let value = number.as_f64().unwrap_or(0.0);
    let mut found = Vec::new();
    if let Some(least) = rules.minimum {
        if rules.exclusive_minimum && value <= least {
            found.push(format!("should be greater than {least}"));
        } else if value < least {
            found.push(format!("should be greater than or equal to {least}"));
        }
    }
    if let Some(most) = rules.maximum {
        if rules.exclusive_maximum && value >= most {
            found.push(format!("should be less than {most}"));
        } else if value > most {
            found.push(format!("should be less than or equal to {most}"));
        }
    }
    if let Some(of) = rules.multiple_of.filter(|of| (value / of).fract() != 0.0) {
        found.push(format!("should be a multiple of {of}"));
    }
    found
}

fn combined(rules: &Rules, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let holds = |schema: &Schema| {
        let mut found = Vec::new();
        walk(schema, value, None, path, &mut found);
        found.is_empty()
    };
    let mut invalid = |why: &str| {
        errors.push(FieldError::invalid(path, value.clone(), format!("{path} in body {why}")));
    };
    if !rules.any_of.is_empty() && !rules.any_of.iter().any(holds) {
        invalid("must validate at least one schema (anyOf)");
    }
    if !rules.one_of.is_empty() {
        match rules.one_of.iter().filter(|schema| holds(schema)).count() {
            0 => invalid("must validate one and only one schema (oneOf). Found none valid"),
            1 => {}
            count => invalid(&format!(
                "must validate one and only one schema (oneOf). Found {count} valid alternatives"
            )),
        }
    }
    if !rules.all_of.iter().all(holds) {
        invalid("must validate all the schemas (allOf)");
    }
    if rules.not.as_deref().is_some_and(holds) {
        invalid("must not validate the schema (not)");
    }
}

/// Sets and maps in lists have each item once.
fn lists(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if schema.reference.is_some() {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, member) in map {
                match (schema.properties.get(name), &schema.additional) {
                    (Some(inner), _) => lists(inner, member, &join(path, name), errors),
                    (None, Additional::Of(inner)) => {
                        lists(inner, member, &format!("{path}[{name}]"), errors);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let (mut seen, mut reported) = (BTreeSet::new(), BTreeSet::new());
            for (index, item) in items.iter().enumerate() {
                let key = match &schema.list {
                    ListType::Atomic => break,
                    ListType::Set => item.clone(),
                    ListType::Map(names) => names
                        .iter()
                        .filter_map(|name| Some((name.clone(), item.get(name)?.clone())))
                        .collect::<serde_json::Map<_, _>>()
                        .into(),
                };
                if !seen.insert(key.to_string()) && reported.insert(key.to_string()) {
                    errors.push(FieldError::duplicate(format!("{path}[{index}]"), key));
                }
            }
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    lists(inner, item, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

/// Whether a figure of a scale can be read.
pub(crate) fn figure(path: &str, value: &Value) -> Option<FieldError> {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let invalid = |depth: usize, found: &Value, wanted: &str| {
        let why = format!(
            ".{} accessor error: {} is of the type {}, expected {wanted}",
            names[..depth].join("."),
            go(found),
            go_type(found)
        );
        Some(FieldError::invalid(path, 0, why))
    };
    let mut place = value;
    for (index, name) in names.iter().enumerate() {
        if place.is_null() {
            return None;
        }
        let Some(map) = place.as_object() else {
            return invalid(index + 1, place, "map[string]interface{}");
        };
        place = map.get(*name)?;
    }
    if !place.is_i64() {
        return invalid(names.len(), place, "int64");
    }
    (place.as_i64() < Some(0))
        .then(|| FieldError::invalid(path, place.clone(), "should be a non-negative integer"))
}
