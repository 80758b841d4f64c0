//! Many primaries from the samples: each property with its boundary values, then random
//! combinations of several properties.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::subject::Subject;
use crate::variants::{self, set, unset};

/// The most properties that half of the random primaries change. The others change each property
/// with a probability, which is another one for each primary.
const FEW_CHANGES: usize = 4;

/// One random primary of so many has a property with a value that is not one of the listed ones.
const UNLISTED_ONE_IN: usize = 4;

/// A changed property is left out in one of so many changes, unless it is required.
const LEFT_OUT_ONE_IN: usize = 8;

/// The longest random text, and the most items of a random list or map.
const TEXT_MAX: usize = 40;
const ITEMS_MAX: usize = 4;

/// How deep a random value is nested.
const DEPTH_MAX: usize = 6;

/// What random texts are made of: letters that names allow, and characters that need care in JSON,
/// YAML, shells, paths, templates and UTF-8.
const CHARACTERS: [char; 32] = [
    'a', 'b', 'z', 'A', 'Z', '0', '1', '9', '-', '_', '.', '/', ':', ',', ' ', '\n', '\t', '"',
    '\'', '\\', '$', '{', '}', '<', '&', '%', '#', '@', 'ü', '中', '🦀', '\u{301}',
];

/// A property, and the values that the API server accepts for it.
struct Property {
    path: Vec<String>,
    schema: Value,
    is_required: bool,
    values: Vec<Value>,
}

/// Gives primaries, the same for the same subject and seed: the samples, each of their listed
/// variants, and then random ones without end.
pub(crate) struct PrimaryGenerator {
    samples: Vec<Value>,
    listed: std::vec::IntoIter<Value>,
    properties: Vec<Property>,
    random: fastrand::Rng,
}

impl PrimaryGenerator {
    /// The generator of a seed. `is_accepted` tells whether the API server accepts a primary, so
    /// that a combination is not refused for one of its values.
    pub(crate) fn new(
        subject: &Subject,
        listed: &[Value],
        seed: u64,
        mut is_accepted: impl FnMut(&Value) -> bool,
    ) -> Self {
        let samples = subject.samples.clone();
        let schema = variants::schema_of(subject).unwrap_or_default();
        let mut properties = Vec::new();
        for leaf in variants::leaves(&schema) {
            let mut values = Vec::new();
            for sample in &samples {
                let present = variants::get(sample, &leaf.path);
                for value in
                    variants::values(leaf.schema, present).into_iter().chain(present.cloned())
                {
                    let mut variant = sample.clone();
                    let is_new = !values.contains(&value);
                    if is_new
                        && set(&mut variant, &leaf.path, value.clone())
                        && is_accepted(&variant)
                    {
                        values.push(value);
                    }
                }
            }
            let (schema, is_required) = (leaf.schema.clone(), leaf.is_required);
            properties.push(Property { path: leaf.path, schema, is_required, values });
        }
        let listed: Vec<Value> = samples.iter().chain(listed).cloned().collect();
        let random = fastrand::Rng::with_seed(seed);
        Self { samples, listed: listed.into_iter(), properties, random }
    }

    /// The next primary; `None` if no property can be changed and all samples were given.
    pub(crate) fn next(&mut self) -> Option<Arc<Value>> {
        let next = self.listed.next().or_else(|| self.random_primary())?;
        Some(Arc::new(next))
    }

    fn random_primary(&mut self) -> Option<Value> {
        let random = &mut self.random;
        let mut primary = random.choice(&self.samples)?.clone();
        let most = self.properties.len();
        if most == 0 {
            return None;
        }
        let mut places: Vec<usize> = (0..most).collect();
        random.shuffle(&mut places);
        if random.bool() {
            places.truncate(random.usize(1..=FEW_CHANGES));
        } else {
            let density = random.f32();
            places.retain(|_| random.f32() < density);
        }
        let unlisted = (random.usize(..UNLISTED_ONE_IN) == 0).then(|| places.first()).flatten();
        for place in &places {
            let property = &self.properties[*place];
            if !property.is_required && random.usize(..LEFT_OUT_ONE_IN) == 0 {
                unset(&mut primary, &property.path);
                continue;
            }
            let is_listed = unlisted != Some(place) && !property.values.is_empty();
            let value = if is_listed {
                random.choice(&property.values).cloned()
            } else {
                random_value(&property.schema, random, 0)
            };
            if let Some(value) = value {
                set(&mut primary, &property.path, value);
            }
        }
        Some(primary)
    }
}

