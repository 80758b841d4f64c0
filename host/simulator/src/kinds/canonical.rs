//! A built-in object as Go would write it after reading it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::quantity;
use crate::builtin::table;
use crate::catalog::Kind;
use crate::crd::definition::OBJECT_META;
use crate::schema::{Additional, Schema, Type};
use crate::status_error::StatusError;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";

/// Brings an object into that form. Gives the paths of what was unknown.
pub(super) fn canonical(kind: &Kind, object: &mut Value) -> Result<Vec<String>, StatusError> {
    let mut walk = Walk { unknown: Vec::new() };
    walk.value(kind.schema(), object, "").map_err(|problem| {
        StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {problem}",
            kind.name, kind.version, kind.name
        ))
    })?;
    Ok(walk.unknown)
}

/// The same for the metadata of a custom resource.
pub(super) fn metadata(kind: &Kind, object: &mut Value) -> Result<(), StatusError> {
    let Some(schema) = table().types.get(OBJECT_META) else { return Ok(()) };
    let mut walk = Walk { unknown: Vec::new() };
    let Some(metadata) = object.get_mut("metadata") else { return Ok(()) };
    walk.value(schema, metadata, "metadata").map_err(|problem| {
        StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {problem}",
            kind.name, kind.version, kind.name
        ))
    })
}

/// Makes the empty lists null that Go does not tell apart once they were stored.
pub(super) fn forget_empty(schema: &Schema, value: &mut Value) {
    let schema = schema.resolved();
    match value {
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                if schema.go.null.contains(name) && is_zero(member) {
                    *member = Value::Null;
                } else if let Some(inner) = schema.properties.get(name) {
                    forget_empty(inner, member);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for item in items {
                    forget_empty(inner, item);
                }
            }
        }
        _ => {}
    }
}

struct Walk {
    unknown: Vec<String>,
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

impl Walk {
    fn value(&mut self, schema: &Schema, value: &mut Value, path: &str) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match schema.reference.as_deref() {
            Some(QUANTITY) => return read_quantity(value),
            Some(TIME) => return time(value, path, "%Y-%m-%dT%H:%M:%SZ"),
            Some(MICRO_TIME) => return time(value, path, "%Y-%m-%dT%H:%M:%S%.6fZ"),
            _ => {}
        }
        let schema = schema.resolved();
        if schema.free {
            return Ok(());
        }
        let wrong = |value: &Value, of: &str| {
            Err(format!(
                "json: cannot unmarshal {} into Go struct field {path} of type {of}",
                go_kind(value)
            ))
        };
        match schema.kind {
            Type::Object => match value {
                Value::Object(map) if schema.properties.is_empty() => self.map(schema, map, path),
                Value::Object(map) => self.members(schema, map, path),
                other => wrong(other, "object"),
            },
            Type::Array => match (value, &schema.items) {
                (Value::Array(items), Some(inner)) => {
                    for (index, item) in items.iter_mut().enumerate() {
                        if item.is_null() && inner.is_struct() {
                            *item = json!({});
                        }
                        self.value(inner, item, &format!("{path}[{index}]"))?;
                    }
                    Ok(())
                }
                (Value::Array(_), None) => Ok(()),
                (other, _) => wrong(other, "array"),
            },
            Type::String if schema.format == "int-or-string" => Ok(()),
            // Go reads bytes from a list of numbers too.
            Type::String
                if schema.format == "byte" && value.as_array().is_some_and(Vec::is_empty) =>
            {
                *value = "".into();
                Ok(())
            }
            Type::String if !value.is_string() => wrong(value, "string"),
            Type::Integer if !value.is_i64() && !value.is_u64() => wrong(value, "int"),
            Type::Number if !value.is_number() => wrong(value, "number"),
            Type::Boolean if !value.is_boolean() => wrong(value, "bool"),
            _ => Ok(()),
        }
    }

    fn map(
        &mut self,
        schema: &Schema,
        map: &mut Map<String, Value>,
        path: &str,
    ) -> Result<(), String> {
        if let Additional::Of(inner) = &schema.additional {
            for (name, member) in map.iter_mut() {
                if member.is_null() && inner.kind == Type::String {
                    *member = "".into();
                }
                self.value(inner, member, &join(path, name))?;
            }
        }
        Ok(())
    }

    fn members(
        &mut self,
        schema: &Schema,
        map: &mut Map<String, Value>,
        path: &str,
    ) -> Result<(), String> {
        let names: Vec<String> = map.keys().cloned().collect();
        for name in names {
            let Some(inner) = schema.properties.get(&name) else {
                map.remove(&name);
                self.unknown.push(join(path, &name));
                continue;
            };
            if let Some(member) = map.get_mut(&name) {
                self.value(inner, member, &join(path, &name))?;
            }
        }
        for (name, inner) in &schema.properties {
            self.settle(schema, map, name, inner, path)?;
        }
        Ok(())
    }

    /// Leaves a member out, or writes it although it is empty.
    fn settle(
        &mut self,
        schema: &Schema,
        map: &mut Map<String, Value>,
        name: &str,
        inner: &Schema,
        path: &str,
    ) -> Result<(), String> {
        let present = map.get(name).filter(|value| !value.is_null());
        let empty = present.is_none_or(is_zero);
        let is_list = {
            let inner = inner.resolved();
            inner.kind == Type::Array
                || (inner.kind == Type::Object && !inner.is_struct() && !inner.free)
        };
        if schema.go.zero.contains(name) || schema.go.omit.contains(name) {
            if empty {
                map.remove(name);
            }
        } else if is_list {
            if schema.go.null.contains(name) {
                // Empty is not absent until it is stored.
                if present.is_none() {
                    map.insert(name.to_owned(), Value::Null);
                }
            } else if empty {
                map.remove(name);
            }
        } else if present.is_none() && schema.go.null.contains(name) {
            // A time that is not said is null.
            map.insert(name.to_owned(), Value::Null);
        } else if present.is_none() {
            match &inner.default {
                Some(default) if inner.is_struct() || !default.is_object() => {
                    let mut value = default.clone();
                    self.value(inner, &mut value, &join(path, name))?;
                    map.insert(name.to_owned(), value);
                }
                _ => {
                    map.remove(name);
                }
            }
        }
        Ok(())
    }
}

fn read_quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    match quantity::canonical(&text) {
        Some(canonical) => {
            *value = canonical.into();
            Ok(())
        }
        None => Err("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()),
    }
}

fn time(value: &mut Value, path: &str, format: &str) -> Result<(), String> {
    let Some(text) = value.as_str() else {
        return Err(format!(
            "json: cannot unmarshal {} into Go struct field {path} of type string",
            go_kind(value)
        ));
    };
    match text.parse::<Timestamp>() {
        Ok(time) => {
            *value = time.strftime(format).to_string().into();
            Ok(())
        }
        Err(_) => {
            let layout = if format.contains("%.6f") {
                "2006-01-02T15:04:05.000000Z07:00"
            } else {
                "2006-01-02T15:04:05Z07:00"
            };
            Err(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
        }
    }
}
