//! The types of the contract's documents, read from their schemas, for generated code in other
//! languages.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Map, Value};

/// Keywords that limit values or describe the schema; no type follows from them, nor from those of
/// other programs, which begin with `x-`.
const IGNORED: [&str; 15] = [
    "$id",
    "$schema",
    "additionalProperties",
    "default",
    "description",
    "examples",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
];

/// Documents whose names belong to types of the SDKs, which wrap them.
const WRAPPED: [&str; 2] = ["Desired", "Observed"];

/// A type with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    /// Its name, CamelCase.
    pub(super) name: String,
    /// Its description.
    pub(super) doc: String,
    /// What it consists of.
    pub(super) shape: Shape,
}

/// What a type consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An object with these members.
    Members(Vec<Member>),
    /// One of these texts.
    Texts(Vec<Text>),
    /// Another name for these values.
    Alias(Values),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name in the document.
    pub(super) name: String,
    /// Its description.
    pub(super) doc: String,
    /// Its values.
    pub(super) values: Values,
    /// Whether every document has it.
    pub(super) is_required: bool,
}

/// One text of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// The text.
    pub(super) value: String,
    /// Its description.
    pub(super) doc: String,
}

/// The values that a schema allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Values {
    Any,
    AnyObject,
    Bool,
    Integer,
    Number,
    Text,
    Named(String),
    List(Box<Self>),
    Map(Box<Self>),
    Union(Vec<Self>),
    Nullable(Box<Self>),
}

/// The types of all documents, ordered by name. Documents share types of the same name; a member is
/// required if it is required in all of them.
///
/// # Errors
/// If a schema has a keyword that this function does not know, or two types of one name differ in
/// more than what they require.
pub(super) fn read(schemas: &BTreeMap<String, String>) -> Result<Vec<Type>> {
    let mut types: BTreeMap<String, Type> = BTreeMap::new();
    for (file, text) in schemas {
        let schema: Map<String, Value> =
            serde_json::from_str(text).with_context(|| file.clone())?;
        let title = schema.get("title").and_then(Value::as_str).context("a schema has no title")?;
        let mut found = vec![type_of(&document_name(title), &schema)];
        if let Some(Value::Object(defs)) = schema.get("$defs") {
            found.extend(defs.iter().map(|(name, def)| type_of(name, object(def)?)));
        }
        for one in found {
            let one = one.with_context(|| file.clone())?;
            let merged = match types.remove(&one.name) {
                Some(known) => merged(known, &one).with_context(|| file.clone())?,
                None => one,
            };
            types.insert(merged.name.clone(), merged);
        }
    }
    Ok(types.into_values().collect())
}

/// The name of the type of a document.
fn document_name(title: &str) -> String {
    if WRAPPED.contains(&title) { format!("{title}Document") } else { title.to_owned() }
}

/// The type that two documents share.
fn merged(mut known: Type, other: &Type) -> Result<Type> {
    if let (Shape::Members(members), Shape::Members(others)) = (&mut known.shape, &other.shape) {
        for (member, other) in members.iter_mut().zip(others) {
            member.is_required &= other.is_required;
        }
    }
    let mut expected = other.clone();
    if let (Shape::Members(members), Shape::Members(knowns)) = (&mut expected.shape, &known.shape) {
        for (member, known) in members.iter_mut().zip(knowns) {
            member.is_required = known.is_required;
        }
    }
    ensure!(known == expected, "two documents have different types `{}`", known.name);
    Ok(known)
}

fn type_of(name: &str, schema: &Map<String, Value>) -> Result<Type> {
    let doc = doc(schema).with_context(|| format!("`{name}`"))?;
    let shape = shape(schema).with_context(|| format!("`{name}`"))?;
    Ok(Type { name: name.to_owned(), doc, shape })
}

