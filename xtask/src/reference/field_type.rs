//! The type and the limits of a field, as its schema has them.

use serde_json::Value;

/// The types that a schema names, without `null`: what may be null may be left out.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => {
            several.iter().filter_map(Value::as_str).filter(|one| *one != "null").collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a schema is that of a list.
pub(super) fn is_list(schema: &Value) -> bool {
    types(schema) == ["array"]
}

/// Whether a schema is that of a text, a number, or either of them.
pub(super) fn is_scalar(schema: &Value) -> bool {
    let types = types(schema);
    schema["x-kubernetes-int-or-string"] == true
        || (types.len() == 1 && ["string", "integer", "number"].contains(&types[0]))
}

/// Whether a schema is that of a truth value.
pub(super) fn is_bool(schema: &Value) -> bool {
    types(schema) == ["boolean"]
}

/// The name of a type that has no section of its own.
pub(super) fn name(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    let types = types(schema);
    match types.as_slice() {
        ["array"] => format!("list of {}", name(&schema["items"])),
        ["object"] if schema["additionalProperties"].is_object() => {
            format!("map of string to {}", name(&schema["additionalProperties"]))
        }
        ["object"] => "object, any fields".to_owned(),
        ["string"] if schema["format"] == "date-time" => "string, RFC 3339 time".to_owned(),
        [one] => (*one).to_owned(),
        [_, ..] => types.join(" or "),
        [] if schema["anyOf"].is_array() => {
            let variants = schema["anyOf"].as_array().into_iter().flatten();
            variants.map(name).collect::<Vec<_>>().join(" or ")
        }
        // Free JSON: a whole object, or a schema.
        [] => "object".to_owned(),
    }
}

/// The values of an enum, with the meaning of each that the schema gives.
pub(super) fn values(schema: &Value) -> Vec<(&str, Option<&str>)> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter_map(Value::as_str).map(|value| (value, None)).collect();
    }
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    variants
        .filter_map(|variant| Some((variant["const"].as_str()?, variant["description"].as_str())))
        .collect()
}

/// The limits of a field that its schema has, as Markdown.
pub(super) fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    limits.extend(range(schema, "minimum", "maximum", ""));
    limits.extend(range(schema, "minLength", "maxLength", " characters"));
    limits.extend(range(schema, "minItems", "maxItems", " items"));
    limits.extend(range(schema, "minProperties", "maxProperties", " entries"));
    if let Some(pattern) = schema["pattern"].as_str() {
        limits.push(format!("`{pattern}`"));
    }
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => limits.push("no duplicates".to_owned()),
        Some("map") => limits.push("one item of each `type`".to_owned()),
        _ => {}
    }
    let of_items = self::limits_of_items(&schema["items"]);
    limits.extend(of_items.into_iter().map(|limit| format!("each {limit}")));
    limits
}

/// The limits of the items of a list.
fn limits_of_items(items: &Value) -> Vec<String> {
    if items.is_object() && is_scalar(items) { limits(items) } else { Vec::new() }
}

fn range(schema: &Value, min: &str, max: &str, unit: &str) -> Option<String> {
    match (schema[min].as_u64(), schema[max].as_u64()) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_of_a_list_name_those_of_its_items() {
        let items = json!({"type": "string", "minLength": 1, "maxLength": 63});
        let list = json!({"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": items});
        assert_eq!(name(&list), "list of string");
        let expected = ["at most 2 items", "no duplicates", "each 1 to 63 characters"];
        assert_eq!(limits(&list), expected);
    }

    #[test]
    fn optional_integer_has_the_name_of_its_type() {
        let schema = json!({"type": ["integer", "null"], "minimum": 0});
        assert_eq!(
            (name(&schema).as_str(), limits(&schema)),
            ("integer", vec!["at least 0".into()])
        );
        assert!(is_scalar(&schema) && !is_bool(&schema) && !is_list(&schema));
    }
}
