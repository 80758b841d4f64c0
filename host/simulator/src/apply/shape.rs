//! Whether an object has the shape that its schema gives, as apply demands it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::apply::fieldset::Element;
use crate::apply::item;
use crate::apply::node::{Atom, List, Map, Node, ScalarKind};
use crate::types::field_path::{FieldPath, Step};

/// Something that is not of the shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    path: String,
    text: String,
}

/// All of them as one text.
pub(crate) fn describe(problems: &[Problem]) -> String {
    let line = |problem: &Problem| match problem.path.as_str() {
        "" => problem.text.clone(),
        path => format!(".{path}: {}", problem.text),
    };
    match problems {
        [one] => line(one),
        many => {
            let mut lines = vec!["errors:".to_owned()];
            lines.extend(many.iter().map(|problem| format!("  {}", line(problem))));
            lines.join("\n")
        }
    }
}

/// What is not of the shape in `value`; items may be there twice if `duplicates`.
pub(crate) fn problems(node: Node<'_>, value: &Value, duplicates: bool) -> Vec<Problem> {
    let mut found = Vec::new();
    walk(node, value, &FieldPath::root(""), duplicates, &mut found);
    found
}

/// A value as Go prints it.
pub(crate) fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => value.to_string(),
        Value::String(value) => value.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let mut parts: Vec<String> =
                map.iter().map(|(name, value)| format!("{name}:{}", go(value))).collect();
            parts.sort();
            format!("map[{}]", parts.join(" "))
        }
    }
}

/// A value as Go prints it with its syntax.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut parts: Vec<String> =
                map.iter().map(|(name, value)| format!("{name:?}:{}", go_syntax(value))).collect();
            parts.sort();
            format!("map[string]interface {{}}{{{}}}", parts.join(", "))
        }
        other => go(other),
    }
}

/// The name of its type in Go.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as the server's error messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) => format!("&{{{}}}", go(value)),
        other => format!("&{{{}}}", go(other)),
    }
}

fn scalar(kind: ScalarKind, value: &Value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    match kind {
        ScalarKind::Numeric if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", go_type(value)))
        }
        ScalarKind::String if !value.is_string() => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_syntax(value)
        )),
        ScalarKind::Boolean if !value.is_boolean() => {
            Some(format!("expected boolean, got {}", shown(value)))
        }
        ScalarKind::Any if value.is_array() || value.is_object() => {
            Some(format!("expected any scalar, got {}", shown(value)))
        }
        _ => None,
    }
}

fn problem(path: &FieldPath<'_>, text: impl Into<String>) -> Problem {
    Problem { path: path.to_string(), text: text.into() }
}

fn walk(
    node: Node<'_>,
    value: &Value,
    path: &FieldPath<'_>,
    duplicates: bool,
    found: &mut Vec<Problem>,
) {
    match node.atom(Some(value)) {
        Atom::Scalar(kind) => found.extend(scalar(kind, value).map(|text| problem(path, text))),
        Atom::List(list) => match value {
            Value::Null => {}
            Value::Array(items) => walk_list(list, items, path, duplicates, found),
            other => found.push(problem(path, format!("expected list, got {}", shown(other)))),
        },
        Atom::Map(map) => match value {
            Value::Null => {}
            Value::Object(members) => walk_map(map, members, path, duplicates, found),
            other => found.push(problem(path, format!("expected map, got {}", shown(other)))),
        },
    }
}

fn walk_list(
    list: List<'_>,
    items: &[Value],
    path: &FieldPath<'_>,
    duplicates: bool,
    found: &mut Vec<Problem>,
) {
    let mut seen = BTreeSet::new();
    for (index, one) in items.iter().enumerate() {
        let step = if list.is_atomic() {
            Element::Index(i64::try_from(index).unwrap_or(i64::MAX))
        } else {
            match item::element(list, one) {
                Ok(step) => step,
                Err(text) => {
                    found.push(problem(path, format!("element {index}: {text}")));
                    return;
                }
            }
        };
        if !duplicates && !list.is_atomic() && !seen.insert(step.clone()) {
            found.push(problem(path, format!("duplicate entries for key {step}")));
        }
        walk(list.element(), one, &path.then(Step::Text(&step)), duplicates, found);
    }
}

fn walk_map(
    map: Map<'_>,
    members: &serde_json::Map<String, Value>,
    path: &FieldPath<'_>,
    duplicates: bool,
    found: &mut Vec<Problem>,
) {
    for (name, member) in members {
        let below = path.member(name);
        let Some(node) = map.field(name).or_else(|| map.element()) else {
            found.push(problem(&below, "field not declared in schema"));
            return;
        };
        walk(node, member, &below, duplicates, found);
    }
}
