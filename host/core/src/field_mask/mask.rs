//! The tree of a mask.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::keys::{self, KeyNames, KeyValues};
use super::limits::ELEMENTS_MAX;

/// The bytes of a map with a few members, without their texts.
const MAP_BYTES: usize = 800;

/// Fields of an object. See the [module's documentation](super).
///
/// The default is the whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldMask {
    /// Each has what `every` has, too.
    pub(super) fields: BTreeMap<Box<str>, FieldMask>,
    pub(super) items: Option<Box<ItemMasks>>,
    /// Of members and items that are not named.
    pub(super) every: Option<Box<FieldMask>>,
}

/// The masks of items that are named by their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ItemMasks {
    pub(super) names: KeyNames,
    /// Each has what `every` of the list has, too.
    pub(super) by_values: BTreeMap<KeyValues, FieldMask>,
}

impl ItemMasks {
    /// Without an item, for keys of these names.
    pub(super) fn of_names(names: KeyNames) -> Self {
        Self { names, by_values: BTreeMap::new() }
    }
}

/// Who reads what a union keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// The reader of one mask, of which two elements count for the same value.
    One,
    /// The readers of two masks: each finds what its own mask keeps.
    Two,
}

/// How many elements may still be made.
pub(super) struct ElementBudget(usize);

/// An [`ElementBudget`] does not suffice.
pub(super) struct TooManyElements;

impl ElementBudget {
    /// As many as one mask may have.
    pub(super) fn new() -> Self {
        Self(ELEMENTS_MAX)
    }

