//! A count of the steps that an evaluation takes at most, before the evaluation.
//!
//! The count walks the schema and the document as the evaluation does, but takes every branch, so
//! it is never lower than the truth; and it stops as soon as it is too high.

use serde_json::{Map, Value};

use super::bounds::{Applies, Bounded, KEYWORDS, Step, subschemas};
use super::error::SchemaError;

/// Steps of one evaluation: a subschema applied to a value, a member read, a byte matched.
pub const EVALUATION_STEPS_MAX: u64 = 200_000;

/// The depth of subschemas within subschemas, and of a document.
pub const EVALUATION_DEPTH_MAX: usize = 100;

/// The comparisons per item of an array with `uniqueItems`, or the cost of its hash.
const UNIQUE_STEPS: u64 = 20;

/// The bytes of a text that count as one step where the evaluation only copies or compares them.
const TEXT_BYTES_PER_STEP: u64 = 64;

/// Checks that evaluating the schema against this document stays within the bounds.
///
/// # Errors
/// [`SchemaError::TooCostly`], or [`SchemaError::Unusable`] for a schema that never ends.
pub(super) fn check(
    schema: &Value,
    bounded: &Bounded<'_>,
    document: &Value,
) -> Result<(), SchemaError> {
    let mut meter = Meter { bounded, left: EVALUATION_STEPS_MAX };
    meter.size(document, 0)?;
    meter.apply(schema, document, 0, 0)
}

struct Meter<'a> {
    bounded: &'a Bounded<'a>,
    left: u64,
}

impl Meter<'_> {
    fn spend(&mut self, steps: u64) -> Result<(), SchemaError> {
        self.left = self.left.checked_sub(steps).ok_or_else(|| {
            SchemaError::TooCostly(format!(
                "evaluating it takes more than {EVALUATION_STEPS_MAX} steps: let fewer subschemas \
                 apply to the same value, or pass a smaller document"
            ))
        })?;
        Ok(())
    }

    /// Spends a step for each value and each piece of text in a document or constant.
    fn size(&mut self, value: &Value, depth: usize) -> Result<(), SchemaError> {
        if depth > EVALUATION_DEPTH_MAX {
            return Err(SchemaError::TooCostly(format!(
                "the document is nested more than {EVALUATION_DEPTH_MAX} deep"
            )));
        }
        match value {
            Value::Array(items) => {
                self.spend(1)?;
                items.iter().try_for_each(|item| self.size(item, depth + 1))
            }
            Value::Object(members) => {
                self.spend(1)?;
                members.iter().try_for_each(|(name, member)| {
                    self.spend(bytes(name) / TEXT_BYTES_PER_STEP)?;
                    self.size(member, depth + 1)
                })
            }
            Value::String(text) => self.spend(1 + bytes(text) / TEXT_BYTES_PER_STEP),
            _ => self.spend(1),
        }
    }

    /// Spends the steps of applying a schema to a value. `here` is the number of subschemas around
    /// it that apply to this value, `depth` the number of all subschemas around it.
    fn apply(
        &mut self,
        schema: &Value,
        value: &Value,
        here: usize,
        depth: usize,
    ) -> Result<(), SchemaError> {
        if depth > EVALUATION_DEPTH_MAX {
            return Err(if here == depth {
                SchemaError::Unusable(format!(
                    "it applies more than {EVALUATION_DEPTH_MAX} subschemas within each other to \
                     one value, or refers to itself without end"
                ))
            } else {
                SchemaError::TooCostly(format!(
                    "it applies more than {EVALUATION_DEPTH_MAX} subschemas within each other"
                ))
            });
        }
        self.spend(1)?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        self.assertions(keywords, value)?;
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str)
            && let Some(target) = self.bounded.targets.get(reference)
        {
            self.apply(target, value, here + 1, depth + 1)?;
        }
        for (keyword, place, applies) in KEYWORDS {
            if applies == Applies::Nowhere || !keywords.contains_key(keyword) {
                continue;
            }
            for (step, subschema) in subschemas(keywords, keyword, place) {
                match (applies, value) {
                    (Applies::Here, _) => self.apply(subschema, value, here + 1, depth + 1)?,
                    (Applies::Members, Value::Object(members)) => {
                        self.members((keywords, keyword, step), subschema, members, depth)?;
                    }
                    (Applies::Items, Value::Array(items)) => {
                        for item in items {
                            self.apply(subschema, item, 0, depth + 1)?;
                        }
                    }
                    _ => self.spend(1)?,
                }
            }
        }
        Ok(())
    }

    fn members(
        &mut self,
        (keywords, keyword, step): (&Map<String, Value>, &str, Step<'_>),
        subschema: &Value,
        members: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), SchemaError> {
        self.spend(1)?;
        match keyword {
            "properties" => {
                let Step::Member(name) = step else { return Ok(()) };
                self.spend(bytes(name) / TEXT_BYTES_PER_STEP)?;
                members
                    .get(name)
                    .map_or(Ok(()), |member| self.apply(subschema, member, 0, depth + 1))
            }
            "propertyNames" => members.keys().try_for_each(|name| {
                self.apply(subschema, &Value::String(name.clone()), 0, depth + 1)
            }),
            "additionalProperties" => {
                let named = keywords.get("properties").and_then(Value::as_object);
                let others = members
                    .iter()
                    .filter(|(name, _)| !named.is_some_and(|named| named.contains_key(*name)));
                others
                    .map(|(_, member)| member)
                    .try_for_each(|member| self.apply(subschema, member, 0, depth + 1))
            }
            // The count takes each pattern to match each name.
            _ => {
                members.values().try_for_each(|member| self.apply(subschema, member, 0, depth + 1))
            }
        }
    }

    /// Spends the steps of the keywords without subschemas.
    fn assertions(
        &mut self,
        keywords: &Map<String, Value>,
        value: &Value,
    ) -> Result<(), SchemaError> {
        for keyword in ["const", "enum"] {
            keywords.get(keyword).map_or(Ok(()), |constant| self.size(constant, 0))?;
        }
        for keyword in ["required", "dependentRequired", "dependencies"] {
            keywords.get(keyword).map_or(Ok(()), |names| self.size(names, 0))?;
        }
        match value {
            Value::Object(members) => {
                self.spend(length(members.len()))?;
                let patterns = keywords.get("patternProperties").and_then(Value::as_object);
                for pattern in patterns.into_iter().flat_map(Map::keys) {
                    for name in members.keys() {
                        self.matched(pattern, name)?;
                    }
                }
                Ok(())
            }
            Value::Array(items) => {
                self.spend(length(items.len()))?;
                if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
                    let before = self.left;
                    self.size(value, 0)?;
                    self.spend((before - self.left).saturating_mul(UNIQUE_STEPS))?;
                }
                Ok(())
            }
            Value::String(text) => {
                self.spend(bytes(text) / TEXT_BYTES_PER_STEP)?;
                let pattern = keywords.get("pattern").and_then(Value::as_str);
                pattern.map_or(Ok(()), |pattern| self.matched(pattern, text))
            }
            _ => Ok(()),
        }
    }

    fn matched(&mut self, pattern: &str, text: &str) -> Result<(), SchemaError> {
        let steps = self.bounded.patterns.get(pattern).copied().unwrap_or(1);
        self.spend(1 + bytes(text).saturating_mul(steps))
    }
}

fn bytes(text: &str) -> u64 {
    length(text.len())
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