/// A random value that mostly fits a schema: the API server may refuse it for a pattern or a rule.
fn random_value(schema: &Value, random: &mut fastrand::Rng, depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    match schema["type"].as_str() {
        Some("array") => {
            let count = random.usize(..=ITEMS_MAX);
            let items = (0..count).map_while(|_| random_value(&schema["items"], random, depth + 1));
            Some(items.collect::<Vec<_>>().into())
        }
        Some("object") => Some(random_object(schema, random, depth)),
        Some("integer") => {
            let minimum = schema["minimum"].as_i64().unwrap_or(-1);
            let maximum = schema["maximum"].as_i64().unwrap_or(minimum.saturating_add(50));
            // Thousands of copies are valid, and of no use for a check.
            let maximum = maximum.min(minimum.saturating_add(1_000));
            Some(random.i64(minimum..=maximum.max(minimum)).into())
        }
        Some("string") if schema["enum"].is_null() && schema["format"].is_null() => {
            let maximum = schema["maxLength"].as_u64().and_then(|most| most.try_into().ok());
            let length = random.usize(..=TEXT_MAX.min(maximum.unwrap_or(TEXT_MAX)));
            let one = |_| CHARACTERS[random.usize(..CHARACTERS.len())];
            Some((0..length).map(one).collect::<String>().into())
        }
        _ => random.choice(variants::values(schema, None)),
    }
}

/// An object with the required properties, half of the others, and random members if the schema
/// allows any name.
fn random_object(schema: &Value, random: &mut fastrand::Rng, depth: usize) -> Value {
    let mut object = Map::new();
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.into_iter().flatten().any(|one| one == name);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if is_required(name) || random.bool() {
            let value = random_value(property, random, depth + 1);
            object.extend(value.map(|value| (name.clone(), value)));
        }
    }
    let members = &schema["additionalProperties"];
    if members.is_object() {
        for _ in 0..random.usize(..=ITEMS_MAX) {
            let name = char::from(random.u8(b'a'..=b'z')).to_string();
            let value = random_value(members, random, depth + 1);
            object.extend(value.map(|value| (name, value)));
        }
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::subject::tests::shops;

    /// A guest of the kind `Shop` with this schema of `spec`, and a sample.
    fn subject(spec: &Value) -> Subject {
        let mut subject = shops();
        let schema = json!({"properties": {"spec": spec}});
        subject.preexisting.push(json!({"kind": "CustomResourceDefinition", "spec": {
            "group": "example.com", "names": {"kind": "Shop"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}));
        subject.samples.push(json!({"metadata": {"name": "a"}, "spec": {"a": 1, "b": "x"}}));
        subject
    }

    fn shop_schema() -> Value {
        json!({"type": "object", "properties": {
            "a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"type": "string"},
            "c": {"type": "boolean"},
            "d": {"type": "array", "items": {"type": "object", "required": ["n"],
                "properties": {"n": {"type": "string"}, "m": {"type": "integer"}}}},
            "e": {"type": "object", "additionalProperties": {"type": "string"}}}})
    }

    fn primaries(subject: &Subject, seed: u64, count: usize) -> Vec<Value> {
        let mut generator = PrimaryGenerator::new(subject, &[], seed, |_| true);
        (0..count).map_while(|_| generator.next()).map(|one| (*one).clone()).collect()
    }

    #[test]
    fn same_seed_gives_the_same_primaries_and_another_seed_others() {
        let subject = subject(&shop_schema());
        let first = primaries(&subject, 1, 500);
        assert_eq!(first, primaries(&subject, 1, 500));
        assert_ne!(first, primaries(&subject, 2, 500));
        assert_eq!(first[0], subject.samples[0]);
    }

    #[test]
    fn random_primaries_combine_all_properties() {
        let all = primaries(&subject(&shop_schema()), 1, 2_000);
        let most = all.iter().filter_map(|one| one["spec"].as_object()).map(Map::len).max();
        assert_eq!(most, Some(5));
        let different: BTreeSet<String> = all.iter().map(Value::to_string).collect();
        assert!(different.len() > 1_000, "{}", different.len());
        let items = |one: &Value| one["spec"]["d"].as_array().map_or(0, Vec::len);
        assert!(all.iter().any(|one| items(one) > 2));
    }

    #[test]
    fn refused_values_are_left_out_and_a_kind_without_properties_ends() {
        let subject =
            subject(&json!({"properties": {"b": {"type": "string", "enum": ["x", "no"]}}}));
        let is_accepted = |one: &Value| one["spec"]["b"] != "no";
        let mut generator = PrimaryGenerator::new(&subject, &[], 1, is_accepted);
        let all: Vec<_> = (0..200).map_while(|_| generator.next()).collect();
        assert_eq!(all.len(), 200);
        assert!(all.iter().skip(1).filter(|one| one["spec"]["b"] == "no").count() < 100);
        let nothing = self::subject(&json!({}));
        assert_eq!(primaries(&nothing, 1, 10).len(), 1);
    }

    #[test]
    fn hostile_schema_is_no_panic() {
        let mut deep = json!({"type": "string"});
        for _ in 0..50 {
            deep = json!({"type": "array", "items": deep});
        }
        for property in [
            deep,
            json!({"type": "integer", "minimum": 5, "maximum": 1}),
            json!({"type": "integer", "minimum": i64::MIN, "maximum": i64::MAX}),
            json!({"type": "string", "maxLength": 0}),
            json!({"type": 3, "enum": {}}),
            json!({"enum": []}),
        ] {
            let spec = json!({"type": "object", "properties": {"a": property}});
            assert_eq!(primaries(&subject(&spec), 1, 100).len(), 100);
        }
    }
}
