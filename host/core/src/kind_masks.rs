//! The masks of the kinds that a guest reads: `readFields` of its manifest, and of its answers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use innkeeper_contract::{Kind, Manifest, ReadFields};

use crate::field_mask::FieldMaskError;
use crate::{FieldMask, Object, foreign};

/// The most bytes of memory of all masks of a guest.
pub const MASKS_BYTES_MAX: usize = 1 << 20;

/// The longest quoted name, in bytes.
const NAME_BYTES_MAX: usize = 80;

/// The fields by which a guest recognizes an object: it gets them in any case.
const IDENTITY: [&[&str]; 5] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
];

/// A mask for each of some kinds, by group and version, and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindMasks(BTreeMap<(Box<str>, Box<str>), FieldMask>);

/// Why `readFields` gives no masks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindMasksError {
    /// A kind is not in the manifest.
    #[error("readFields[{index}]: the manifest does not name {kind}; add the kind to `reads`")]
    Undeclared {
        /// Its position in the list.
        index: usize,
        /// The kind, in visible characters.
        kind: String,
    },
    /// A kind is in the list twice.
    #[error("readFields[{index}]: {kind} is named twice")]
    Duplicate {
        /// The position of the second.
        index: usize,
        /// The kind.
        kind: String,
    },
    /// A mask is not of the format, or beyond a limit.
    #[error("readFields[{index}].fields: {error}")]
    Mask {
        /// Its position in the list.
        index: usize,
        /// What is wrong with it.
        error: FieldMaskError,
    },
    /// The masks take too much memory.
    #[error(
        "readFields: the fields take {bytes} bytes of memory, and at most {MASKS_BYTES_MAX} are allowed; name whole fields instead"
    )]
    TooLarge {
        /// The approximate bytes.
        bytes: usize,
    },
}

impl KindMasks {
    /// Reads the masks of a guest with this manifest.
    ///
    /// # Errors
    /// What is wrong with the first entry that cannot be used.
    pub fn read(all: &[ReadFields], manifest: &Manifest) -> Result<Self, KindMasksError> {
        let mut masks = BTreeMap::new();
        for (index, one) in all.iter().enumerate() {
            let name = || {
                let name = format!("{} {}", one.api_version, one.kind);
                foreign::one_line(name, NAME_BYTES_MAX)
            };
            if !declares(manifest, &one.api_version, &one.kind) {
                return Err(KindMasksError::Undeclared { index, kind: name() });
            }
            let mask = FieldMask::read(&one.fields)
                .map_err(|error| KindMasksError::Mask { index, error })?;
            let kind = (one.api_version.as_str().into(), one.kind.as_str().into());
            if masks.insert(kind, mask).is_some() {
                return Err(KindMasksError::Duplicate { index, kind: name() });
            }
        }
        let masks = Self(masks);
        match masks.bytes() {
            bytes if bytes > MASKS_BYTES_MAX => Err(KindMasksError::TooLarge { bytes }),
            _ => Ok(masks),
        }
    }

    /// The mask of a kind, if there is one.
    pub fn get(&self, kind: &Kind) -> Option<&FieldMask> {
        // A list has few kinds, and a lookup by key would allocate two texts.
        self.0
            .iter()
            .find(|((api_version, name), _)| {
                **api_version == *kind.api_version && **name == *kind.kind
            })
            .map(|(_, mask)| mask)
    }

