//! Why an API server refuses the schemas of a CustomResourceDefinition: the rules of structural
//! schemas, their defaults and their rules in CEL.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::types::crd::cel_expression::CelExpression;
use crate::types::crd::validate::validate;
use crate::types::schema::Schema;
use crate::types::status_error::FieldError;

/// The types of a structural schema.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Keywords of JSON Schema that no definition may have.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

/// Keywords that a schema below `allOf`, `anyOf`, `oneOf` or `not` must not have.
const CORE_ONLY: [&str; 7] = [
    "additionalProperties",
    "default",
    "description",
    "nullable",
    "title",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-preserve-unknown-fields",
];

/// The size to which a pattern is compiled: only its syntax counts.
const PATTERN_BYTES: usize = 1 << 10;

/// Where a schema is within another one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Field,
    Item,
}

/// Returns why an API server refuses the schemas of a definition, with the path of each field. Not
/// each reason of a real server is found.
pub fn definition_errors(definition: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    let versions = definition["spec"]["versions"].as_array();
    for (index, version) in versions.into_iter().flatten().enumerate() {
        let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
        match version["schema"]["openAPIV3Schema"].as_object() {
            Some(schema) => check(schema, Level::Root, &path, &mut errors),
            None => errors.push(FieldError::required(path, "schemas are required")),
        }
    }
    errors.iter().map(FieldError::text).collect()
}

fn check(schema: &Map<String, Value>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    check_type(schema, level, path, errors);
    check_keywords(schema, path, errors);
    check_lists(schema, path, errors);
    check_rules(schema, path, errors);
    for (name, property) in members(schema, "properties") {
        let path = format!("{path}.properties[{name}]");
        match property.as_object() {
            // The server knows the metadata.
            Some(_) if level == Level::Root && name == "metadata" => {}
            Some(property) => check(property, Level::Field, &path, errors),
            None => errors.push(FieldError::without_value(path, "must be a schema")),
        }
    }
    if let Some(inner) = schema.get("additionalProperties").and_then(Value::as_object) {
        check(inner, Level::Field, &format!("{path}.additionalProperties"), errors);
    }
    if let Some(items) = schema.get("items").and_then(Value::as_object) {
        check(items, Level::Item, &format!("{path}.items"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let nested = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        for (index, nested) in nested.enumerate() {
            check_nested(schema, nested, &format!("{path}.{name}[{index}]"), errors);
        }
    }
    if let Some(not) = schema.get("not") {
        check_nested(schema, not, &format!("{path}.not"), errors);
    }
    // A default of a schema with errors may be valid.
    if let Some(default) = schema.get("default").filter(|_| errors.is_empty()) {
        let schema = Schema::parse(&Value::Object(schema.clone()));
        errors.extend(validate(&schema, default, None).into_iter().map(|mut error| {
            let dot = if error.field.is_empty() { "" } else { "." };
            error.field = format!("{path}.default{dot}{}", error.field);
            error
        }));
    }
}

fn check_type(schema: &Map<String, Value>, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let field = format!("{path}.type");
    let is_any = flag(schema, "x-kubernetes-int-or-string")
        || flag(schema, "x-kubernetes-preserve-unknown-fields");
    match (text(schema, "type"), level) {
        ("", _) if is_any => {}
        ("", Level::Root) => {
            errors.push(FieldError::required(field, "must not be empty at the root"));
        }
        ("", Level::Field) => {
            let why = "must not be empty for specified object fields";
            errors.push(FieldError::required(field, why));
        }
        ("", Level::Item) => {
            errors.push(FieldError::required(field, "must not be empty for specified array items"));
        }
        (kind, _) if !TYPES.contains(&kind) => {
            errors.push(FieldError::unsupported(field, kind, &TYPES.map(str::to_owned)));
        }
        (kind, Level::Root) if kind != "object" => {
            errors.push(FieldError::invalid(field, kind, "must be object at the root"));
        }
        (kind, _) if flag(schema, "x-kubernetes-int-or-string") => {
            let why = "must be empty if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(field, kind, why));
        }
        _ => {}
    }
}

fn check_keywords(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in UNSUPPORTED.into_iter().filter(|name| schema.contains_key(*name)) {
        errors.push(FieldError::forbidden(
            format!("{path}.{name}"),
            format!("{name} is not supported"),
        ));
    }
    let additional = schema.get("additionalProperties");
    let field = format!("{path}.additionalProperties");
    if additional == Some(&Value::Bool(false)) {
        errors.push(FieldError::forbidden(field, "additionalProperties cannot be set to false"));
    } else if additional.is_some() && members(schema, "properties").next().is_some() {
        let why = "additionalProperties and properties are mutual exclusive";
        errors.push(FieldError::forbidden(field, why));
    }
    if flag(schema, "uniqueItems") {
        let why =
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), why));
    }
    let pattern = text(schema, "pattern");
    match RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build() {
        Ok(_) | Err(regex::Error::CompiledTooBig(_)) => {}
        Err(error) => {
            let why = format!("must be a valid regular expression, but isn't: {error}");
            errors.push(FieldError::invalid(format!("{path}.pattern"), pattern, why));
        }
    }
}

