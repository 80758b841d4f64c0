//! Compares two objects within a mask.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::value::RawValue;

use super::mask::FieldMask;
use crate::object::raw_json::{Members, first_byte};

impl FieldMask {
    /// Whether two objects differ in a field of the mask. A text that is not JSON differs.
    ///
    /// It parses only what differs, and no deeper than the mask; the order of members does not
    /// count.
    pub fn differs(&self, before: &str, after: &str) -> bool {
        let differs = || -> Result<bool, serde_json::Error> {
            self.value_differs(serde_json::from_str(before)?, serde_json::from_str(after)?)
        };
        before != after && differs().unwrap_or(true)
    }

    fn value_differs(
        &self,
        before: &RawValue,
        after: &RawValue,
    ) -> Result<bool, serde_json::Error> {
        if before.get() == after.get() {
            return Ok(false);
        }
        match (first_byte(before), first_byte(after)) {
            (b'{', b'{') if self.is_of_object() => self.members_differ(before, after),
            (b'[', b'[') if self.is_of_list() => self.items_differ(before, after),
            _ => Ok(parsed(before.get())? != parsed(after.get())?),
        }
    }

    fn members_differ(
        &self,
        before: &RawValue,
        after: &RawValue,
    ) -> Result<bool, serde_json::Error> {
        let before: Members<'_> = serde_json::from_str(before.get())?;
        let after: Members<'_> = serde_json::from_str(after.get())?;
        let names: BTreeSet<&Cow<'_, str>> = before.keys().chain(after.keys()).collect();
        for name in names {
            let Some(mask) = self.member(name) else { continue };
            let differs = match (before.get(name), after.get(name)) {
                (Some(before), Some(after)) => mask.value_differs(before, after)?,
                _ => true,
            };
            if differs {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn items_differ(&self, before: &RawValue, after: &RawValue) -> Result<bool, serde_json::Error> {
        let before: Vec<&RawValue> = serde_json::from_str(before.get())?;
        let after: Vec<&RawValue> = serde_json::from_str(after.get())?;
        let (before, after) = (self.kept(before), self.kept(after));
        if before.len() != after.len() {
            return Ok(true);
        }
        for ((mask, before), (other, after)) in before.iter().zip(&after) {
            let differs = if std::ptr::eq(*mask, *other) || mask == other {
                mask.value_differs(before, after)?
            } else {
                parsed(&mask.prune(before.get())?)? != parsed(&other.prune(after.get())?)?
            };
            if differs {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The items of a list that the mask keeps, each with its own mask.
    fn kept<'a>(&'a self, items: Vec<&'a RawValue>) -> Vec<(&'a Self, &'a RawValue)> {
        items.into_iter().filter_map(|item| Some((self.item(item)?, item))).collect()
    }
}

fn parsed(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text)
}
