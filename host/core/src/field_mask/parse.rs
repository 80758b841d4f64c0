//! Reads a mask from its document.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{DEPTH_MAX, ELEMENT_BYTES_MAX, ELEMENTS_MAX, FieldMask, FieldMaskError, Keys};

/// The most bytes of a path in an error.
const SHOWN_BYTES_MAX: usize = 256;

impl FieldMask {
    /// Reads a mask. The empty document is the whole object.
    ///
    /// # Errors
    /// The first element that is not of the format, or is beyond a limit.
    pub fn read(document: &Map<String, Value>) -> Result<Self, FieldMaskError> {
        Reader { elements: 0, path: Vec::new() }.mask(document)
    }
}

struct Reader<'a> {
    elements: usize,
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
                Some(("k", keys)) => {
                    let keys = keys_of(keys).ok_or_else(|| FieldMaskError::Keys {
                        path: self.shown(),
                        element: element.clone(),
                    })?;
                    let item = self.below(element, below)?.union(&mask_of(&keys));
                    // Two texts may stand for the same keys.
                    let item = mask.items.get(&keys).map_or(item.clone(), |own| own.union(&item));
                    mask.items.insert(keys, item);
                }
                _ => {
                    let element = element.clone();
                    return Err(FieldMaskError::Element { path: self.shown(), element });
                }
            }
        }
        Ok(mask)
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
fn mask_of(keys: &Keys) -> FieldMask {
    let names: Vec<[&str; 1]> = keys.keys().map(|name| [&**name]).collect();
    let paths: Vec<&[&str]> = names.iter().map(|name| &name[..]).collect();
    FieldMask::of_paths(&paths)
}

/// The keys of an item: an object of at least one scalar.
fn keys_of(text: &str) -> Option<Keys> {
    let keys: BTreeMap<Box<str>, Value> = serde_json::from_str(text).ok()?;
    let keys: Keys = keys
        .into_iter()
        .map(|(name, value)| is_key(&value).then(|| (name, value.to_string().into())))
        .collect::<Option<_>>()?;
    (!keys.is_empty()).then_some(keys)
}

/// The text of a value as a key has it; `None` if it is no scalar.
pub(super) fn key_text(value: &str) -> Option<Box<str>> {
    let value: Value = serde_json::from_str(value).ok()?;
    is_key(&value).then(|| value.to_string().into())
}

fn is_key(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}
