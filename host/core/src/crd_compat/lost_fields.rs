//! Fields of stored objects that the API server would prune under another schema.

use std::collections::BTreeSet;

use serde_json::Value;

use super::findings::FINDING_BYTES_MAX;
use super::normal::EMPTIED;
use super::versions;
use crate::foreign;

/// The most fields that are named of one object.
pub const LOST_FIELDS_MAX: usize = 20;

/// Why an object is not valid under a definition, or not known to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A place of the object and what is wrong there: `.spec.size is not of type integer`.
    At(String),
    /// The check used up its steps before it reached the end of the object.
    TooManySteps,
}

/// Members that the API server keeps in any embedded object.
pub(super) const OBJECT_MEMBERS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A search for fields that a schema does not name.
pub(super) struct LostFields {
    steps_left: u64,
    fields: BTreeSet<String>,
}

impl LostFields {
    /// A search of at most `steps` values.
    pub(super) fn new(steps: u64) -> Self {
        Self { steps_left: steps, fields: BTreeSet::new() }
    }

    /// The fields that were found.
    pub(super) fn into_fields(self) -> BTreeSet<String> {
        self.fields
    }

    /// Searches a value at a place of the object.
    pub(super) fn search(
        &mut self,
        schema: &Value,
        value: &Value,
        place: &str,
    ) -> Result<(), Misfit> {
        self.steps_left = self.steps_left.checked_sub(1).ok_or(Misfit::TooManySteps)?;
        if self.fields.len() >= LOST_FIELDS_MAX {
            return Ok(());
        }
        match value {
            Value::Object(members) => {
                let is_object = versions::is_set(schema, "x-kubernetes-embedded-resource");
                for (name, member) in members {
                    let place = format!("{place}.{name}");
                    match member_schema(schema, name) {
                        Some(inner) => self.search(inner, member, &place)?,
                        None if keeps_unknown(schema) => {}
                        None if is_object && OBJECT_MEMBERS.contains(&name.as_str()) => {}
                        None => {
                            self.fields.insert(foreign::one_line(&place, FINDING_BYTES_MAX));
                        }
                    }
                }
            }
            Value::Array(items) => {
                if let Some(inner) = item_schema(schema) {
                    for item in items {
                        self.search(inner, item, &format!("{place}[]"))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The schema of a member: that of its property, or that of additional properties.
pub(super) fn member_schema<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let named = schema.get("properties").and_then(|properties| properties.get(name));
    named.or_else(|| match schema.get("additionalProperties")? {
        Value::Bool(true) => Some(&*EMPTIED),
        others => others.is_object().then_some(others),
    })
}

/// The schema of a list's items; `None` if they stay as they are.
pub(super) fn item_schema(schema: &Value) -> Option<&Value> {
    schema.get("items").or_else(|| (!keeps_unknown(schema)).then_some(&*EMPTIED))
}

/// Whether a schema keeps members that it does not name.
pub(super) fn keeps_unknown(schema: &Value) -> bool {
    versions::is_set(schema, "x-kubernetes-preserve-unknown-fields")
}
