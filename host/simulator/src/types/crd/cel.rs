//! Evaluates the rules in CEL of a schema.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::objects::{Key, Map, OptionalValue};
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;

use crate::types::crd::cel_expression::{self, cost_message};
use crate::types::field_path::FieldPath;
use crate::types::schema::{Additional, ListType, Schema};
use crate::types::status_error::FieldError;

/// The message if the rules are not evaluated.
const UNCHECKED: &str = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

/// Checks `value`, which replaces `old`, by the rules of its schema; `errors` has the known errors.
pub(crate) fn check(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    if !schema.ruled {
        return;
    }
    if errors.iter().any(FieldError::hides_rules) {
        errors.push(FieldError::invalid("<nil>", Value::Null, UNCHECKED));
        return;
    }
    let context = cel_expression::context();
    walk(&context, schema, value, old, &FieldPath::root(""), errors);
}

fn walk(
    context: &Context<'_>,
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !schema.ruled || value.is_null() {
        return;
    }
    if !schema.validations.is_empty() {
        own(context, schema, value, old, path, errors);
    }
    match value {
        Value::Object(map) => {
            for (name, member) in map {
                let before = old.and_then(|old| old.get(name));
                match (schema.properties.get(name), &schema.additional) {
                    (Some(inner), _) => {
                        walk(context, inner, member, before, &path.member(name), errors);
                    }
                    (None, Additional::Of(inner)) => {
                        let key = format!("[{name}]");
                        let path = path.then(crate::types::field_path::Step::Text(&key));
                        walk(context, inner, member, before, &path, errors);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &schema.items else { return };
            for (index, item) in items.iter().enumerate() {
                let before = counterpart(schema, item, old);
                walk(context, inner, item, before, &path.item(index), errors);
            }
        }
        _ => {}
    }
}

/// The old item that corresponds to an item of a list, if the list is a map.
pub(crate) fn counterpart<'v>(
    schema: &Schema,
    item: &Value,
    old: Option<&'v Value>,
) -> Option<&'v Value> {
    let ListType::Map(keys) = &schema.list else { return None };
    old?.as_array()?.iter().find(|one| keys.iter().all(|key| one.get(key) == item.get(key)))
}

/// The rules of the value itself.
fn own(
    context: &Context<'_>,
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let at = path.to_string();
    let root = at.is_empty();
    let mut scope = context.new_inner_scope();
    scope.add_variable_from_value("self", of(schema, value, root));
    let before = old.filter(|old| !old.is_null()).map(|old| of(schema, old, root));
    for rule in &schema.validations {
        if rule.transition && old.is_none() && !rule.optional_old {
            continue;
        }
        let mut scope = scope.new_inner_scope();
        if rule.optional_old {
            let before = before.clone().map_or_else(OptionalValue::none, OptionalValue::of);
            scope.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(before)));
        } else if let Some(before) = &before {
            scope.add_variable_from_value("oldSelf", before.clone());
        }
        let error = match rule.program.as_ref().map(|program| program.execute(&scope)) {
            Some(Ok(Cel::Bool(true))) => continue,
            Some(Ok(_)) => rule.error(&at, value, &scope),
            Some(Err(error)) => rule.failure(&at, value, &words(&error)),
            None => rule.failure(&at, value, "the rule cannot be read"),
        };
        // An old error of an unchanged value is ignored, unless the rule is about changes.
        if rule.transition || old != Some(value) {
            errors.push(error);
        }
    }
}

/// The message for a failed evaluation.
pub(crate) fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => {
            format!("index out of bounds: {index}")
        }
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::NoSuchOverload => "no such overload".to_owned(),
        other => cost_message(other).map_or_else(|| other.to_string(), str::to_owned),
    }
}

/// A value of which no schema is known.
pub(crate) fn plain(value: &Value) -> Cel {
    match value {
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(map) => {
            let members = map
                .iter()
                .map(|(name, member)| (Key::String(Arc::new(name.clone())), plain(member)))
                .collect();
            Cel::Map(Map { map: Arc::new(members) })
        }
        other => of(&Schema::default(), other, false),
    }
}

/// A value as rules see it.
fn of(schema: &Schema, value: &Value, root: bool) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(value) => Cel::Bool(*value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if schema.kind != crate::types::schema::Type::Number => Cel::Int(whole),
            _ => Cel::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => {
            let inner = schema.items.as_deref();
            let item = |item: &Value| inner.map_or(Cel::Null, |inner| of(inner, item, false));
            Cel::List(Arc::new(items.iter().map(item).collect()))
        }
        Value::Object(map) => {
            let mut members = HashMap::new();
            for (name, member) in map.iter().filter(|(_, member)| !member.is_null()) {
                let (key, value) = match (schema.properties.get(name), &schema.additional) {
                    (Some(_), _) if root && name == "metadata" => (name.clone(), metadata(member)),
                    (Some(inner), _) => (escaped(name), of(inner, member, false)),
                    (None, Additional::Of(inner)) => (name.clone(), of(inner, member, false)),
                    _ => continue,
                };
                members.insert(Key::String(Arc::new(key)), value);
            }
            Cel::Map(Map { map: Arc::new(members) })
        }
    }
}

/// Rules see only the names in the metadata.
fn metadata(value: &Value) -> Cel {
    let mut members = HashMap::new();
    for name in ["name", "generateName"] {
        if let Some(text) = value[name].as_str() {
            let key = Key::String(Arc::new(name.to_owned()));
            members.insert(key, Cel::String(Arc::new(text.to_owned())));
        }
    }
    Cel::Map(Map { map: Arc::new(members) })
}

/// The name of a property as rules write it.
fn escaped(name: &str) -> String {
    const WORDS: [&str; 20] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
    ];
    if WORDS.contains(&name) || name == "while" {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