fn check_lists(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let items = schema.get("items");
    if items.is_some_and(Value::is_array) {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), why));
    }
    let is_array = text(schema, "type") == "array";
    if is_array && items.is_none() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    let kind = text(schema, "x-kubernetes-list-type");
    if !kind.is_empty() && !is_array {
        let why = "must be array if x-kubernetes-list-type is specified";
        errors.push(FieldError::invalid(format!("{path}.type"), text(schema, "type"), why));
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let field = format!("{path}.x-kubernetes-list-map-keys");
    match (kind, keys.map_or(&[][..], Vec::as_slice)) {
        ("map", []) => {
            let why = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(field, why));
        }
        ("map", keys) => {
            let properties = items.map_or(&Value::Null, |items| &items["properties"]);
            for (index, key) in keys.iter().enumerate() {
                let is_known = key.as_str().is_some_and(|key| properties.get(key).is_some());
                if !is_known {
                    let why = "entries must all be names of item properties";
                    let field = format!("{field}[{index}]");
                    errors.push(FieldError::invalid(field, key.clone(), why));
                }
            }
        }
        _ => {}
    }
}

fn check_rules(schema: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        for name in ["rule", "messageExpression"] {
            let field = format!("{path}.{name}");
            let expression = rule[name].as_str().unwrap_or_default().trim();
            match (name, expression) {
                ("rule", "") => errors.push(FieldError::required(field, "rule is not specified")),
                (_, "") => {}
                _ => {
                    if let Err(why) = CelExpression::compile(expression) {
                        let why = format!("compilation failed: {why}");
                        errors.push(FieldError::invalid(field, expression, why));
                    }
                }
            }
        }
    }
}

/// Checks a schema that only restricts values.
fn check_nested(
    outer: &Map<String, Value>,
    nested: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(nested) = nested.as_object() else {
        errors.push(FieldError::without_value(path, "must be a schema"));
        return;
    };
    // The one place for a type: an integer or a text.
    let is_type_allowed = flag(outer, "x-kubernetes-int-or-string");
    let is_forbidden = |name: &&str| nested.contains_key(*name);
    for name in CORE_ONLY.into_iter().filter(is_forbidden) {
        errors.push(FieldError::forbidden(
            format!("{path}.{name}"),
            "must be undefined to be structural",
        ));
    }
    if nested.contains_key("type") && !is_type_allowed {
        errors
            .push(FieldError::forbidden(format!("{path}.type"), "must be empty to be structural"));
    }
}

