//! Bounds on a schema that need no evaluation: its size, its depth, its references, its patterns.

use std::collections::{BTreeMap, BTreeSet};

use regex::RegexBuilder;
use serde_json::{Map, Value};

/// Size of a schema, in bytes of its names, texts and values.
pub const SCHEMA_BYTES_MAX: usize = 256 << 10;

/// JSON values in a schema.
pub const SCHEMA_VALUES_MAX: usize = 10_000;

/// Depth of a schema as JSON.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// Subschemas of a schema, the schema itself included.
pub const SUBSCHEMAS_MAX: usize = 2_000;

/// Different regular expressions in a schema.
pub const PATTERNS_MAX: usize = 64;

/// Length of one regular expression, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1 << 10;

/// Size of one regular expression once it is compiled, in bytes.
pub const PATTERN_PROGRAM_BYTES_MAX: usize = 256 << 10;

/// A compiled regular expression up to this size costs one step for each byte that it is matched
/// with.
const SMALL_PROGRAM_BYTES: usize = 16 << 10;

/// The steps for each byte that a larger regular expression is matched with.
const LARGE_PROGRAM_STEPS: u64 = 16;

/// The drafts whose keywords this module knows.
const DRAFTS: [&str; 3] = [
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
];

/// Keywords that choose another base, target or meaning of references at run time.
const FORBIDDEN: [&str; 6] = [
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
];

/// The place of the subschemas of a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The value is a subschema.
    One,
    /// The value is an array of subschemas.
    Many,
    /// The members of the value are subschemas.
    Named,
}

/// The values that a keyword's subschemas apply to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applies {
    /// The value that the schema itself applies to.
    Here,
    /// Its members, or their names.
    Members,
    /// Its items.
    Items,
    /// No value, without a reference to them.
    Nowhere,
}

/// The keywords of all [`DRAFTS`] that hold subschemas. A keyword with two rows takes either form.
pub(super) const KEYWORDS: [(&str, Place, Applies); 23] = [
    ("allOf", Place::Many, Applies::Here),
    ("anyOf", Place::Many, Applies::Here),
    ("oneOf", Place::Many, Applies::Here),
    ("not", Place::One, Applies::Here),
    ("if", Place::One, Applies::Here),
    ("then", Place::One, Applies::Here),
    ("else", Place::One, Applies::Here),
    ("dependentSchemas", Place::Named, Applies::Here),
    ("dependencies", Place::Named, Applies::Here),
    ("properties", Place::Named, Applies::Members),
    ("patternProperties", Place::Named, Applies::Members),
    ("additionalProperties", Place::One, Applies::Members),
    ("unevaluatedProperties", Place::One, Applies::Members),
    ("propertyNames", Place::One, Applies::Members),
    ("items", Place::One, Applies::Items),
    ("items", Place::Many, Applies::Items),
    ("prefixItems", Place::Many, Applies::Items),
    ("additionalItems", Place::One, Applies::Items),
    ("unevaluatedItems", Place::One, Applies::Items),
    ("contains", Place::One, Applies::Items),
    ("contentSchema", Place::One, Applies::Nowhere),
    ("$defs", Place::Named, Applies::Nowhere),
    ("definitions", Place::Named, Applies::Nowhere),
];

/// A schema that keeps the bounds.
#[derive(Debug, Default)]
pub(super) struct Bounded<'a> {
    /// The targets of references, by reference: `#`, `#/$defs/x`. The other subschemas may have
    /// long pointers.
    pub(super) targets: BTreeMap<String, &'a Value>,
    /// Steps for each byte that a pattern is matched with, by pattern.
    pub(super) patterns: BTreeMap<&'a str, u64>,
}

/// Checks all bounds.
///
/// # Errors
/// The bound that the schema exceeds, or the keyword that it must not have.
pub(super) fn check(schema: &Value) -> Result<Bounded<'_>, String> {
    let mut size = Size::default();
    size.add(schema, 0)?;
    let mut walk = Walk::default();
    collect_references(schema, &mut walk.references);
    walk.schema(schema, &mut "#".to_owned())?;
    for reference in &walk.applied {
        // Percent encoding would give one subschema two names.
        if reference.contains('%') || !walk.found.targets.contains_key(*reference) {
            return Err(format!(
                "$ref {reference:?} does not lead to a subschema of this schema, and nothing is \
                 fetched: write it as \"#/$defs/NAME\""
            ));
        }
    }
    Ok(walk.found)
}

/// Collects all texts that may be references. Together they are no longer than the schema.
fn collect_references<'a>(value: &'a Value, references: &mut BTreeSet<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, references)),
        Value::Object(members) => {
            references.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| collect_references(member, references));
        }
        _ => {}
    }
}

#[derive(Default)]
struct Size {
    bytes: usize,
    values: usize,
}

impl Size {
    fn add(&mut self, value: &Value, depth: usize) -> Result<(), String> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(format!("it is nested more than {SCHEMA_DEPTH_MAX} deep"));
        }
        self.values += 1;
        self.bytes += 1 + value.as_str().map_or(0, str::len);
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item, depth + 1))?,
            Value::Object(members) => {
                for (name, member) in members {
                    self.bytes += name.len();
                    self.add(member, depth + 1)?;
                }
            }
            _ => {}
        }
        if self.bytes > SCHEMA_BYTES_MAX {
            return Err(format!("it has more than {SCHEMA_BYTES_MAX} bytes"));
        }
        if self.values > SCHEMA_VALUES_MAX {
            return Err(format!("it has more than {SCHEMA_VALUES_MAX} values"));
        }
        Ok(())
    }
}

