//! The fields that a Rust type deserializes, found without a value of the type.
//!
//! [`warning`] compares them with the definition that the guest installs: the API server prunes
//! a field that the definition lacks, so a stale `crd.json` loses what users write.

use std::cell::Cell;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess,
};
use serde::de::{IntoDeserializer as _, Visitor};
use serde_json::{Error, Value};

use crate::Manifest;

/// The deepest level that is compared. Types may contain themselves.
const DEPTH_MAX: usize = 12;

/// What a type asks its deserializer for at one place.
#[derive(Clone, Copy)]
enum Shape {
    /// Any value, or one that the type decides on by itself.
    Unknown,
    Boolean,
    Integer,
    Number,
    Text,
    List,
    Map,
    Struct(&'static [&'static str]),
    /// An enum: the names of its variants.
    Enum(&'static [&'static str]),
}

/// One step from a value to a value in it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item,
    Value,
}

/// The most differences that a warning names.
const DIFFERENCES_MAX: usize = 8;

/// Says where the type of the primary and the definition that the guest installs for it differ, and
/// what to do.
pub(crate) fn warning<P: DeserializeOwned>(manifest: &Manifest) -> Option<String> {
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
        "the definition of {} differs from the guest's types: {}; the API server drops a field that its definition lacks: run `UPDATE_EXPECT=1 cargo test`, which writes crd.json, and build again",
        manifest.primary.kind,
        found.join(", ")
    ))
}

/// Lists where the type of the primary and the definition that the guest installs for it differ:
/// fields that the definition lacks, and fields of another type. Empty if the guest installs no
/// definition of its primary.
fn differences<P: DeserializeOwned>(manifest: &Manifest) -> Vec<String> {
    let Some(schema) = schema(manifest) else { return Vec::new() };
    let shape_at = |path: &[Step<'_>]| {
        let shape = Cell::new(Shape::Unknown);
        // The probe ends every deserialization with an error, when it has seen enough.
        drop(P::deserialize(Probe { path, shape: &shape }));
        shape.get()
    };
    let mut found = Vec::new();
    compare(&shape_at, &mut Vec::new(), schema, "", &mut found);
    found
}

/// The schema of the version of the primary.
fn schema(manifest: &Manifest) -> Option<&Value> {
    let (group, version) = manifest.primary.api_version.split_once('/')?;
    let definition = manifest.crds.iter().find(|one| {
        one["spec"]["group"] == group && one["spec"]["names"]["kind"] == *manifest.primary.kind
    })?;
    let mut versions = definition["spec"]["versions"].as_array()?.iter();
    versions.find(|one| one["name"] == version)?.pointer("/schema/openAPIV3Schema")
}

