//! Types of OpenAPI v2 in protobuf (`openapi.v2.Document` of gnostic), which kubectl reads.

use serde_json::Value;

/// Appends a type to the definitions of a document.
pub(crate) fn definition(name: &str, schema: &Value, definitions: &mut Vec<u8>) {
    message(definitions, 1, &named(name, &self::schema(schema)));
}

/// A document with these definitions.
pub(crate) fn document(title: &str, version: &str, definitions: &[u8]) -> Vec<u8> {
    let (mut info, mut document) = (Vec::new(), Vec::new());
    text(&mut info, 1, title);
    text(&mut info, 2, version);
    text(&mut document, 1, "2.0");
    message(&mut document, 2, &info);
    message(&mut document, 9, definitions);
    document
}

/// A name with another message.
fn named(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 1, name);
    message(&mut out, 2, value);
    out
}

/// Any value, as YAML, of which JSON is a part.
fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    text(&mut out, 2, &value.to_string());
    out
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, member) in value.as_object().into_iter().flatten() {
        self::member(&mut out, name, member);
    }
    out
}

/// Appends a member of a schema, unless the format has none of this name.
fn member(out: &mut Vec<u8>, name: &str, value: &Value) {
    if name.starts_with("x-") {
        return message(out, 31, &named(name, &any(value)));
    }
    let Some(number) = number(name) else { return };
    match (name, value) {
        ("type", value) => {
            let mut kinds = Vec::new();
            text(&mut kinds, 1, value.as_str().unwrap_or_default());
            message(out, number, &kinds);
        }
        ("items", value) => {
            let mut items = Vec::new();
            message(&mut items, 1, &schema(value));
            message(out, number, &items);
        }
        ("properties", Value::Object(map)) => {
            let mut properties = Vec::new();
            for (name, value) in map {
                message(&mut properties, 1, &named(name, &schema(value)));
            }
            message(out, number, &properties);
        }
        ("additionalProperties", value) => {
            let mut additional = Vec::new();
            match value {
                Value::Bool(value) => varint_field(&mut additional, 2, u64::from(*value)),
                value => message(&mut additional, 1, &schema(value)),
            }
            message(out, number, &additional);
        }
        ("enum", Value::Array(values)) => {
            for value in values {
                message(out, number, &any(value));
            }
        }
        ("multipleOf" | "maximum" | "minimum", value) => {
            varint(out, number << 3 | 1);
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        (_, Value::Array(texts)) => {
            texts.iter().filter_map(Value::as_str).for_each(|one| text(out, number, one));
        }
        (_, Value::String(value)) => text(out, number, value),
        (_, Value::Bool(value)) => varint_field(out, number, u64::from(*value)),
        (_, value) => varint_field(out, number, value.as_u64().unwrap_or_default()),
    }
}

/// The number of a member of a schema.
fn number(name: &str) -> Option<u64> {
    Some(match name {
        "$ref" => 1,
        "format" => 2,
        "title" => 3,
        "description" => 4,
        "multipleOf" => 6,
        "maximum" => 7,
        "exclusiveMaximum" => 8,
        "minimum" => 9,
        "exclusiveMinimum" => 10,
        "maxLength" => 11,
        "minLength" => 12,
        "pattern" => 13,
        "maxItems" => 14,
        "minItems" => 15,
        "uniqueItems" => 16,
        "maxProperties" => 17,
        "minProperties" => 18,
        "required" => 19,
        "enum" => 20,
        "additionalProperties" => 21,
        "type" => 22,
        "items" => 23,
        "properties" => 25,
        _ => return None,
    })
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap_or_default() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or_default());
}

fn varint_field(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

fn message(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn text(out: &mut Vec<u8>, number: u64, value: &str) {
    message(out, number, value.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn type_is_written_with_the_numbers_of_its_members() {
        let schema = json!({"properties": {"a": {"maxLength": 300}}, "type": "object",
            "x-y": true});
        let mut definitions = Vec::new();
        definition("T", &schema, &mut definitions);
        let properties = b"\xca\x01\x0a\x0a\x08\x0a\x01a\x12\x03\x58\xac\x02";
        let kind = b"\xb2\x01\x08\x0a\x06object";
        let extension = b"\xfa\x01\x0d\x0a\x03x-y\x12\x06\x12\x04true";
        let schema = [&properties[..], kind, extension].concat();
        assert_eq!(definitions, [b"\x0a\x2d\x0a\x01T\x12\x28", &schema[..]].concat());
        let whole = document("K", "v", &definitions);
        let head = b"\x0a\x032.0\x12\x06\x0a\x01K\x12\x01v\x4a\x2f";
        assert_eq!(whole, [head, &definitions[..]].concat());
    }
}