#[derive(Default)]
struct Walk<'a> {
    found: Bounded<'a>,
    /// All texts that may be references, also those in constants.
    references: BTreeSet<&'a str>,
    /// The references of subschemas.
    applied: BTreeSet<&'a str>,
    subschemas: usize,
}

impl<'a> Walk<'a> {
    /// Walks through a subschema at a pointer, and restores the pointer.
    fn schema(&mut self, schema: &'a Value, at: &mut String) -> Result<(), String> {
        self.subschemas += 1;
        if self.subschemas > SUBSCHEMAS_MAX {
            return Err(format!("it has more than {SUBSCHEMAS_MAX} subschemas"));
        }
        if let Value::Object(members) = schema {
            self.keywords(members, at)?;
            for (keyword, place, _) in KEYWORDS {
                for (step, subschema) in subschemas(members, keyword, place) {
                    let length = at.len();
                    at.push('/');
                    at.push_str(keyword);
                    step.append_to(at);
                    self.schema(subschema, at)?;
                    at.truncate(length);
                }
            }
        }
        if self.references.contains(at.as_str()) {
            self.found.targets.insert(at.clone(), schema);
        }
        Ok(())
    }

    fn keywords(&mut self, members: &'a Map<String, Value>, at: &str) -> Result<(), String> {
        for keyword in FORBIDDEN {
            if members.contains_key(keyword) {
                return Err(format!("{keyword} is not supported (at {at}): use $ref"));
            }
        }
        let is_root = at == "#";
        if !is_root && (members.contains_key("$id") || members.contains_key("id")) {
            return Err(format!(
                "only the whole schema may have an $id, not a part of it (at {at})"
            ));
        }
        if let Some(draft) = members.get("$schema") {
            let name = draft.as_str().unwrap_or_default().trim_end_matches('#');
            let name = name.trim_start_matches("https://").trim_start_matches("http://");
            if !is_root || !DRAFTS.contains(&name) {
                return Err(format!(
                    "$schema must be one of https://{}, and stand at the top",
                    DRAFTS.join(", https://")
                ));
            }
        }
        if members.get("format").is_some_and(|format| format == "regex") {
            return Err(format!("the format \"regex\" is not supported (at {at})"));
        }
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            self.applied.insert(reference);
        }
        let pattern = members.get("pattern").and_then(Value::as_str);
        let named = members.get("patternProperties").and_then(Value::as_object);
        let named = named.into_iter().flat_map(|named| named.keys().map(String::as_str));
        pattern.into_iter().chain(named).try_for_each(|pattern| self.pattern(pattern))
    }

    fn pattern(&mut self, pattern: &'a str) -> Result<(), String> {
        if self.found.patterns.contains_key(pattern) {
            return Ok(());
        }
        if self.found.patterns.len() == PATTERNS_MAX {
            return Err(format!("it has more than {PATTERNS_MAX} patterns"));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("a pattern has more than {PATTERN_BYTES_MAX} bytes"));
        }
        let ascii = with_ascii_classes(pattern);
        let build = |text: &str, bytes| RegexBuilder::new(text).size_limit(bytes).build().map(drop);
        let fits = |bytes| match build(&ascii, bytes) {
            Err(regex::Error::Syntax(_)) => build(pattern, bytes),
            result => result,
        };
        let steps = match fits(SMALL_PROGRAM_BYTES) {
            Ok(()) => 1,
            Err(_) => match fits(PATTERN_PROGRAM_BYTES_MAX) {
                Ok(()) => LARGE_PROGRAM_STEPS,
                Err(regex::Error::CompiledTooBig(_)) => {
                    return Err(format!(
                        "the pattern {pattern:?} takes more than {PATTERN_PROGRAM_BYTES_MAX} bytes \
                         when it is compiled: repeat less, or name fewer characters"
                    ));
                }
                Err(error) => {
                    return Err(format!("the pattern {pattern:?} cannot be compiled: {error}"));
                }
            },
        };
        self.found.patterns.insert(pattern, steps);
        Ok(())
    }
}

/// Replaces the classes `\w` and `\d` by those of JSON Schema (ECMA-262), without Unicode.
fn with_ascii_classes(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('w') => text.push_str("[0-9A-Za-z_]"),
            Some('W') => text.push_str("[^0-9A-Za-z_]"),
            Some('d') => text.push_str("[0-9]"),
            Some('D') => text.push_str("[^0-9]"),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

/// The rest of the pointer to a subschema, behind its keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// The keyword's value itself.
    Value,
    /// An item of the value.
    Item(usize),
    /// A member of the value.
    Member(&'a str),
}

impl Step<'_> {
    fn append_to(self, pointer: &mut String) {
        match self {
            Self::Value => {}
            Self::Item(index) => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Self::Member(name) => {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
        }
    }
}

/// The subschemas of a keyword, each with the rest of its pointer.
pub(super) fn subschemas<'a>(
    members: &'a Map<String, Value>,
    keyword: &str,
    place: Place,
) -> Vec<(Step<'a>, &'a Value)> {
    match (place, members.get(keyword)) {
        (Place::One, Some(schema @ (Value::Object(_) | Value::Bool(_)))) => {
            vec![(Step::Value, schema)]
        }
        (Place::Many, Some(Value::Array(schemas))) => {
            schemas.iter().enumerate().map(|(index, schema)| (Step::Item(index), schema)).collect()
        }
        (Place::Named, Some(Value::Object(schemas))) => schemas
            .iter()
            .filter(|(_, schema)| schema.is_object() || schema.is_boolean())
            .map(|(name, schema)| (Step::Member(name), schema))
            .collect(),
        _ => Vec::new(),
    }
}
