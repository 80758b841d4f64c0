//! The objects that policies make of one object, each kept once.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// The most bytes of all objects that policies make of one object in all orders.
const BYTES_MAX: usize = 64 << 20;

/// An object that policies made. Equal objects have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DocumentId(usize);

/// The objects by id, as JSON with sorted members.
#[derive(Debug, Default)]
pub(super) struct Documents {
    texts: Vec<Arc<str>>,
    ids: BTreeMap<Arc<str>, DocumentId>,
    bytes: usize,
}

impl Documents {
    /// Keeps an object. Returns its id.
    ///
    /// # Errors
    /// If the objects have too many bytes.
    pub(super) fn keep(&mut self, object: &Value) -> Result<DocumentId, String> {
        let text: Arc<str> = object.to_string().into();
        if let Some(id) = self.ids.get(&text) {
            return Ok(*id);
        }
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES_MAX {
            return Err(format!(
                "the objects that the policies make in different orders have more than {} MiB; give a smaller object",
                BYTES_MAX >> 20
            ));
        }
        let id = DocumentId(self.texts.len());
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        Ok(id)
    }

    /// An object as JSON.
    pub(super) fn text(&self, id: DocumentId) -> Arc<str> {
        self.texts.get(id.0).cloned().unwrap_or_else(|| "null".into())
    }

    /// An object.
    pub(super) fn value(&self, id: DocumentId) -> Value {
        serde_json::from_str(&self.text(id)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_objects_have_one_id() {
        let mut documents = Documents::default();
        let first = documents.keep(&json!({"a": 1, "b": 2})).unwrap();
        let same = documents.keep(&serde_json::from_str(r#"{"b": 2, "a": 1}"#).unwrap()).unwrap();
        let other = documents.keep(&json!({"a": 1})).unwrap();
        assert_eq!((first, documents.value(first)), (same, json!({"a": 1, "b": 2})));
        assert_ne!(first, other);
    }

    #[test]
    fn objects_with_too_many_bytes_are_refused() {
        let mut documents = Documents::default();
        let large = |index: usize| Value::from(format!("{index}{}", "x".repeat(3 << 20)));
        let kept = (0..30).map(|index| documents.keep(&large(index)));
        let refused = kept.filter_map(Result::err).collect::<Vec<_>>();
        assert!(refused[0].contains("more than 64 MiB"), "{refused:?}");
    }
}