fn shape(schema: &Map<String, Value>) -> Result<Shape> {
    if let Some(texts) = texts(schema)? {
        return Ok(Shape::Texts(texts));
    }
    let Some(properties) = schema.get("properties") else {
        return Ok(Shape::Alias(values_of(schema, &["title", "$defs"])?));
    };
    check_keywords(schema, &["$defs", "properties", "required", "title", "type"])?;
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let members = object(properties)?.iter().map(|(name, member)| {
        let member = object(member)?;
        Ok(Member {
            name: name.clone(),
            doc: doc(member).with_context(|| format!("`{name}`"))?,
            values: values_of(member, &[]).with_context(|| format!("`{name}`"))?,
            is_required: required.contains(&Value::from(name.as_str())),
        })
    });
    members.collect::<Result<_>>().map(Shape::Members)
}

/// The texts, if the schema allows nothing else.
fn texts(schema: &Map<String, Value>) -> Result<Option<Vec<Text>>> {
    let Some(choices) = schema.get("oneOf").and_then(Value::as_array) else { return Ok(None) };
    let is_text = |choice: &Value| choice.get("const").is_some_and(Value::is_string);
    if !choices.iter().all(is_text) {
        return Ok(None);
    }
    check_keywords(schema, &["oneOf"])?;
    let text = |choice: &Value| {
        let choice = object(choice)?;
        check_keywords(choice, &["const", "type"])?;
        let value = choice["const"].as_str().unwrap_or_default().to_owned();
        let doc = doc(choice).with_context(|| format!("`{value}`"))?;
        Ok(Text { value, doc })
    };
    choices.iter().map(text).collect::<Result<_>>().map(Some)
}

fn values(schema: &Value) -> Result<Values> {
    match schema {
        Value::Bool(true) => Ok(Values::Any),
        _ => values_of(object(schema)?, &[]),
    }
}

fn values_of(schema: &Map<String, Value>, known: &[&str]) -> Result<Values> {
    let known = [known, &["$ref", "anyOf", "items", "oneOf", "type"]].concat();
    check_keywords(schema, &known)?;
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.strip_prefix("#/$defs/").context("a $ref leads to another place")?;
        return Ok(Values::Named(name.to_owned()));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = schema.get(keyword).and_then(Value::as_array) {
            let is_null = |choice: &&Value| choice.get("type") == Some(&Value::from("null"));
            let allowed = choices.iter().filter(|choice| !is_null(choice)).map(values);
            let allowed = union(allowed.collect::<Result<_>>()?);
            return Ok(nullable(allowed, choices.iter().any(|choice| is_null(&choice))));
        }
    }
    let names: Vec<&str> = match schema.get("type") {
        None => return Ok(Values::Any),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        Some(name) => name.as_str().into_iter().collect(),
    };
    let allowed = names.iter().filter(|name| **name != "null").map(|name| typed(name, schema));
    Ok(nullable(union(allowed.collect::<Result<_>>()?), names.contains(&"null")))
}

/// The values of one JSON type.
fn typed(name: &str, schema: &Map<String, Value>) -> Result<Values> {
    Ok(match name {
        "boolean" => Values::Bool,
        "integer" => Values::Integer,
        "number" => Values::Number,
        "string" => Values::Text,
        "array" => Values::List(Box::new(schema.get("items").map_or(Ok(Values::Any), values)?)),
        "object" => match schema.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Values::AnyObject,
            Some(members) => Values::Map(Box::new(values(members)?)),
        },
        _ => bail!("there is no JSON type `{name}`"),
    })
}

fn union(mut choices: Vec<Values>) -> Values {
    if choices.len() == 1 { choices.remove(0) } else { Values::Union(choices) }
}

fn nullable(values: Values, is_nullable: bool) -> Values {
    if is_nullable { Values::Nullable(Box::new(values)) } else { values }
}

fn doc(schema: &Map<String, Value>) -> Result<String> {
    let doc = schema.get("description").and_then(Value::as_str).context("no description")?;
    ensure!(!doc.contains("*/") && !doc.contains("\"\"\""), "the description ends a comment");
    Ok(doc.to_owned())
}

fn object(schema: &Value) -> Result<&Map<String, Value>> {
    schema.as_object().with_context(|| format!("`{schema}` is no schema with keywords"))
}