    /// An object as a guest may see it, with the fields of the mask of its kind only. Digests of
    /// copied values are removed first, since the annotation that names them may be outside the
    /// mask.
    pub fn shown<'o>(&self, kind: &Kind, object: &'o Object) -> Cow<'o, Object> {
        let Some(mask) = self.get(kind) else { return Cow::Borrowed(object) };
        // An object that cannot be read shows nothing at all.
        let text = mask.prune(&object.guest_text()).unwrap_or_else(|_| "{}".to_owned());
        Cow::Owned(Object { text: text.into(), ..object.clone() })
    }

    /// Whether the masks keep everything that others keep. May be false although they do.
    pub fn contain(&self, others: &Self) -> bool {
        let mut others = others.0.iter();
        others.all(|(kind, mask)| self.0.get(kind).is_some_and(|own| own.contains(mask)))
    }

    /// Adds the fields of other masks to those of the same kinds, and adds their other kinds.
    pub fn add(&mut self, others: &Self) {
        for (kind, mask) in &others.0 {
            match self.0.get_mut(kind) {
                Some(own) if own.contains(mask) => {}
                Some(own) => *own = own.union(mask),
                None => drop(self.0.insert(kind.clone(), mask.clone())),
            }
        }
    }

    /// The fields that a guest gets of the kinds of its manifest: those that it names, and those of
    /// the identity. Without masks for a manifest whose masks cannot be used.
    pub fn of_manifest(manifest: &Manifest) -> Self {
        let Self(masks) = Self::read(&manifest.read_fields, manifest).unwrap_or_default();
        let identity = FieldMask::of_paths(&IDENTITY);
        let masks = masks.into_iter().map(|(kind, mask)| (kind, mask.with_few(&identity)));
        Self(masks.collect())
    }

    /// The approximate bytes of memory.
    pub fn bytes(&self) -> usize {
        let of_kind = |((api_version, kind), mask): (&(Box<str>, Box<str>), &FieldMask)| {
            api_version.len() + kind.len() + mask.bytes()
        };
        self.0.iter().map(of_kind).sum()
    }
}