fn members<'a>(
    schema: &'a Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn text<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The errors of a definition whose `spec` has this schema, without the path to it.
    fn errors(spec: &Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let path = "spec.versions[0].schema.openAPIV3Schema.properties[spec]";
        let errors = definition_errors(&definition).into_iter();
        errors.map(|error| error.replacen(path, "", 1)).collect()
    }

    #[test]
    fn structural_schema_has_no_errors() {
        let spec = json!({"type": "object", "required": ["port"], "properties": {
            "port": {"x-kubernetes-int-or-string": true,
                "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "names": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "text": {"type": "string", "pattern": "^(\\pL{50}){50}$", "not": {"enum": ["a"]}},
        }, "x-kubernetes-validations": [{"rule": "self.names.size() > 0",
            "messageExpression": "'names: ' + string(self.names.size())"}]});
        assert_eq!(errors(&spec), Vec::<String>::new());
    }

    #[test]
    fn each_error_of_a_schema_has_the_path_of_its_field() {
        let object = |more: Value| {
            let mut schema = json!({"type": "object"});
            for (name, value) in more.as_object().unwrap() {
                schema[name] = value.clone();
            }
            schema
        };
        let list = |more: Value| {
            let mut schema = json!({"type": "array", "items": {"type": "object",
                "properties": {"name": {"type": "string"}}}});
            for (name, value) in more.as_object().unwrap() {
                schema[name] = value.clone();
            }
            schema
        };
        for (spec, start) in [
            (json!({}), ".type: Required value: must not be empty for specified object fields"),
            (json!({"type": "text"}), ".type: Unsupported value: \"text\": supported values: "),
            (json!({"type": "array"}), ".items: Required value: must be specified"),
            (
                json!({"type": "array", "items": {}}),
                ".items.type: Required value: must not be empty for specified array items",
            ),
            (
                json!({"type": "array", "items": [{"type": "string"}]}),
                ".items: Forbidden: items must be a schema object and not an array",
            ),
            (
                list(json!({"x-kubernetes-list-type": "map"})),
                ".x-kubernetes-list-map-keys: Required value: must not be empty if ",
            ),
            (
                list(json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]})),
                ".x-kubernetes-list-map-keys[0]: Invalid value: \"a\": entries must all be names",
            ),
            (
                object(json!({"x-kubernetes-list-type": "set"})),
                ".type: Invalid value: \"object\": must be array if x-kubernetes-list-type",
            ),
            (object(json!({"$ref": "#/a"})), ".$ref: Forbidden: $ref is not supported"),
            (
                object(json!({"additionalProperties": false})),
                ".additionalProperties: Forbidden: additionalProperties cannot be set to false",
            ),
            (
                object(json!({"additionalProperties": {"type": "string"},
                    "properties": {"a": {"type": "string"}}})),
                ".additionalProperties: Forbidden: additionalProperties and properties are mutual",
            ),
            (
                json!({"type": "string", "pattern": "("}),
                ".pattern: Invalid value: \"(\": must be a valid regular expression",
            ),
            (
                json!({"type": "integer", "x-kubernetes-int-or-string": true}),
                ".type: Invalid value: \"integer\": must be empty if x-kubernetes-int-or-string",
            ),
            (
                json!({"type": "string", "anyOf": [{"type": "string"}]}),
                ".anyOf[0].type: Forbidden: must be empty to be structural",
            ),
            (
                json!({"type": "string", "not": {"default": "a"}}),
                ".not.default: Forbidden: must be undefined to be structural",
            ),
            (json!({"type": "integer", "default": "a"}), ".default: Invalid value: \"string\": "),
            (
                object(json!({"x-kubernetes-validations": [{"rule": "self.size >"}]})),
                ".x-kubernetes-validations[0].rule: Invalid value: \"self.size >\": compilation failed: ",
            ),
            (
                object(json!({"x-kubernetes-validations": [{"message": "no"}]})),
                ".x-kubernetes-validations[0].rule: Required value: rule is not specified",
            ),
        ] {
            let errors = errors(&spec);
            assert_eq!(errors.len(), 1, "{spec}: {errors:#?}");
            assert!(errors[0].starts_with(start), "{spec}\n{}\n{start}", errors[0]);
        }
    }

    #[test]
    fn root_and_version_need_a_schema_of_an_object() {
        let of = |version: Value| definition_errors(&json!({"spec": {"versions": [version]}}));
        let path = "spec.versions[0].schema.openAPIV3Schema";
        assert_eq!(of(json!({})), [format!("{path}: Required value: schemas are required")]);
        let root = |schema: Value| of(json!({"schema": {"openAPIV3Schema": schema}}));
        let missing = format!("{path}.type: Required value: must not be empty at the root");
        assert_eq!(root(json!({"properties": {}})), [missing]);
        assert!(root(json!({"type": "string"}))[0].ends_with("must be object at the root"));
        let metadata = json!({"type": "object", "properties": {"metadata": {}}});
        assert_eq!(root(metadata), Vec::<String>::new());
    }
}
