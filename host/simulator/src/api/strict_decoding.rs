//! Strict decoding as Go does it: reports the members that a body has twice, and unknown ones.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use granit_parser::{Event, Parser, ScalarStyle};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::api::request_context::RequestContext;
use crate::patch;
use crate::types::field_path::FieldPath;
use crate::types::schema::{Additional, Schema};
use crate::types::status_error::StatusError;

/// The most members that Go reports of one body.
const MOST: usize = 100;
/// The most members of one body whose paths are compared with those that are reported already.
const MOST_COMPARED: usize = 1000;

/// Handles the members that the body of a create or update has twice, and its `unknown` ones, as
/// `fieldValidation` asks: returns warnings.
///
/// # Errors
/// Of `Strict` validation, if there are any.
pub(crate) fn check_object(
    context: &RequestContext<'_>,
    unknown: &[String],
) -> Result<Vec<String>, StatusError> {
    if is_ignored(context) {
        return Ok(Vec::new());
    }
    let custom = context.kind.custom.is_some();
    let schema = (!custom).then(|| context.kind.schema());
    let in_body = if custom { &[] } else { unknown };
    match in_json(&context.request.body, schema, in_body) {
        Some(mut errors) if !context.request.content_type.contains("yaml") => {
            if custom {
                errors.extend(unknown_fields(unknown));
            }
            report(context, errors)
        }
        _ => {
            let mut errors = in_yaml(&context.request.body);
            if is_strict(context) && !errors.is_empty() {
                errors = vec![go_error(&errors)];
            }
            errors.extend(unknown_fields(unknown));
            report(context, errors)
        }
    }
}

/// The same for a patch, and the unknown members of the patched object.
///
/// # Errors
/// Of `Strict` validation, if there are any.
pub(crate) fn check_patch(
    context: &RequestContext<'_>,
    kind: patch::Kind,
    unknown: &[String],
) -> Result<Vec<String>, StatusError> {
    if is_ignored(context) {
        return Ok(Vec::new());
    }
    let of_patch = if kind == patch::Kind::Json { "json patch " } else { "" };
    let twice = in_json(&context.request.body, None, &[]).unwrap_or_default();
    let mut errors: Vec<String> = twice.iter().map(|error| format!("{of_patch}{error}")).collect();
    errors.extend(unknown_fields(unknown));
    report(context, errors)
}

/// The same for the document of an apply, whose unknown members are errors anyway.
///
/// # Errors
/// Of `Strict` validation, if there are any.
pub(crate) fn check_applied(context: &RequestContext<'_>) -> Result<Vec<String>, StatusError> {
    let body = &context.request.body;
    // Most documents are JSON, and their lines cost more to count than their members.
    if is_ignored(context) || in_json(body, None, &[]).is_some_and(|errors| errors.is_empty()) {
        return Ok(Vec::new());
    }
    let errors = in_yaml(body);
    if errors.is_empty() || !is_strict(context) {
        return Ok(errors);
    }
    Err(StatusError::bad_request(format!(
        "error strict decoding YAML: error converting YAML to JSON: {}",
        go_error(&errors)
    )))
}

fn is_ignored(context: &RequestContext<'_>) -> bool {
    context.query.get("fieldValidation") == "Ignore"
}

fn is_strict(context: &RequestContext<'_>) -> bool {
    context.query.get("fieldValidation") == "Strict"
}

fn report(context: &RequestContext<'_>, errors: Vec<String>) -> Result<Vec<String>, StatusError> {
    if errors.is_empty() || !is_strict(context) {
        return Ok(errors);
    }
    Err(StatusError::bad_request(format!(
        "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
        context.kind.name,
        context.kind.version,
        context.kind.name,
        errors.join(", ")
    )))
}

fn unknown_fields(paths: &[String]) -> impl Iterator<Item = String> {
    paths.iter().map(|path| format!("unknown field {path:?}"))
}

/// The errors of Go's decoder of YAML as one.
fn go_error(lines: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))
}

