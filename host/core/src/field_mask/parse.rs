//! Reads a mask from its document.

use serde_json::{Map, Value};

use super::error::FieldMaskError;
use super::keys::{self, KeyNames};
use super::limits::{DEPTH_MAX, ELEMENT_BYTES_MAX, ELEMENTS_MAX};
use super::mask::{ElementBudget, FieldMask, ItemMasks, Readers};

/// The most bytes of a path in an error.
const SHOWN_BYTES_MAX: usize = 256;

impl FieldMask {
    /// Reads a mask. The empty document is the whole object.
    ///
    /// # Errors
    /// The first element that is not of the format, or is beyond a limit.
    pub fn read(document: &Map<String, Value>) -> Result<Self, FieldMaskError> {
        let mut reader = Reader { elements: 0, copies: ElementBudget::new(), path: Vec::new() };
        let mask = reader.mask(document)?;
        if mask.elements() > ELEMENTS_MAX {
            return Err(FieldMaskError::TooManyElements);
        }
        Ok(mask)
    }
}

struct Reader<'a> {
    /// How many elements were read.
    elements: usize,
    /// How many elements may be made in addition, since `*` counts for its siblings.
    copies: ElementBudget,
    path: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn mask(&mut self, document: &'a Map<String, Value>) -> Result<FieldMask, FieldMaskError> {
        let mut mask = FieldMask::default();
        for (element, below) in document {
            self.elements += 1;
            if self.elements > ELEMENTS_MAX {
                return Err(FieldMaskError::TooManyElements);
            }
            if element.len() > ELEMENT_BYTES_MAX {
                let bytes = element.len();
                return Err(FieldMaskError::ElementTooLong { path: self.shown(), bytes });
            }
            match element.split_once(':') {
                None if element == "*" => mask.every = Some(Box::new(self.below(element, below)?)),
                Some(("f", name)) if !name.is_empty() => {
                    mask.fields.insert(name.into(), self.below(element, below)?);
                }
                Some(("k", text)) => {
                    let found = keys::read(text);
                    let (names, values) = found.ok_or_else(|| FieldMaskError::Keys {
                        path: self.shown(),
                        element: element.clone(),
                    })?;
                    let item = self.below(element, below)?;
                    let item = self.united(&item, &mask_of(&names))?;
                    let items = mask
                        .items
                        .get_or_insert_with(|| Box::new(ItemMasks::of_names(names.clone())));
                    if items.names != names {
                        let element = element.clone();
                        return Err(FieldMaskError::KeyNames { path: self.shown(), element });
                    }
                    // Two texts may stand for the same keys.
                    let item = match items.by_values.get(&values) {
                        Some(own) => self.united(own, &item)?,
                        None => item,
                    };
                    items.by_values.insert(values, item);
                }
                _ => {
                    let element = element.clone();
                    return Err(FieldMaskError::Element { path: self.shown(), element });
                }
            }
        }
        self.with_every(mask)
    }

    /// Lets `*` count for its siblings.
    fn with_every(&mut self, mut mask: FieldMask) -> Result<FieldMask, FieldMaskError> {
        let Some(every) = mask.every.take() else { return Ok(mask) };
        let items = mask.items.iter_mut().flat_map(|items| items.by_values.values_mut());
        for sibling in mask.fields.values_mut().chain(items) {
            *sibling = self.united(sibling, &every)?;
        }
        mask.every = Some(every);
        Ok(mask)
    }

    fn united(&mut self, one: &FieldMask, other: &FieldMask) -> Result<FieldMask, FieldMaskError> {
        one.union_within(other, Readers::One, &mut self.copies)
            .map_err(|_| FieldMaskError::TooManyElements)
    }

    /// Reads the mask below an element.
    fn below(&mut self, element: &'a str, below: &'a Value) -> Result<FieldMask, FieldMaskError> {
        self.path.push(element);
        if self.path.len() > DEPTH_MAX {
            return Err(FieldMaskError::TooDeep { path: self.shown() });
        }
        let Some(document) = below.as_object() else {
            return Err(FieldMaskError::NotAnObject { path: self.shown() });
        };
        let mask = self.mask(document)?;
        self.path.pop();
        Ok(mask)
    }

    /// The present path, for an error.
    fn shown(&self) -> String {
        let mut path = if self.path.is_empty() { ".".to_owned() } else { self.path.join(".") };
        if path.len() > SHOWN_BYTES_MAX {
            path.truncate(path.floor_char_boundary(SHOWN_BYTES_MAX));
            path.push_str("...");
        }
        path
    }
}

/// The mask of the keys of an item: a reader finds the item by them.
fn mask_of(names: &KeyNames) -> FieldMask {
    let names: Vec<[&str; 1]> = names.iter().map(|name| [&**name]).collect();
    let paths: Vec<&[&str]> = names.iter().map(|name| &name[..]).collect();
    FieldMask::of_paths(&paths)
}
