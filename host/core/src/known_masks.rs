//! The masks that the last answers of one guest gave: [`KnownMasks`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_contract::{Manifest, ReadFields};
use serde_json::{Map, Value};

use crate::KindMasks;
use crate::kind_masks::KindMasksError;

/// How many different answers are kept: a run without an owned object reads less of it than one
/// with it.
const KEPT_MAX: usize = 4;

/// The most bytes of a document that is kept, and of its masks. Either may be much larger than the
/// other: a mask that is whole has no elements, whatever its document says below it.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// The bytes of a map of JSON with up to eleven members, without their texts.
const MAP_BYTES: usize = 700;

/// The masks that the last answers of one guest gave, so that equal ones are not read again: most
/// runs of a guest read the same fields, and comparing two documents takes much less time than
/// reading one.
#[derive(Debug, Default)]
pub struct KnownMasks(Mutex<Vec<Known>>);

/// A document, and the masks in it.
#[derive(Debug)]
struct Known {
    document: Vec<ReadFields>,
    masks: Arc<KindMasks>,
}

impl KnownMasks {
    /// Reads masks as [`KindMasks::read`] does. Equal masks of an earlier answer are given again,
    /// so `manifest` has to be the same in each call.
    ///
    /// # Errors
    /// As of [`KindMasks::read`].
    pub fn read(
        &self,
        all: Vec<ReadFields>,
        manifest: &Manifest,
    ) -> Result<Arc<KindMasks>, KindMasksError> {
        if let Some(masks) = self.find(&all) {
            return Ok(masks);
        }
        let masks = Arc::new(KindMasks::read(&all, manifest)?);
        if document_bytes(&all) <= KEPT_BYTES_MAX && masks.bytes() <= KEPT_BYTES_MAX {
            let known = Known { document: all, masks: masks.clone() };
            let mut kept = self.lock();
            let dropped = if kept.len() < KEPT_MAX { None } else { kept.pop() };
            kept.insert(0, known);
            drop(kept);
            drop(dropped);
        }
        Ok(masks)
    }

    /// The masks of an equal document, which becomes the last one.
    fn find(&self, all: &[ReadFields]) -> Option<Arc<KindMasks>> {
        let mut kept = self.lock();
        let place = kept.iter().position(|known| known.document == all)?;
        kept[..=place].rotate_right(1);
        kept.first().map(|known| known.masks.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The approximate bytes of memory of a document.
fn document_bytes(all: &[ReadFields]) -> usize {
    all.iter().map(|one| one.api_version.len() + one.kind.len() + map_bytes(&one.fields)).sum()
}

/// The approximate bytes of memory of a map. A document has at most 127 levels.
fn map_bytes(map: &Map<String, Value>) -> usize {
    let below = |value: &Value| value.as_object().map_or(0, map_bytes);
    let members = map.iter().map(|(name, value)| name.len() + below(value));
    members.sum::<usize>() + MAP_BYTES * map.len().div_ceil(6)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest() -> Manifest {
        serde_json::from_value(json!({"name": "x",
            "primary": {"apiVersion": "example.com/v1", "kind": "Web", "plural": "webs"}}))
        .unwrap()
    }

    fn of_web(fields: &Value) -> Vec<ReadFields> {
        let all = json!([{"apiVersion": "example.com/v1", "kind": "Web", "fields": fields}]);
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn equal_masks_of_the_last_answers_are_the_same_and_others_are_read() {
        let known = KnownMasks::default();
        let read = |fields: Value| known.read(of_web(&fields), &manifest()).unwrap();
        let numbered = |number: usize| json!({format!("f:{number}"): {}});
        let first = read(numbered(0));
        assert_eq!(*first, KindMasks::read(&of_web(&numbered(0)), &manifest()).unwrap());
        assert_ne!(first, read(numbered(1)));
        assert!(Arc::ptr_eq(&first, &read(numbered(0))));
        for number in 2..10 {
            // What is used again stays.
            assert!(Arc::ptr_eq(&first, &read(numbered(0))));
            read(numbered(number));
        }
        for number in 2..10 {
            read(numbered(number));
        }
        assert!(!Arc::ptr_eq(&first, &read(numbered(0))), "only the last ones are kept");
        assert_eq!(known.lock().len(), KEPT_MAX);
    }

    #[test]
    fn invalid_and_large_masks_are_not_kept() {
        let known = KnownMasks::default();
        assert!(known.read(of_web(&json!({"status": {}})), &manifest()).is_err());
        let long = "n".repeat(KEPT_BYTES_MAX / 1_000);
        let fields: Map<String, Value> =
            (0..2_000).map(|number| (format!("f:{long}{number}"), json!({}))).collect();
        let masks = known.read(of_web(&fields.into()), &manifest()).unwrap();
        assert!(masks.bytes() > KEPT_BYTES_MAX);
        // The mask is whole, since `*` counts for its siblings, and its document is large.
        let below: Map<String, Value> =
            (0..4_000).map(|number| (format!("f:{number}"), json!({}))).collect();
        let masks = known.read(of_web(&json!({"*": {}, "f:a": below})), &manifest()).unwrap();
        assert!(masks.bytes() < KEPT_BYTES_MAX / 10);
        // So it is if all its elements name one item.
        let spelled = |number: usize| format!("k:{{\"name\":{}\"a\"}}", " ".repeat(number));
        let items: Map<String, Value> =
            (0..400).map(|number| (spelled(number), json!({"f:a": {}}))).collect();
        let masks = known.read(of_web(&json!({"f:list": items})), &manifest()).unwrap();
        assert!(masks.bytes() < KEPT_BYTES_MAX / 10);
        assert!(known.lock().is_empty());
    }
}
