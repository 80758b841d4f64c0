//! The sections of a page: one for each object in a schema, with its fields and their examples.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::field_type;
use super::sentences::Sentences;

/// An object with fields.
#[derive(Debug)]
pub(super) struct Section {
    /// Its path in the document, or the name of its type if several fields have that.
    pub(super) title: String,
    pub(super) description: String,
    /// Rules across fields, as the API server reports them.
    pub(super) rules: Vec<String>,
    /// Required fields first, then by name.
    pub(super) fields: Vec<Field>,
}

/// A field of an object.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) required: bool,
    /// The type, without that of a section.
    pub(super) type_name: String,
    /// The title of the section with the fields of this one, or of its items.
    pub(super) section: Option<String>,
    pub(super) is_list: bool,
    pub(super) limits: Vec<String>,
    pub(super) default: Option<String>,
    pub(super) description: String,
    /// The values of an enum and their meanings.
    pub(super) values: Vec<(String, String)>,
    pub(super) example: Value,
}

/// A section whose examples are still collected.
struct Draft<'a> {
    schema: &'a Value,
    examples: Vec<&'a Map<String, Value>>,
}

/// The sections of a document: `schema` with references into `root`, and one example of it.
///
/// # Errors
/// Each field without description or example, and each field of an example that the schema lacks.
pub(super) fn of(
    title: &str,
    root: &Value,
    schema: &Value,
    example: &Value,
) -> Result<Vec<Section>> {
    let mut problems = Vec::new();
    let mut order = Vec::new();
    let mut drafts: BTreeMap<String, Draft<'_>> = BTreeMap::new();
    let mut queue = VecDeque::from([(title.to_owned(), schema, vec![example])]);
    while let Some((title, schema, examples)) = queue.pop_front() {
        // A type may contain itself; an example ends somewhere.
        if examples.is_empty() && drafts.contains_key(&title) {
            continue;
        }
        let draft = drafts.entry(title.clone()).or_insert_with(|| {
            order.push(title.clone());
            Draft { schema, examples: Vec::new() }
        });
        let objects = examples.iter().filter_map(|example| example.as_object());
        let objects: Vec<_> = objects.collect();
        draft.examples.extend(&objects);
        let properties = schema["properties"].as_object();
        for name in objects.iter().flat_map(|object| object.keys()) {
            if properties.is_none_or(|properties| !properties.contains_key(name)) {
                problems.push(format!("{title}.{name} of the example is not in the schema"));
            }
        }
        let mut children = Vec::new();
        for (name, property) in fields(schema) {
            if let Some((child, schema)) = child(&title, name, root, property) {
                let values = objects.iter().filter_map(|object| object.get(name));
                let values = values.flat_map(|value| match value {
                    Value::Array(items) => items.iter().collect(),
                    one => vec![one],
                });
                children.push((child, schema, values.collect()));
            }
        }
        // Each section stands before those of the next field.
        children.into_iter().rev().for_each(|child| queue.push_front(child));
    }
    let mut sections = Vec::new();
    for title in order {
        if let Some(draft) = drafts.get(&title) {
            sections.push(section(&title, root, draft, &mut problems));
        }
    }
    problems.dedup();
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    Ok(sections)
}

/// The fields of an object, without those that are refused because they have another name now.
fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter(|(_, property)| {
        !property["description"].as_str().is_some_and(|text| text.starts_with("Not accepted:"))
    })
}

/// The schema of a field that may be null, without the null.
fn without_null(schema: &Value) -> &Value {
    let variants = schema["anyOf"].as_array().into_iter().flatten();
    let mut variants = variants.filter(|variant| variant["type"] != "null");
    match (variants.next(), variants.next()) {
        (Some(one), None) => one,
        _ => schema,
    }
}

/// The schema that a reference names, or the schema itself.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = without_null(schema);
    let target = schema["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// Title and schema of the section of a field: of the object that it is, or of its items.
fn child<'a>(
    parent: &str,
    name: &str,
    root: &'a Value,
    property: &'a Value,
) -> Option<(String, &'a Value)> {
    let list = field_type::is_list(property);
    let of_field = without_null(if list { &property["items"] } else { property });
    let schema = resolve(root, of_field);
    schema["properties"].as_object()?;
    let title = match of_field["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        Some(type_) => type_.to_owned(),
        None => format!("{parent}.{name}{}", if list { "[]" } else { "" }),
    };
    Some((title, schema))
}