/// Whether a manifest names a kind: as the primary, as owned, or as read.
pub fn declares(manifest: &Manifest, api_version: &str, kind: &str) -> bool {
    let owned = manifest.owned.iter().map(|owned| &owned.kind);
    manifest
        .primary
        .iter()
        .chain(owned)
        .chain(&manifest.reads)
        .any(|one| one.api_version == api_version && one.kind == kind)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::well_known::COPIED_KEYS_ANNOTATION;

    fn manifest() -> Manifest {
        serde_json::from_value(json!({"name": "x",
            "primary": {"apiVersion": "example.com/v1", "kind": "Web", "plural": "webs"},
            "owned": [{"kind": {"apiVersion": "apps/v1", "kind": "Deployment", "plural": "deployments"}}],
            "reads": [{"apiVersion": "v1", "kind": "Pod", "plural": "pods"}]}))
        .unwrap()
    }

    fn read(all: &Value) -> Result<KindMasks, String> {
        let all: Vec<ReadFields> = serde_json::from_value(all.clone()).unwrap();
        KindMasks::read(&all, &manifest()).map_err(|error| error.to_string())
    }

    fn fields(kind: &str, fields: &Value) -> Value {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
        json!({"apiVersion": api_version, "kind": kind, "fields": fields})
    }

    #[test]
    fn masks_are_those_of_the_kinds_of_the_manifest() {
        let masks = read(&json!([fields("Pod", &json!({"f:status": {}}))])).unwrap();
        let status = FieldMask::of_paths(&[&["status"]]);
        assert_eq!(masks.get(&Kind::namespaced("v1", "Pod", "pods")), Some(&status));
        assert_eq!(masks.get(&Kind::namespaced("apps/v1", "Deployment", "deployments")), None);
    }

    #[test]
    fn kind_that_is_unknown_or_named_twice_and_malformed_mask_are_refused() {
        let status = json!({"f:status": {}});
        for (all, message) in [
            (
                json!([fields("Pods", &status)]),
                "readFields[0]: the manifest does not name apps/v1 Pods",
            ),
            (
                json!([fields("Pod", &status), fields("Pod", &status)]),
                "readFields[1]: v1 Pod is named twice",
            ),
            (
                json!([fields("Pod", &json!({"status": {}}))]),
                "readFields[0].fields: `.` has the element `status`",
            ),
            (json!([fields("\u{202e}", &status)]), "does not name apps/v1 \\u{202e}"),
        ] {
            let error = read(&all).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn secret_is_shown_within_its_mask_without_the_digests_of_copied_values() {
        let secret = Kind::namespaced("v1", "Secret", "secrets");
        let manifest: Manifest = serde_json::from_value(json!({"name": "x", "reads": [secret],
            "readFields": [{"apiVersion": "v1", "kind": "Secret", "fields": {"f:data": {}}}]}))
        .unwrap();
        let digest = |_: &crate::ObjectKey, name: &str, _: &str| format!("digest-{name}");
        let text = json!({"metadata": {"name": "s", "namespace": "n", "uid": "u", "labels": {"a": "b"},
            "annotations": {COPIED_KEYS_ANNOTATION: "[\"copied\"]"}}, "type": "Opaque",
            "data": {"copied": "eA==", "own": "eA=="}});
        let object = Object::decode(&secret, &text.to_string(), Some(&digest)).unwrap();
        let shown = KindMasks::of_manifest(&manifest).shown(&secret, &object).into_owned();
        let shown: Value = serde_json::from_str(&shown.guest_text()).unwrap();
        let metadata = json!({"name": "s", "namespace": "n", "uid": "u"});
        assert_eq!((&shown["metadata"], &shown["kind"]), (&metadata, &json!("Secret")));
        assert_eq!(shown["data"]["own"], "digest-own");
        assert!(!shown.to_string().contains("digest-copied"), "{shown}");
        assert_eq!(shown.get("type"), None);
    }

    #[test]
    fn added_masks_are_united_by_kind() {
        let mut masks = read(&json!([fields("Pod", &json!({"f:status": {}}))])).unwrap();
        let bytes = masks.bytes();
        masks.add(
            &read(&json!([
                fields("Pod", &json!({"f:spec": {}})),
                fields("Deployment", &json!({}))
            ]))
            .unwrap(),
        );
        let pod = masks.get(&Kind::namespaced("v1", "Pod", "pods")).unwrap();
        assert_eq!(*pod, FieldMask::of_paths(&[&["status"], &["spec"]]));
        assert!(
            masks
                .get(&Kind::namespaced("apps/v1", "Deployment", "deployments"))
                .unwrap()
                .is_whole()
        );
        assert!(masks.bytes() > bytes);
        assert!(masks.contain(&masks.clone()) && !masks.contain(&read_all()));
    }

    /// Masks of which no other ones contain each.
    fn read_all() -> KindMasks {
        read(&json!([fields("Pod", &json!({})), fields("Deployment", &json!({}))])).unwrap()
    }

    #[test]
    fn mask_at_the_limit_shows_its_fields_and_the_identity_only() {
        let pods = Kind::namespaced("v1", "Pod", "pods");
        let text = json!({"metadata": {"name": "p", "namespace": "n", "annotations": {"a": "b"}},
            "spec": {"x": 1}, "status": {"f1": 1, "other": {"f2": 2, "g": 3}}});
        let pod = Object::decode(&pods, &text.to_string(), None).unwrap();
        for (elements, fields) in [
            (4_096, json!({"f:status": numbered(4_095)})),
            (4_091, json!({"f:status": numbered(4_090)})),
            (4_095, json!({"*": {"*": numbered(4_093)}})),
        ] {
            let mut manifest = manifest();
            let of_pod = fields_of(&fields);
            manifest.read_fields = serde_json::from_value(json!([of_pod])).unwrap();
            let read = KindMasks::read(&manifest.read_fields, &manifest);
            assert!(read.is_ok(), "{elements}: {read:?}");
            let masks = KindMasks::of_manifest(&manifest);
            let shown: Value = serde_json::from_str(&masks.shown(&pods, &pod).text.read()).unwrap();
            assert_eq!(shown["metadata"]["name"], "p", "{elements}");
            assert_eq!(shown["metadata"].get("annotations").and_then(|all| all.get("a")), None);
            assert_eq!(shown.pointer("/status/other/g"), None, "{elements}");
        }
    }

    fn numbered(count: usize) -> Value {
        let all = (0..count).map(|number| (format!("f:f{number}"), json!({})));
        Value::Object(all.collect())
    }

    fn fields_of(mask: &Value) -> Value {
        fields("Pod", mask)
    }

    #[test]
    fn masks_that_take_much_memory_together_are_refused() {
        // Each is a path of its own, with a map at each of its elements.
        let path = |number: usize| {
            let mut below = json!({});
            for depth in 0..14 {
                below = json!({format!("f:{depth}"): below});
            }
            (format!("f:{number}"), below)
        };
        let wide: serde_json::Map<String, Value> = (0..200).map(path).collect();
        let message = read(&json!([fields("Pod", &wide.into())])).unwrap_err();
        assert!(message.contains("bytes of memory"), "{message}");
    }
}
