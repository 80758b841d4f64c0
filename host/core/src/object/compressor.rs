//! Objects of one kind in little memory: [`ObjectCompressor`].

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use super::text::{self, ObjectText};
use super::{Entry, Object};

/// The most texts that new objects share.
const SHARED_MAX: usize = 64;

/// The most bytes of a text that objects share.
const SHARED_BYTES_MAX: usize = 128;

/// The most bytes of a dictionary of objects. LZ4 refers to the last 64 KiB only.
const TEXT_DICTIONARY_BYTES_MAX: usize = 32 << 10;

/// The most bytes of a dictionary of `fieldsV1` documents.
const FIELDS_DICTIONARY_BYTES_MAX: usize = 4 << 10;

/// The most entries of one object that are compressed. An object has one for each of its modules.
const ENTRIES_MAX: usize = 16;

/// A compressed text is poor if it is longer than half of the original. After this many poor ones
/// in a row, the dictionary is renewed.
const POOR_MAX: u32 = 32;

/// The most dictionaries that live at the same time: of one that was renewed, some texts may need
/// the former ones for as long as they are kept.
const DICTIONARIES_MAX: usize = 16;

/// Makes objects of one kind small, for as long as they are kept: compresses their texts, since
/// such objects have most of theirs in common, and lets them share equal parts of their heads.
#[derive(Debug)]
pub struct ObjectCompressor {
    texts: TextCompressor,
    /// Compresses what the host's entries of `managedFields` name. These differ between objects
    /// too, by the uids of the owners.
    fields: TextCompressor,
    shared: SharedTexts,
}

impl Default for ObjectCompressor {
    fn default() -> Self {
        Self {
            texts: TextCompressor::new(TEXT_DICTIONARY_BYTES_MAX),
            fields: TextCompressor::new(FIELDS_DICTIONARY_BYTES_MAX),
            shared: SharedTexts::default(),
        }
    }
}

impl ObjectCompressor {
    /// The same object, equal to the given one, in less memory.
    pub fn compress(&mut self, mut object: Object) -> Object {
        for Entry { fields, .. } in object.entries.iter_mut().take(ENTRIES_MAX) {
            self.fields.compress(fields);
        }
        for owner in &mut object.owners {
            self.shared.replace(&mut owner.api_version);
            self.shared.replace(&mut owner.kind);
        }
        for other in &mut object.other_managers {
            self.shared.replace(&mut other.name);
            self.shared.replace(&mut other.subresource);
        }
        self.texts.compress(&mut object.text);
        object
    }

    /// The bytes of all dictionaries that live.
    pub fn dictionary_bytes(&self) -> usize {
        self.texts.dictionary_bytes() + self.fields.dictionary_bytes()
    }
}

/// Compresses texts that have much in common.
#[derive(Debug)]
struct TextCompressor {
    /// The most bytes of a dictionary.
    bytes_max: usize,
    /// The beginning of one of the texts.
    dictionary: Option<Arc<str>>,
    /// The dictionaries before it that texts still need.
    former: Vec<Weak<str>>,
    /// How many poor texts there were in a row.
    poor: u32,
}

impl TextCompressor {
    fn new(bytes_max: usize) -> Self {
        Self { bytes_max, dictionary: None, former: Vec::new(), poor: 0 }
    }

    fn compress(&mut self, text: &mut ObjectText) {
        if !text.is_compressible() {
            return;
        }
        if let Some(compressed) = text.compressed(&self.dictionary_for(text)) {
            *text = compressed;
        }
        self.poor = if text.stored_bytes() * 2 > text.len() { self.poor + 1 } else { 0 };
    }

    /// The dictionary, renewed by this text if that is due.
    fn dictionary_for(&mut self, text: &ObjectText) -> Arc<str> {
        if let Some(dictionary) = &self.dictionary {
            if self.poor < POOR_MAX {
                return dictionary.clone();
            }
            self.poor = 0;
            self.former.retain(|former| former.strong_count() > 0);
            if self.former.len() + 1 >= DICTIONARIES_MAX {
                return dictionary.clone();
            }
            self.former.push(Arc::downgrade(dictionary));
        }
        let dictionary = text::dictionary(&text.read(), self.bytes_max);
        self.dictionary.insert(dictionary).clone()
    }

    fn dictionary_bytes(&self) -> usize {
        let former = self.former.iter().filter_map(Weak::upgrade);
        former.chain(self.dictionary.clone()).map(|dictionary| dictionary.len()).sum()
    }
}

/// Texts of which new objects share one each. Kinds and managers have few.
#[derive(Debug, Default)]
struct SharedTexts(BTreeSet<Arc<str>>);