fn compare<'a>(
    shape_at: &dyn Fn(&[Step<'a>]) -> Shape,
    path: &mut Vec<Step<'a>>,
    schema: &'a Value,
    place: &str,
    found: &mut Vec<String>,
) {
    if path.len() > DEPTH_MAX {
        return;
    }
    let shape = shape_at(path);
    if let Some(wrong) = wrong_type(shape, schema) {
        found.push(format!("{} is {wrong}", &place[1..]));
        return;
    }
    match shape {
        Shape::Struct(fields) => {
            for &field in fields {
                // The API server itself knows these.
                if path.is_empty() && matches!(field, "apiVersion" | "kind" | "metadata") {
                    continue;
                }
                let place = format!("{place}.{field}");
                match schema["properties"].get(field) {
                    Some(inner) => {
                        path.push(Step::Field(field));
                        compare(shape_at, path, inner, &place, found);
                        path.pop();
                    }
                    None if is_open(schema) => {}
                    None => found.push(format!("{} is missing", &place[1..])),
                }
            }
        }
        Shape::Enum(variants) => {
            let Some(known) = schema["enum"].as_array() else { return };
            for variant in variants.iter().filter(|one| !known.iter().any(|known| known == **one)) {
                found.push(format!("{} lacks the value {variant:?}", &place[1..]));
            }
        }
        Shape::List => below(shape_at, path, Step::Item, &schema["items"], place, "[]", found),
        Shape::Map => {
            let values = &schema["additionalProperties"];
            below(shape_at, path, Step::Value, values, place, ".*", found);
        }
        _ => {}
    }
}

/// Compares the items of a list, or the values of a map.
fn below<'a>(
    shape_at: &dyn Fn(&[Step<'a>]) -> Shape,
    path: &mut Vec<Step<'a>>,
    step: Step<'a>,
    schema: &'a Value,
    place: &str,
    suffix: &str,
    found: &mut Vec<String>,
) {
    if schema.is_object() {
        path.push(step);
        compare(shape_at, path, schema, &format!("{place}{suffix}"), found);
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
        Shape::Unknown | Shape::Enum(_) => return None,
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

/// A deserializer that follows a path through a type, and takes the shape at its end.
#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [Step<'a>],
    shape: &'a Cell<Shape>,
}

impl<'a> Probe<'a> {
    /// Ends the deserialization; the shape counts if this is the end of the path.
    fn end<T>(self, shape: Shape) -> Result<T, Error> {
        if self.path.is_empty() {
            self.shape.set(shape);
        }
        Err(Error::custom(""))
    }

    /// The next step of the path, and the probe for the value that it leads to.
    fn step(self) -> Option<(Step<'a>, Self)> {
        let (step, path) = self.path.split_first()?;
        Some((*step, Self { path, ..self }))
    }
}

/// Methods of a deserializer that end at a shape.
macro_rules! ends {
    ($($method:ident => $shape:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            self.end(Shape::$shape)
        }
    )*};
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    ends! {
        deserialize_any => Unknown,
        deserialize_bool => Boolean,
        deserialize_i8 => Integer,
        deserialize_i16 => Integer,
        deserialize_i32 => Integer,
        deserialize_i64 => Integer,
        deserialize_u8 => Integer,
        deserialize_u16 => Integer,
        deserialize_u32 => Integer,
        deserialize_u64 => Integer,
        deserialize_f32 => Number,
        deserialize_f64 => Number,
        deserialize_char => Text,
        deserialize_str => Text,
        deserialize_string => Text,
        deserialize_bytes => Unknown,
        deserialize_byte_buf => Unknown,
        deserialize_unit => Unknown,
        deserialize_identifier => Unknown,
        deserialize_ignored_any => Unknown,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Error> {
        self.end(Shape::Unknown)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Item, probe)) => visitor.visit_seq(One { key: "", probe }),
            _ => self.end(Shape::List),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        self.end(Shape::Unknown)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        _: V,
    ) -> Result<V::Value, Error> {
        self.end(Shape::Unknown)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Value, probe)) => visitor.visit_map(One { key: "key", probe }),
            _ => self.end(Shape::Map),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.step() {
            Some((Step::Field(key), probe)) => visitor.visit_map(One { key, probe }),
            _ => self.end(Shape::Struct(fields)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.end(Shape::Enum(variants))
    }
}

/// A map or a list of one value.
struct One<'a> {
    key: &'a str,
    probe: Probe<'a>,
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let key: StrDeserializer<'_, Error> = self.key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.probe)
    }
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        seed.deserialize(self.probe).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Describe, Resource};

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only the types count")]
    struct Web {
        metadata: crate::Metadata,
        spec: WebSpec,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code, reason = "only the types count")]
    struct WebSpec {
        text: String,
        replicas: Option<i32>,
        #[serde(default)]
        pages: Vec<Page>,
        #[serde(default)]
        by_name: BTreeMap<String, Page>,
        mode: Option<Mode>,
        #[serde(default)]
        free: Value,
    }

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only the types count")]
    struct Page {
        title: String,
        width: Option<f64>,
        children: Option<Vec<Page>>,
    }

    #[derive(Deserialize)]
    enum Mode {
        Fast,
        Slow,
    }

    impl Resource for Web {
        const API_VERSION: &'static str = "example.com/v1";
        const KIND: &'static str = "Web";
        const PLURAL: &'static str = "webs";
    }

    fn page() -> Value {
        json!({"type": "object", "properties": {
            "title": {"type": "string"}, "width": {"type": "number"},
            "children": {"type": "array", "items": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"title": {"type": "string"}},
            }},
        }})
    }

    fn properties() -> Value {
        json!({
            "text": {"type": "string"}, "replicas": {"type": "integer"},
            "pages": {"type": "array", "items": page()},
            "byName": {"type": "object", "additionalProperties": page()},
            "mode": {"type": "string", "enum": ["Fast", "Slow"]},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
        })
    }

    fn manifest(properties: &Value) -> Manifest {
        let definition = json!({"spec": {"group": "example.com", "names": {"kind": "Web"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "properties": properties}}}}}]}});
        Describe::reconciler_of::<Web>("web", "").installs(&definition.to_string()).manifest()
    }

    fn found(properties: &Value) -> Vec<String> {
        differences::<Web>(&manifest(properties))
    }

    #[test]
    fn definition_that_has_all_fields_of_the_type_does_not_differ() {
        assert_eq!(found(&properties()), Vec::<String>::new());
        let manifest = Describe::reconciler_of::<Web>("web", "").manifest();
        assert_eq!(differences::<Web>(&manifest), Vec::<String>::new());
    }

    #[test]
    fn field_is_named_when_the_definition_lacks_it_or_has_another_type() {
        let mut stale = properties();
        stale.as_object_mut().unwrap().remove("text");
        stale["replicas"]["type"] = "string".into();
        stale["mode"]["enum"] = json!(["Fast"]);
        stale["pages"]["items"]["properties"].as_object_mut().unwrap().remove("title");
        stale["byName"]["additionalProperties"]["properties"]["width"]["type"] = "boolean".into();
        assert_eq!(
            found(&stale),
            [
                "spec.text is missing",
                "spec.replicas is of type string instead of integer",
                "spec.pages[].title is missing",
                "spec.byName.*.width is of type boolean instead of number",
                "spec.mode lacks the value \"Slow\"",
            ]
        );
        // No field is compared below one that is missing.
        assert_eq!(found(&json!({})).len(), 6);
        let message = warning::<Web>(&manifest(&stale)).unwrap();
        assert!(message.contains("types: spec.text is missing, spec.replicas is of"), "{message}");
        assert!(message.contains("UPDATE_EXPECT=1 cargo test"), "{message}");
        assert_eq!(warning::<Web>(&manifest(&properties())), None);
    }
}