/// The members that a JSON body has twice and those that are `unknown`, in the order of the body;
/// `None` if it is no JSON. Go reads the values of types without known members later, and does not
/// look into them.
fn in_json(body: &[u8], schema: Option<&Schema>, unknown: &[String]) -> Option<Vec<String>> {
    let unknown = unknown.iter().map(String::as_str).collect();
    let mut found = Found { unknown, errors: Vec::new(), compared: 0 };
    let mut json = serde_json::Deserializer::from_slice(body);
    let node = Node { schema, path: &FieldPath::root(""), found: &mut found };
    node.deserialize(&mut json).ok()?;
    Some(found.errors)
}

/// What is found in a body.
struct Found<'a> {
    unknown: BTreeSet<&'a str>,
    errors: Vec<String>,
    compared: usize,
}

impl Found<'_> {
    fn is_unknown(&self, path: &FieldPath<'_>) -> bool {
        !self.unknown.is_empty() && self.unknown.contains(path.to_string().as_str())
    }

    fn report(&mut self, problem: &str, path: &FieldPath<'_>) {
        self.compared += 1;
        if self.errors.len() >= MOST || self.compared > MOST_COMPARED {
            return;
        }
        let error = format!("{problem} field {:?}", path.to_string());
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }
}

/// A value of the body.
struct Node<'n, 'f> {
    schema: Option<&'n Schema>,
    path: &'n FieldPath<'n>,
    found: &'n mut Found<'f>,
}

/// A name of a member: mostly a part of the body.
#[derive(Clone, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> DeserializeSeed<'de> for Node<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let schema = self.schema.map(Schema::resolved);
        if schema.is_some_and(|schema| schema.free) {
            return value.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        value.deserialize_any(Node { schema, ..self })
    }
}

impl<'de> Visitor<'de> for Node<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let schema = self.schema.and_then(|schema| schema.items.as_deref());
        for index in 0.. {
            let path = &self.path.item(index);
            if items.next_element_seed(Node { schema, path, found: self.found })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut counts: BTreeMap<Name<'de>, usize> = BTreeMap::new();
        while let Some(name) = members.next_key::<Name<'de>>()? {
            let path = &self.path.member(&name.0);
            if self.found.is_unknown(path) {
                self.found.report("unknown", path);
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            if *count == 2 {
                self.found.report("duplicate", path);
            }
            let schema = self.schema.and_then(|schema| match &schema.additional {
                _ if !schema.properties.is_empty() => schema.properties.get(&*name.0),
                Additional::Of(inner) => Some(&**inner),
                _ => None,
            });
            members.next_value_seed(Node { schema, path, found: self.found })?;
        }
        Ok(())
    }
}

/// A list or a map of a YAML document that has begun.
enum Collection {
    List,
    Map(Map),
}

/// A map with its keys, as Go prints them.
#[derive(Default)]
struct Map {
    keys: BTreeSet<String>,
    /// The key whose value comes next.
    next: Option<String>,
    /// The line in which the value of that key begins.
    line: usize,
}

/// The keys that a map of the first YAML document has twice, with the lines of their values, as
/// Go's decoder reports them: after those in the value.
fn in_yaml(body: &[u8]) -> Vec<String> {
    // Controllers write without a body, and to make a parser costs more than many a write.
    if body.is_empty() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let mut open: Vec<Collection> = Vec::new();
    for event in Parser::new_from_str(&String::from_utf8_lossy(body)) {
        let Ok((event, span)) = event else { break };
        if event.is_node()
            && let Some(Collection::Map(map)) = open.last_mut()
            && map.next.is_some()
        {
            map.line = span.start.line();
        }
        let key = match event {
            Event::MappingStart(..) => {
                open.push(Collection::Map(Map::default()));
                continue;
            }
            Event::SequenceStart(..) => {
                open.push(Collection::List);
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                String::new()
            }
            Event::Scalar(text, style, ..) => printed(&text, style),
            Event::Alias(_) => String::new(),
            Event::DocumentEnd => break,
            _ => continue,
        };
        let Some(Collection::Map(map)) = open.last_mut() else { continue };
        let Some(key) = map.next.replace(key) else { continue };
        map.next = None;
        if errors.len() < MOST && map.keys.contains(&key) {
            errors.push(format!("line {}: key {key} already set in map", map.line));
        }
        map.keys.insert(key);
    }
    errors
}