    fn take(&mut self, elements: usize) -> Result<(), TooManyElements> {
        self.0 = self.0.checked_sub(elements).ok_or(TooManyElements)?;
        Ok(())
    }
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
        self.fields.is_empty() && self.items.is_none() && self.every.is_none()
    }

    /// Returns the fields that are in this mask, in the other, or in both; the whole object if
    /// these are too many. Whole are also a list whose items the two name by keys of other names,
    /// and a value below the object that one expects to be a list and the other an object: each
    /// keeps what the other leaves out.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if !self.is_of_object() || !other.is_of_object() {
            return Self::default();
        }
        self.union_of_objects(other, Readers::Two, &mut ElementBudget::new()).unwrap_or_default()
    }

    /// The fields of this mask, and those of a small one whose paths lead through objects only;
    /// also if this one has all elements that a mask may have. Each element of the small one may
    /// copy all of this one's `*`.
    #[must_use]
    pub fn with_few(&self, few: &Self) -> Self {
        let mut budget = ElementBudget((self.elements() + 1) * (few.elements() + 1));
        self.union_of_objects(few, Readers::One, &mut budget).unwrap_or_default()
    }

    /// The union of masks of a value of any type.
    pub(super) fn union_within(
        &self,
        other: &Self,
        readers: Readers,
        budget: &mut ElementBudget,
    ) -> Result<Self, TooManyElements> {
        if readers == Readers::Two && self.expected_types() != other.expected_types() {
            return Ok(Self::default());
        }
        self.union_of_objects(other, readers, budget)
    }

    /// The union of masks of a value that is an object for sure.
    fn union_of_objects(
        &self,
        other: &Self,
        readers: Readers,
        budget: &mut ElementBudget,
    ) -> Result<Self, TooManyElements> {
        if self.is_whole() || other.is_whole() {
            return Ok(Self::default());
        }
        let every = merged((self.every.as_deref(), other.every.as_deref()), readers, budget)?;
        let mut fields = BTreeMap::new();
        for name in self.fields.keys().chain(other.fields.keys()) {
            if !fields.contains_key(name) {
                let merged = merged((self.member(name), other.member(name)), readers, budget)?;
                fields.extend(merged.map(|mask| (name.clone(), mask)));
            }
        }
        let items = match (&self.items, &other.items) {
            // One lookup decides about an item, so the list is whole.
            (Some(one), Some(other)) if one.names != other.names => return Ok(Self::default()),
            (Some(first), _) | (None, Some(first)) => {
                let all = self.items.iter().chain(&other.items);
                let mut by_values = BTreeMap::new();
                for values in all.flat_map(|items| items.by_values.keys()) {
                    if !by_values.contains_key(values) {
                        let merged =
                            merged((self.named(values), other.named(values)), readers, budget)?;
                        by_values.extend(merged.map(|mask| (values.clone(), mask)));
                    }
                }
                Some(Box::new(ItemMasks { names: first.names.clone(), by_values }))
            }
            (None, None) => None,
        };
        Ok(Self { fields, items, every: every.map(Box::new) })
    }

    /// Whether the mask keeps everything that another one keeps. May be false although it does.
    pub fn contains(&self, other: &Self) -> bool {
        !self.is_of_object() || (other.is_of_object() && self.contains_in_value(other))
    }

    /// The same for the masks of a value of any type.
    fn contains_in_value(&self, other: &Self) -> bool {
        if self.is_whole() {
            return true;
        }
        if other.is_whole() {
            return false;
        }
        let has = |own: Option<&Self>, other: Option<&Self>| match (own, other) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(other)) => own.keeps_types_of(other) && own.contains_in_value(other),
        };
        // `*` of the one counts for what only the other names.
        let mut names = self.fields.keys().chain(other.fields.keys());
        let mut items = self.items.iter().chain(&other.items);
        let has_same_names = match (&self.items, &other.items) {
            (Some(own), Some(other)) => own.names == other.names,
            _ => true,
        };
        has(self.every.as_deref(), other.every.as_deref())
            && names.all(|name| has(self.member(name), other.member(name)))
            && has_same_names
            && items
                .all(|items| items.by_values.keys().all(|of| has(self.named(of), other.named(of))))
    }

    /// Whether the mask keeps values whole that another one keeps whole since they are of a type
    /// that it does not expect.
    fn keeps_types_of(&self, other: &Self) -> bool {
        let (of_object, of_list) = self.expected_types();
        (!of_object || other.is_of_object()) && (!of_list || other.is_of_list())
    }

    /// Whether the mask looks into objects, and into lists: values of another type stay whole.
    fn expected_types(&self) -> (bool, bool) {
        (self.is_of_object(), self.is_of_list())
    }

    /// The number of elements.
    pub(super) fn elements(&self) -> usize {
        let items = self.items.iter().flat_map(|items| items.by_values.values());
        let below = self.fields.values().chain(items).chain(self.every.as_deref());
        below.map(|mask| 1 + mask.elements()).sum()
    }

    /// The approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let texts = |texts: &[Box<str>]| texts.iter().map(|text| text.len() + 16).sum::<usize>();
        let fields = self.fields.iter().map(|(name, mask)| name.len() + mask.bytes());
        let items = self.items.iter().map(|items| {
            let of_items = items.by_values.iter();
            let below: usize = of_items.map(|(values, mask)| texts(values) + mask.bytes()).sum();
            MAP_BYTES + texts(&items.names) + below
        });
        let every = self.every.iter().map(|mask| mask.bytes());
        let map = if self.fields.is_empty() { 0 } else { MAP_BYTES };
        size_of::<Self>() + map + fields.chain(items).chain(every).sum::<usize>()
    }

    /// Whether the mask looks into objects: it names members of one.
    pub(super) fn is_of_object(&self) -> bool {
        !self.fields.is_empty() || self.every.is_some()
    }

    /// Whether the mask looks into lists: it names items of one.
    pub(super) fn is_of_list(&self) -> bool {
        self.items.is_some() || self.every.is_some()
    }

    /// The mask of a member of an object; `None` if the mask leaves it out.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        self.fields.get(name).or(self.every.as_deref())
    }

    /// The mask of an item of a list; `None` if the mask leaves it out.
    pub(super) fn item(&self, item: &RawValue) -> Option<&Self> {
        let named = || {
            let items = self.items.as_ref()?;
            items.by_values.get(&keys::of_item(&items.names, item)?)
        };
        named().or(self.every.as_deref())
    }

    /// The mask of the item with these keys.
    fn named(&self, values: &KeyValues) -> Option<&Self> {
        let named = self.items.as_ref().and_then(|items| items.by_values.get(values));
        named.or(self.every.as_deref())
    }
}

/// The union of two masks, of which each may be missing.
fn merged(
    both: (Option<&FieldMask>, Option<&FieldMask>),
    readers: Readers,
    budget: &mut ElementBudget,
) -> Result<Option<FieldMask>, TooManyElements> {
    let mask = match both {
        (Some(one), Some(other)) => {
            budget.take(1)?;
            one.union_within(other, readers, budget)?
        }
        (Some(one), None) | (None, Some(one)) => {
            budget.take(1 + one.elements())?;
            one.clone()
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(mask))
}