impl SharedTexts {
    /// Puts the shared text in place of an equal one.
    fn replace(&mut self, text: &mut Arc<str>) {
        if text.len() > SHARED_BYTES_MAX {
            return;
        }
        if let Some(shared) = self.0.get(text) {
            text.clone_from(shared);
            return;
        }
        // Objects keep what they share.
        if self.0.len() >= SHARED_MAX {
            self.0.clear();
        }
        self.0.insert(text.clone());
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use serde_json::json;

    use super::*;

    fn deployment(name: &str, image: &str) -> Object {
        let text = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "n", "uid": format!("uid-of-{name}"),
                "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Web", "name": name, "uid": "u"}],
                "managedFields": [
                    {"manager": "innkeeper/web/u", "operation": "Apply", "apiVersion": "apps/v1",
                     "fieldsV1": {"f:metadata": {"f:ownerReferences": {
                        format!("k:{{\"uid\":\"{name}\"}}"): {}}}, "f:spec": {"f:replicas": {},
                        "f:selector": {}, "f:template": {"f:spec": {"f:containers": {}}}}}},
                    {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
                     "apiVersion": "apps/v1", "fieldsV1": {}}]},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "web", "image": image}]}}}});
        let kind = Kind::namespaced("apps/v1", "Deployment", "deployments");
        Object::decode(&kind, &text.to_string(), None).unwrap()
    }

    #[test]
    fn objects_stay_equal_and_those_of_a_kind_take_a_fraction() {
        let mut compressor = ObjectCompressor::default();
        let plain: Vec<_> = (0..100).map(|n| deployment(&format!("web-{n}"), "nginx")).collect();
        let small: Vec<_> = plain.iter().map(|one| compressor.compress(one.clone())).collect();
        assert_eq!(small, plain);
        let bytes = |all: &[Object]| all.iter().map(|one| one.text.stored_bytes()).sum::<usize>();
        assert!(bytes(&small) * 3 < bytes(&plain), "{} of {}", bytes(&small), bytes(&plain));
        let fields = |all: &[Object]| {
            all.iter().map(|one| one.entries[0].fields.stored_bytes()).sum::<usize>()
        };
        assert!(fields(&small) * 2 < fields(&plain), "{} of {}", fields(&small), fields(&plain));
        assert!(Arc::ptr_eq(&small[0].owners[0].kind, &small[99].owners[0].kind));
    }

    #[test]
    fn dictionary_is_renewed_when_it_hardly_shortens_texts_any_more() {
        let mut compressor = ObjectCompressor::default();
        let noise = |seed: u64| {
            let mut rng = fastrand::Rng::with_seed(seed);
            std::iter::repeat_with(|| rng.alphanumeric()).take(2_000).collect::<String>()
        };
        compressor.compress(deployment("first", "nginx"));
        // What all later objects have in common is unlike the first one.
        let image = noise(1);
        let later: Vec<_> =
            (0..64).map(|n| compressor.compress(deployment(&n.to_string(), &image))).collect();
        let last = later.last().unwrap();
        assert!(last.text.stored_bytes() * 5 < last.text.len());
    }

    #[test]
    fn dictionaries_that_live_are_few_however_often_they_are_renewed() {
        let mut compressor = ObjectCompressor::default();
        let mut rng = fastrand::Rng::with_seed(18);
        let noise = |rng: &mut fastrand::Rng, bytes: usize| -> String {
            std::iter::repeat_with(|| rng.alphanumeric()).take(bytes).collect()
        };
        let mut kept = Vec::new();
        for _ in 0..64 {
            for _ in 0..POOR_MAX {
                compressor.compress(deployment("noise", &noise(&mut rng, 400)));
            }
            // The next text becomes the dictionary, and one that keeps it alive follows.
            let image = noise(&mut rng, 40_000);
            compressor.compress(deployment("large", &image));
            kept.push(compressor.compress(deployment("small", &image[..300])));
        }
        let bytes_max =
            (TEXT_DICTIONARY_BYTES_MAX + FIELDS_DICTIONARY_BYTES_MAX) * DICTIONARIES_MAX;
        let bytes = compressor.dictionary_bytes();
        assert!(bytes <= bytes_max && bytes > bytes_max / 4, "{bytes}");
        // Once nobody needs them, there is room for others.
        drop(kept);
        assert!(compressor.dictionary_bytes() < bytes);
    }

    #[test]
    fn object_with_very_many_entries_has_few_of_them_compressed() {
        let mut object = deployment("web", "nginx");
        let long = ObjectText::from("{\"f:a\":{}}".repeat(100));
        let entry = Entry { fields: long, ..object.entries[0].clone() };
        object.entries = vec![entry; ENTRIES_MAX * 3].into();
        let small = ObjectCompressor::default().compress(object.clone());
        assert_eq!(small, object);
        let is_small = |entry: &&Entry| entry.fields.stored_bytes() < entry.fields.len();
        assert_eq!(small.entries.iter().filter(is_small).count(), ENTRIES_MAX);
    }

    #[test]
    fn shared_texts_are_few_and_short() {
        let mut shared = SharedTexts::default();
        for number in 0..SHARED_MAX * 3 {
            let mut text: Arc<str> = number.to_string().into();
            shared.replace(&mut text);
            assert_eq!(*text, *number.to_string());
            let mut same: Arc<str> = number.to_string().into();
            shared.replace(&mut same);
            assert!(Arc::ptr_eq(&text, &same));
            assert!(shared.0.len() <= SHARED_MAX);
        }
        let before = shared.0.len();
        shared.replace(&mut "k".repeat(SHARED_BYTES_MAX + 1).into());
        assert_eq!(shared.0.len(), before);
    }
}