fn section(title: &str, root: &Value, draft: &Draft<'_>, problems: &mut Vec<String>) -> Section {
    let schema = draft.schema;
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut fields: Vec<Field> = fields(schema)
        .map(|(name, property)| {
            let place = format!("{title}.{name}");
            let example = draft.examples.iter().find_map(|example| example.get(name));
            if example.is_none() {
                problems.push(format!("{place} has no example: add one to the document's example"));
            }
            let field = Field {
                required: required.contains(&name.as_str()),
                section: child(title, name, root, property).map(|(title, _)| title),
                example: example.cloned().unwrap_or_default(),
                ..field(name, root, property)
            };
            if field.description.is_empty() {
                problems.push(format!("{place} has no description: write its doc comment"));
            }
            field
        })
        .collect();
    fields.sort_by_key(|field| !field.required);
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    Section {
        title: title.to_owned(),
        description: Sentences::of(schema["description"].as_str().unwrap_or_default()).text,
        // The others refuse fields that have another name now.
        rules: rules
            .filter(|rule| rule["fieldPath"].is_null())
            .filter_map(|rule| rule["message"].as_str().map(str::to_owned))
            .collect(),
        fields,
    }
}

/// A field as its schema describes it.
fn field(name: &str, root: &Value, property: &Value) -> Field {
    let target = resolve(root, property);
    let values = field_type::values(resolve(
        root,
        if target["items"].is_object() { &target["items"] } else { target },
    ));
    let names: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
    // A description next to a reference is that of the field.
    let description = property["description"].as_str().or(target["description"].as_str());
    let sentences = Sentences::of(description.unwrap_or_default());
    let mut limits = field_type::limits(target);
    limits.extend(sentences.limits);
    let of_schema = values.iter().filter_map(|(value, meaning)| {
        Some(((*value).to_owned(), Sentences::of((*meaning)?).text))
    });
    let meanings: Vec<_> = of_schema.chain(sentences.values).collect();
    if meanings.is_empty() && !names.is_empty() {
        limits.push(names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "));
    }
    let is_list = field_type::is_list(target);
    let is_enum = !names.is_empty();
    Field {
        name: name.to_owned(),
        required: false,
        type_name: match (is_enum, is_list) {
            (true, true) => "list of string".to_owned(),
            (true, false) => "string".to_owned(),
            _ => field_type::name(target),
        },
        section: None,
        is_list,
        limits,
        default: sentences.default.or_else(|| default(property, target)),
        description: sentences.text,
        values: meanings,
        example: Value::Null,
    }
}

/// The default by the schema, or of a type that has an empty value.
fn default(property: &Value, target: &Value) -> Option<String> {
    match property.get("default").or_else(|| target.get("default")) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Array(items)) if items.is_empty() => Some("empty list".to_owned()),
        Some(other) => Some(other.to_string()),
        None if field_type::is_bool(target) => Some("false".to_owned()),
        None if field_type::is_list(target) => Some("empty list".to_owned()),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "description": "A thing.",
            "required": ["name"],
            "properties": {
                "child": {"$ref": "#/$defs/Child"},
                "name": {"type": "string", "description": "The name. Limits: short."},
                "old": {"type": "string", "description": "Not accepted: use name."},
                "paused": {"type": "boolean", "description": "Whether it stops."},
                "spare": {"description": "Another.", "anyOf": [{"$ref": "#/$defs/Child"}, {"type": "null"}]},
                "more": {"type": "array", "description": "More.", "items": {"$ref": "#/$defs/Child"}},
            },
            "$defs": {"Child": {
                "description": "A child.",
                "properties": {"size": {"type": "integer", "description": "Its size. Default: 2."}},
            }},
        })
    }

    #[test]
    fn fields_have_their_type_default_limits_and_example() {
        let example =
            json!({"name": "a", "child": {}, "paused": true, "spare": {}, "more": [{"size": 3}]});
        let schema = schema();
        let sections = of("thing", &schema, &schema, &example).unwrap();
        let titles: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["thing", "Child"]);
        let names: Vec<&str> = sections[0].fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["name", "child", "more", "paused", "spare"]);
        assert_eq!(sections[0].fields[4].section.as_deref(), Some("Child"));
        assert_eq!(sections[0].fields[0].limits, ["short"]);
        assert_eq!(sections[0].fields[1].description, "A child.");
        assert_eq!(sections[0].fields[3].default.as_deref(), Some("false"));
        let size = &sections[1].fields[0];
        assert_eq!((size.default.as_deref(), &size.example), (Some("2"), &json!(3)));
    }

    #[test]
    fn fields_without_example_or_description_and_unknown_fields_are_reported() {
        let mut schema = schema();
        schema["properties"]["paused"] = json!({"type": "boolean"});
        let example =
            json!({"name": "a", "child": {"size": 1}, "paused": true, "spare": {}, "others": []});
        let error = of("thing", &schema, &schema, &example).unwrap_err().to_string();
        let expected = [
            "thing.others of the example is not in the schema",
            "thing.more has no example: add one to the document's example",
            "thing.paused has no description: write its doc comment",
        ];
        assert_eq!(error, expected.join("; "));
    }
}
