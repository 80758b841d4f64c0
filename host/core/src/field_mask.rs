//! Masks: which fields of an object count.
//!
//! A mask is a tree of paths in the form of `fieldsV1`, the format of `managedFields`
//! (structured-merge-diff): `f:name` is a member of an object, and `k:{"name":"a"}` the items of a
//! list with these keys. `*` is every item of a list, or every member of an object. A path that
//! ends without further elements (`{}`) stands for its whole value.
//!
//! ```json
//! {"f:spec": {"f:replicas": {}, "f:containers": {"*": {"f:image": {}}}}}
//! ```
//!
//! # What a mask keeps
//! - An object or a list on the way to a path stays, without its other members: a reader may ask
//!   whether it exists.
//! - A value of another type than the mask expects stays whole: a list where the mask has members
//!   of an object, for example. A reader then finds what it would find without the mask.
//! - The order of items stays. Those that no path names are left out; one that is named by its keys
//!   keeps its keys.

mod compare;
mod error;
mod parse;
mod prune;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::object::raw_json::Members;

pub use error::FieldMaskError;

/// The deepest path, in elements.
pub const DEPTH_MAX: usize = 32;

/// The most elements of one mask.
pub const ELEMENTS_MAX: usize = 4_096;

/// The longest element, in bytes.
pub const ELEMENT_BYTES_MAX: usize = 512;

/// The keys of an item of a list: names, and values as JSON text.
type Keys = BTreeMap<Box<str>, Box<str>>;

/// Fields of an object. See the [module's documentation](self).
///
/// The default is the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMask {
    fields: BTreeMap<Box<str>, FieldMask>,
    items: BTreeMap<Keys, FieldMask>,
    every: Option<Box<FieldMask>>,
}

impl FieldMask {
    /// The mask of some fields of an object, each of which is whole: `[&["metadata", "name"]]`.
    pub fn of_paths(paths: &[&[&str]]) -> Self {
        let mut mask = Self::default();
        for path in paths {
            let mut place = &mut mask;
            for name in *path {
                place = place.fields.entry((*name).into()).or_default();
            }
        }
        mask
    }

    /// Whether the mask keeps the whole value.
    pub fn is_whole(&self) -> bool {
        self.fields.is_empty() && self.items.is_empty() && self.every.is_none()
    }

    /// Returns the fields that are in this mask, in the other, or in both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_whole() || other.is_whole() {
            return Self::default();
        }
        let mut union = self.clone();
        for (name, mask) in &other.fields {
            let merged = union.fields.get(name).map_or_else(|| mask.clone(), |own| own.union(mask));
            union.fields.insert(name.clone(), merged);
        }
        for (keys, mask) in &other.items {
            let merged = union.items.get(keys).map_or_else(|| mask.clone(), |own| own.union(mask));
            union.items.insert(keys.clone(), merged);
        }
        if let Some(every) = &other.every {
            let merged =
                union.every.as_ref().map_or_else(|| (**every).clone(), |own| own.union(every));
            union.every = Some(Box::new(merged));
        }
        union
    }

    /// The approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, mask)| name.len() + mask.bytes());
        let keys =
            |keys: &Keys| keys.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        let items = self.items.iter().map(|(of, mask)| {
            let bytes: usize = keys(of);
            bytes + mask.bytes()
        });
        let every = self.every.iter().map(|mask| mask.bytes());
        size_of::<Self>() + fields.chain(items).chain(every).sum::<usize>()
    }

    /// Whether the mask looks into objects: it names members of one.
    fn is_of_object(&self) -> bool {
        !self.fields.is_empty() || self.every.is_some()
    }

    /// Whether the mask looks into lists: it names items of one.
    fn is_of_list(&self) -> bool {
        !self.items.is_empty() || self.every.is_some()
    }

    /// The mask of a member of an object; `None` if the mask leaves it out.
    fn member(&self, name: &str) -> Option<Cow<'_, Self>> {
        both(self.fields.get(name), self.every.as_deref())
    }

    /// The mask of an item of a list; `None` if the mask leaves it out.
    fn item(&self, item: &RawValue) -> Option<Cow<'_, Self>> {
        let every = self.every.as_deref().map(Cow::Borrowed);
        if self.items.is_empty() {
            return every;
        }
        let Ok(members) = serde_json::from_str::<Members<'_>>(item.get()) else { return every };
        let matching = self.items.iter().filter(|(keys, _)| has_keys(&members, keys));
        matching.fold(every, |found, (_, mask)| match found {
            None => Some(Cow::Borrowed(mask)),
            Some(found) => Some(Cow::Owned(found.union(mask))),
        })
    }
}

/// The union of two masks, of which each may be missing.
fn both<'a>(
    one: Option<&'a FieldMask>,
    other: Option<&'a FieldMask>,
) -> Option<Cow<'a, FieldMask>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Cow::Owned(one.union(other))),
        (one, other) => one.or(other).map(Cow::Borrowed),
    }
}

/// Whether an item of a list has these keys.
fn has_keys(members: &Members<'_>, keys: &Keys) -> bool {
    keys.iter().all(|(name, value)| {
        let member = members.get(&**name);
        member.is_some_and(|member| parse::key_text(member.get()).as_deref() == Some(value))
    })
}

/// What kind of JSON a value is, by its first byte.
fn first_byte(value: &RawValue) -> u8 {
    value.get().bytes().next().unwrap_or(b'n')
}
