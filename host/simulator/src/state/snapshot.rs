//! The objects of a kind as they were at an earlier version.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::state::store::{Collection, Stored};
use crate::types::object_key::Key;

impl Collection {
    /// The objects at an earlier version: later events are undone. `None` if that version was
    /// compacted.
    pub(crate) fn at(&self, version: u64) -> Option<Cow<'_, BTreeMap<Key, Stored>>> {
        if version < self.forgotten {
            return None;
        }
        let mut objects = Cow::Borrowed(&self.objects);
        for event in self.history.iter().rev().take_while(|event| event.version > version) {
            let key = event.key.clone();
            match &event.before {
                Some(text) => {
                    objects.to_mut().insert(key, Stored::past(text.clone()));
                }
                None => {
                    objects.to_mut().remove(&key);
                }
            }
        }
        Some(objects)
    }
}
