//! A built-in object as Go would write it after reading it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::types::crd::definition::OBJECT_META;
use crate::types::field_path::FieldPath;
use crate::types::kind::Kind;
use crate::types::kinds::quantity;
use crate::types::schema::builtin_types;
use crate::types::schema::{Additional, Go, Scalar, Schema, Type};
use crate::types::status_error::StatusError;

/// Brings an object into that form. Gives the paths of what was unknown.
pub(crate) fn canonical(kind: &Kind, object: &mut Value) -> Result<Vec<String>, StatusError> {
    let mut walk = Walk { unknown: Vec::new() };
    walk.value(kind.schema(), object, &FieldPath::root("")).map_err(|problem| {
        StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {problem}",
            kind.name, kind.version, kind.name
        ))
    })?;
    Ok(walk.unknown)
}

/// The same for the metadata of a custom resource.
pub(crate) fn metadata(kind: &Kind, object: &mut Value) -> Result<(), StatusError> {
    let Some(schema) = builtin_types().get(OBJECT_META) else { return Ok(()) };
    let mut walk = Walk { unknown: Vec::new() };
    let Some(metadata) = object.get_mut("metadata") else { return Ok(()) };
    walk.value(schema, metadata, &FieldPath::root("metadata")).map_err(|problem| {
        StatusError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {problem}",
            kind.name, kind.version, kind.name
        ))
    })
}

/// Makes the empty lists null that Go does not tell apart once they were stored.
pub(crate) fn forget_empty(schema: &Schema, value: &mut Value) {
    let schema = schema.resolved();
    match value {
        Value::Object(map) => {
            for (name, member) in map.iter_mut() {
                let Some(inner) = schema.properties.get(name) else { continue };
                if inner.go == Go::Null && is_zero(member) {
                    *member = Value::Null;
                } else {
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
    fn value(
        &mut self,
        schema: &Schema,
        value: &mut Value,
        path: &FieldPath<'_>,
    ) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match schema.reference.as_ref().and_then(|reference| reference.scalar) {
            Some(Scalar::Quantity) => return read_quantity(value),
            Some(Scalar::Time) => return time(value, path, SECONDS),
            Some(Scalar::MicroTime) => return time(value, path, "%Y-%m-%dT%H:%M:%S%.6fZ"),
            None => {}
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
                        self.value(inner, item, &path.item(index))?;
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
        path: &FieldPath<'_>,
    ) -> Result<(), String> {
        if let Additional::Of(inner) = &schema.additional {
            for (name, member) in map.iter_mut() {
                if member.is_null() && inner.kind == Type::String {
                    *member = "".into();
                }
                self.value(inner, member, &path.member(name))?;
            }
        }
        Ok(())
    }

    fn members(
        &mut self,
        schema: &Schema,
        map: &mut Map<String, Value>,
        path: &FieldPath<'_>,
    ) -> Result<(), String> {
        let mut failed = None;
        // Mostly there is none.
        let mut gone: Vec<String> = Vec::new();
        for (name, member) in map.iter_mut() {
            let path = path.member(name);
            let Some(inner) = schema.properties.get(name) else {
                self.unknown.push(path.to_string());
                gone.push(name.clone());
                continue;
            };
            if let Err(error) = self.value(inner, member, &path) {
                failed.get_or_insert(error);
            }
            if !stays(inner, member) {
                gone.push(name.clone());
            }
        }
        for name in gone {
            map.remove(&name);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        for name in &schema.filled {
            let Some(inner) = schema.properties.get(name) else { continue };
            if map.contains_key(name) {
                continue;
            }
            // An absent list or time is null.
            let mut value = match &inner.default {
                _ if inner.go == Go::Null => Value::Null,
                Some(default) if !is_list(inner) && (inner.is_struct() || !default.is_object()) => {
                    default.clone()
                }
                _ => continue,
            };
            self.value(inner, &mut value, &path.member(name))?;
            map.insert(name.clone(), value);
        }
        Ok(())
    }
}

/// Whether Go has a list or a map here.
fn is_list(schema: &Schema) -> bool {
    let schema = schema.resolved();
    schema.kind == Type::Array
        || (schema.kind == Type::Object && !schema.is_struct() && !schema.free)
}

/// Whether a member is written; what is not may be filled in again.
fn stays(schema: &Schema, member: &Value) -> bool {
    match schema.go {
        Go::Omitted => !is_zero(member),
        Go::Null => true,
        // Empty is not absent until it is stored, if null is written for it.
        Go::Plain if is_list(schema) => !is_zero(member),
        Go::Plain => !member.is_null(),
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

/// How Go writes a time.
const SECONDS: &str = "%Y-%m-%dT%H:%M:%SZ";

/// Whether a text that is a time is written so already.
fn is_in_seconds(text: &str) -> bool {
    let form = b"dddd-dd-ddTdd:dd:ddZ";
    let fits = |(byte, form): (u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    // A leap second is another one in the end.
    text.len() == form.len() && text.bytes().zip(form).all(fits) && !text.ends_with(":60Z")
}

fn time(value: &mut Value, path: &FieldPath<'_>, format: &str) -> Result<(), String> {
    let Some(text) = value.as_str() else {
        return Err(format!(
            "json: cannot unmarshal {} into Go struct field {path} of type string",
            go_kind(value)
        ));
    };
    if let Ok(time) = text.parse::<Timestamp>() {
        // Most were written by this server.
        if format == SECONDS && is_in_seconds(text) {
            return Ok(());
        }
        *value = time.strftime(format).to_string().into();
        return Ok(());
    }
    let layout = if format.contains("%.6f") {
        "2006-01-02T15:04:05.000000Z07:00"
    } else {
        "2006-01-02T15:04:05Z07:00"
    };
    Err(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
}