/// Refuses keywords that would be lost in the types.
fn check_keywords(schema: &Map<String, Value>, known: &[&str]) -> Result<()> {
    let lost = schema
        .keys()
        .map(String::as_str)
        .find(|key| !known.contains(key) && !IGNORED.contains(key) && !key.starts_with("x-"));
    match lost {
        None => Ok(()),
        Some(keyword) => bail!(
            "the keyword `{keyword}` has no type in other languages; add it to xtask/src/schema/types.rs"
        ),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A document with members of every shape, for the tests of the languages.
    pub(in crate::schema) fn sample() -> Vec<Type> {
        let schema = json!({
            "$id": "x", "title": "Desired", "type": "object", "description": "A document.\n\nIts end.",
            "required": ["kind"],
            "properties": {
                "apiVersion": { "description": "The version.", "type": "string" },
                "kind": { "description": "The kind.", "$ref": "#/$defs/Kind" },
                "labels": { "description": "Labels.", "type": "object", "additionalProperties": { "type": "string" } },
                "limit": { "description": "At most this\nnumber.", "anyOf": [{ "$ref": "#/$defs/Limit" }, { "type": "null" }] },
                "objects": { "description": "Objects.", "type": "array", "items": true },
                "seconds": { "description": "Seconds.", "type": ["integer", "null"], "minimum": 0 },
                "status": { "description": "The status.", "type": ["object", "null"], "additionalProperties": true },
            },
            "$defs": {
                "Kind": { "description": "A kind.", "oneOf": [
                    { "description": "One Pod.", "type": "string", "const": "one-pod" },
                    { "description": "Another.", "type": "string", "const": "Other" },
                ] },
                "Limit": { "description": "A limit.", "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-other": 1 },
            },
        });
        read(&BTreeMap::from([("desired.json".to_owned(), schema.to_string())])).unwrap()
    }

    fn documents(schemas: &[Value]) -> Result<Vec<Type>> {
        let named = schemas.iter().enumerate();
        read(&named.map(|(index, schema)| (index.to_string(), schema.to_string())).collect())
    }

    fn with_member(title: &str, member: &Value, required: &[&str]) -> Value {
        json!({
            "title": title, "type": "object", "description": "It.", "properties": {},
            "$defs": { "Shared": {
                "description": "Shared.", "type": "object",
                "properties": { "name": member }, "required": required,
            } },
        })
    }

    #[test]
    fn unknown_keyword_is_refused_with_its_place() {
        let member = json!({ "description": "The name.", "type": "string", "not": {} });
        let error = documents(&[with_member("A", &member, &[])]).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("`Shared`: `name`: the keyword `not`"), "{text}");
    }

    #[test]
    fn member_that_one_document_does_not_require_is_optional() {
        let member = json!({ "description": "The name.", "type": "string" });
        let types =
            documents(&[with_member("A", &member, &["name"]), with_member("B", &member, &[])]);
        let types = types.unwrap();
        let names: Vec<_> = types.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "Shared"]);
        let Shape::Members(members) = &types[2].shape else { panic!("{types:?}") };
        assert!(!members[0].is_required);
    }

    #[test]
    fn types_of_one_name_with_other_members_are_refused() {
        let text = json!({ "description": "The name.", "type": "string" });
        let number = json!({ "description": "The name.", "type": "integer" });
        let error =
            documents(&[with_member("A", &text, &[]), with_member("B", &number, &[])]).unwrap_err();
        assert!(format!("{error:#}").contains("different types `Shared`"), "{error:#}");
    }

    #[test]
    fn values_of_all_shapes_are_read() {
        let types = sample();
        let Shape::Members(members) = &types[0].shape else { panic!("{types:?}") };
        assert_eq!(types[0].name, "DesiredDocument");
        let values: Vec<_> = members.iter().map(|member| member.values.clone()).collect();
        assert_eq!(
            values,
            [
                Values::Text,
                Values::Named("Kind".into()),
                Values::Map(Box::new(Values::Text)),
                Values::Nullable(Box::new(Values::Named("Limit".into()))),
                Values::List(Box::new(Values::Any)),
                Values::Nullable(Box::new(Values::Integer)),
                Values::Nullable(Box::new(Values::AnyObject)),
            ]
        );
        assert_eq!(
            types[2].shape,
            Shape::Alias(Values::Union(vec![Values::Integer, Values::Text]))
        );
    }
}