/// A key as Go prints it: a text in quotes, a number or a truth value without.
fn printed(key: &str, style: ScalarStyle) -> String {
    let is_plain = style == ScalarStyle::Plain;
    match serde_yaml_ng::from_str(key) {
        Ok(serde_yaml_ng::Value::Number(_) | serde_yaml_ng::Value::Bool(_)) if is_plain => {
            key.to_owned()
        }
        _ => format!("{key:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        Schema::parse(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "replicas": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "raw": {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"},
            }},
        }}))
    }

    fn json(body: &str, unknown: &[&str]) -> Vec<String> {
        let unknown: Vec<String> = unknown.iter().map(|path| (*path).to_owned()).collect();
        in_json(body.as_bytes(), Some(&schema()), &unknown).unwrap()
    }

    #[test]
    fn members_are_reported_in_the_order_of_the_body_and_once_each() {
        let body = r#"{"spec": {"z": {"a": 1, "a": 2}, "replicas": 1, "replicas": 2, "replicas": 3,
            "labels": {"b": "1", "a": "1", "b": "2"}, "ports": [{}, {"name": "a", "name": "b"}],
            "a": 1, "z": 2}}"#;
        assert_eq!(
            json(body, &["spec.a", "spec.z"]),
            [
                "unknown field \"spec.z\"",
                "duplicate field \"spec.replicas\"",
                "duplicate field \"spec.labels.b\"",
                "duplicate field \"spec.ports[1].name\"",
                "unknown field \"spec.a\"",
            ]
        );
    }

    #[test]
    fn same_name_in_two_objects_and_in_a_value_of_any_type_is_no_duplicate() {
        let body =
            r#"{"spec": {"ports": [{"name": "a"}, {"name": "a"}], "raw": {"a": 1, "a": 2}}}"#;
        assert_eq!(json(body, &[]), Vec::<String>::new());
        let escaped = "{\"spec\": {\"labels\": {\"a\": \"1\", \"\\u0061\": \"2\"}}}";
        assert_eq!(json(escaped, &[]), ["duplicate field \"spec.labels.a\""]);
        assert_eq!(in_json(b"a: 1\na: 2\n", None, &[]), None);
    }

    #[test]
    fn hostile_number_of_duplicates_is_reported_up_to_the_limit_of_go() {
        let long = "x".repeat(100_000);
        let many: Vec<String> = (0..20_000).map(|_| "{\"a\":1,\"a\":2}".to_owned()).collect();
        let body = format!("{{\"{long}\":[{}]}}", many.join(","));
        assert_eq!(in_json(body.as_bytes(), None, &[]).unwrap().len(), MOST);
        let lines = "- a: 1\n  a: 2\n".repeat(20_000);
        assert_eq!(in_yaml(lines.as_bytes()).len(), MOST);
        let deep = "{\"a\":".repeat(100_000);
        assert_eq!(in_json(deep.as_bytes(), None, &[]), None);
        assert_eq!(in_yaml(deep.as_bytes()), Vec::<String>::new());
    }

    #[test]
    fn keys_of_yaml_are_reported_with_the_lines_of_their_values() {
        let text = "\nspec:\n  foo: 1\n  bar:\n    x: 1\n    x: 2\n  foo: 3\n  bar:\n    - y: 1\n";
        assert_eq!(
            in_yaml(text.as_bytes()),
            [
                "line 6: key \"x\" already set in map",
                "line 7: key \"foo\" already set in map",
                "line 9: key \"bar\" already set in map",
            ]
        );
        let numbers = "a: {1: x, \"1\": y, 1: z}\n---\na: 1\na: 2\n";
        assert_eq!(in_yaml(numbers.as_bytes()), ["line 1: key 1 already set in map"]);
        assert_eq!(in_yaml(b"{\"a\": 1, \"a\": 2}"), ["line 1: key \"a\" already set in map"]);
    }
}
