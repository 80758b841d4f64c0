//! Decodes objects in protobuf, as the typed clients of kubectl send them. Responses are JSON,
//! which these clients accept too.

use base64::Engine as _;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::types::builtin::table;
use crate::types::descriptions::texts;
use crate::types::schema::builtin_types;
use crate::types::schema::{Additional, Go, Schema, Type};

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// How every document begins.
const MAGIC: &[u8] = b"k8s\0";

/// Types that clients send and that are no kinds of their groups.
const MORE: [&str; 4] = [
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];

/// What a field holds.
enum Raw<'a> {
    Number(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

/// Reads fields one after the other.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn field(&mut self) -> Option<(u64, Raw<'a>)> {
        let tag = self.varint()?;
        let raw = match tag & 7 {
            0 => Raw::Number(self.varint()?),
            1 => Raw::Double(f64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Raw::Bytes(self.take(length)?)
            }
            _ => return None,
        };
        Some((tag >> 3, raw))
    }

    /// All fields, or the error.
    fn all(bytes: &'a [u8]) -> Result<Vec<(u64, Raw<'a>)>, String> {
        let mut fields = Self { rest: bytes };
        let mut found = Vec::new();
        while !fields.rest.is_empty() {
            found.push(fields.field().ok_or("proto: the document is cut short or malformed")?);
        }
        Ok(found)
    }
}

/// A document as JSON.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, String> {
    let Some(envelope) = bytes.strip_prefix(MAGIC) else {
        return Err("provided data does not appear to be a protobuf message".to_owned());
    };
    let (mut version, mut kind, mut object) = (String::new(), String::new(), &[][..]);
    for (number, raw) in Fields::all(envelope)? {
        match (number, raw) {
            (1, Raw::Bytes(meta)) => {
                for (number, raw) in Fields::all(meta)? {
                    match number {
                        1 => version = text(&raw)?,
                        2 => kind = text(&raw)?,
                        _ => {}
                    }
                }
            }
            (2, Raw::Bytes(bytes)) => object = bytes,
            _ => {}
        }
    }
    let more = || MORE.into_iter().find(|name| name.ends_with(&format!(".{kind}")));
    let known = table().kinds.get(&format!("{version} {kind}")).map(String::as_str);
    let name = known.or_else(more).ok_or_else(|| {
        format!(
            "no kind {kind:?} is registered for version {version:?} in protobuf; send it as JSON"
        )
    })?;
    let mut value = message(name, object)?;
    value["apiVersion"] = version.into();
    value["kind"] = kind.into();
    Ok(value)
}

fn text(raw: &Raw<'_>) -> Result<String, String> {
    match raw {
        Raw::Bytes(bytes) => {
            String::from_utf8(bytes.to_vec()).map_err(|_| "proto: a text is not UTF-8".to_owned())
        }
        _ => Err("proto: a number stands where a text should".to_owned()),
    }
}

fn number(raw: &Raw<'_>) -> i64 {
    match raw {
        // Negative ones are written as if they were large.
        Raw::Number(number) => number.cast_signed(),
        _ => 0,
    }
}

/// A message of a type.
fn message(name: &str, bytes: &[u8]) -> Result<Value, String> {
    let fields = Fields::all(bytes)?;
    let find =
        |wanted: u64| fields.iter().find(|(number, _)| *number == wanted).map(|(_, raw)| raw);
    let short = name.rsplit('.').next().unwrap_or_default();
    match short {
        "Quantity" => return Ok(find(1).map(text).transpose()?.into()),
        "IntOrString" => {
            let is_text = find(1).map(number) == Some(1);
            return Ok(if is_text {
                find(3).map(text).transpose()?.unwrap_or_default().into()
            } else {
                find(2).map_or(0, number).into()
            });
        }
        "Time" | "MicroTime" if fields.is_empty() => return Ok(Value::Null),
        "Time" | "MicroTime" => {
            let nanos = i32::try_from(find(2).map_or(0, number)).unwrap_or(0);
            let time = Timestamp::new(find(1).map_or(0, number), nanos)
                .map_err(|error| format!("proto: {error}"))?;
            let form =
                if short == "Time" { "%Y-%m-%dT%H:%M:%SZ" } else { "%Y-%m-%dT%H:%M:%S.%6fZ" };
            return Ok(time.strftime(form).to_string().into());
        }
        "FieldsV1" | "RawExtension" | "JSON" => {
            let Some(Raw::Bytes(json)) = find(1) else { return Ok(Value::Null) };
            return serde_json::from_slice(json).map_err(|error| error.to_string());
        }
        "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            return alternative(short, &fields);
        }
        _ => {}
    }
    let (Some(schema), Some(numbers)) = (builtin_types().get(name), texts().wire(name)) else {
        return Err(format!("the type {name} is not known in protobuf; send the object as JSON"));
    };
    let mut object = Map::new();
    for (number, raw) in fields {
        member(schema, numbers, number, &raw, &mut object)?;
    }
    Ok(Value::Object(object))
}

/// A member of a schema that is another schema, or else a list or a truth value: JSON has what
/// there is, protobuf has a field for each.
fn alternative(short: &str, fields: &[(u64, Raw<'_>)]) -> Result<Value, String> {
    const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let schema = |raw: &Raw<'_>| match raw {
        Raw::Bytes(bytes) => message(SCHEMA, bytes),
        _ => Err("proto: a number stands where a schema should".to_owned()),
    };
    let (single, other) = if short == "JSONSchemaPropsOrBool" { (2, 1) } else { (1, 2) };
    if let Some((_, raw)) = fields.iter().find(|(number, _)| *number == single) {
        return schema(raw);
    }
    let mut others = fields.iter().filter(|(number, _)| *number == other).map(|(_, raw)| raw);
    match short {
        "JSONSchemaPropsOrBool" => Ok(others.next().is_some_and(|raw| number(raw) != 0).into()),
        "JSONSchemaPropsOrArray" => others.map(schema).collect(),
        _ => others.map(|raw| text(raw).map(Value::from)).collect(),
    }
}

/// Puts a field where it belongs in JSON.
fn member(
    schema: &Schema,
    numbers: &Map<String, Value>,
    number: u64,
    raw: &Raw<'_>,
    object: &mut Map<String, Value>,
) -> Result<(), String> {
    let name = match numbers.get(&number.to_string()) {
        Some(Value::String(name)) => name,
        // JSON has the members of this message in the outer object.
        Some(Value::Object(inner)) => {
            let Raw::Bytes(bytes) = raw else { return Ok(()) };
            for (number, raw) in Fields::all(bytes)? {
                member(schema, inner, number, &raw, object)?;
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let Some(property) = schema.properties.get(name) else { return Ok(()) };
    if property.reference.is_some() {
        object.insert(name.clone(), one(property, raw)?);
        return Ok(());
    }
    if let (Type::Array, Some(items)) = (property.kind, &property.items) {
        let item = one(items, raw)?;
        let list = object.entry(name.clone()).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(item);
        }
        return Ok(());
    }
    if let (Additional::Of(inner), Raw::Bytes(bytes)) = (&property.additional, raw) {
        let (mut key, mut value) = (String::new(), Value::Null);
        for (number, raw) in Fields::all(bytes)? {
            match number {
                1 => key = text(&raw)?,
                _ => value = one(inner, &raw)?,
            }
        }
        object.entry(name.clone()).or_insert_with(|| json!({}))[key] = value;
        return Ok(());
    }
    let value = one(property, raw)?;
    // Clients send every plain field; one that JSON omits if zero is not set.
    let zero = value == json!("") || value == json!(0) || value == json!(false);
    if !(zero && property.go == Go::Omitted) {
        object.insert(name.clone(), value);
    }
    Ok(())
}

/// One value.
fn one(schema: &Schema, raw: &Raw<'_>) -> Result<Value, String> {
    if let (Some(reference), Raw::Bytes(bytes)) = (&schema.reference, raw) {
        return message(&reference.name, bytes);
    }
    Ok(match (schema.kind, raw) {
        (Type::String, Raw::Bytes(bytes)) if schema.format == "byte" => {
            base64::engine::general_purpose::STANDARD.encode(bytes).into()
        }
        (Type::String, raw) => text(raw)?.into(),
        (Type::Boolean, raw) => (number(raw) != 0).into(),
        (Type::Number, Raw::Double(value)) => (*value).into(),
        // A list within a map is a message of its own.
        (Type::Array, Raw::Bytes(bytes)) => {
            let Some(items) = &schema.items else { return Ok(json!([])) };
            let fields = Fields::all(bytes)?;
            fields.iter().map(|(_, raw)| one(items, raw)).collect::<Result<Vec<_>, _>>()?.into()
        }
        (_, raw) => number(raw).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    fn document(version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
        let meta = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, object)].concat()
    }

    #[test]
    fn protobuf_object_is_decoded_to_its_json() {
        let entry = [field(1, b"x"), field(2, b"1")].concat();
        let object = [field(1, &field(1, b"a")), field(2, &entry), vec![4 << 3, 1]].concat();
        assert_eq!(
            decode(&document("v1", "ConfigMap", &object)).unwrap(),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
                "data": {"x": "1"}, "immutable": true})
        );
    }

    #[test]
    fn members_of_an_inline_message_are_decoded_into_the_outer_object() {
        let source = field(1, &field(1, b"/srv"));
        let volume = [field(1, b"data"), field(2, &source)].concat();
        let pod = field(2, &field(1, &volume));
        assert_eq!(
            decode(&document("v1", "Pod", &pod)).unwrap()["spec"],
            json!({"volumes": [{"name": "data", "hostPath": {"path": "/srv"}}]})
        );
    }

    #[test]
    fn schemas_within_a_schema_are_decoded_as_the_alternative_that_they_are() {
        let number = |number: u8, bytes: &[u8]| {
            let length = u8::try_from(bytes.len()).unwrap();
            [vec![(number << 3 | 2) | 0x80, number >> 4, length], bytes.to_vec()].concat()
        };
        let text_schema = field(5, b"string");
        let property =
            |name: &[u8], schema: &[u8]| number(29, &[field(1, name), field(2, schema)].concat());
        let list = number(24, &field(1, &text_schema));
        let map = number(30, &field(2, &text_schema));
        let closed = number(30, &[1 << 3, 0]);
        let default = field(8, &field(1, br#"{"a":1}"#));
        let schema = [
            property(b"list", &list),
            property(b"map", &map),
            property(b"closed", &closed),
            property(b"default", &default),
        ]
        .concat();
        let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        assert_eq!(
            message(name, &schema).unwrap()["properties"],
            json!({
                "list": {"items": {"type": "string"}},
                "map": {"additionalProperties": {"type": "string"}},
                "closed": {"additionalProperties": false},
                "default": {"default": {"a": 1}},
            })
        );
    }

    #[test]
    fn truncated_or_unknown_message_is_refused() {
        let whole = document("v1", "ConfigMap", &field(1, &field(1, b"a")));
        assert!(decode(&whole[..whole.len() - 1]).unwrap_err().contains("cut short"));
        assert!(decode(b"{}").unwrap_err().contains("does not appear"));
        assert!(decode(&document("x.dev/v1", "Thing", &[])).unwrap_err().contains("Thing"));
    }
}
