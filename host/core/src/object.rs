//! One Kubernetes object as the host keeps it: raw JSON text, in caches compressed
//! ([`ObjectCompressor`]), and a small head.
//!
//! The host keeps no parsed tree: a parsed 1.5 KB Pod takes 15 KB, its text takes 1 KB. Decoding
//! takes `managedFields` out of the text (the head keeps the entries of the host's managers and the
//! names of the others) and drops `kubectl.kubernetes.io/last-applied-configuration`, which may
//! hold the values of a Secret.

mod compressor;
mod copied_keys;
mod decode;
mod error;
mod hidden_digests;
mod managed_fields;
pub(crate) mod raw_json;
mod secret;
mod shown_text;
mod text;
mod type_meta;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::{Labels, Manager, ObjectKey};

pub use compressor::ObjectCompressor;
pub use error::DecodeError;
pub use managed_fields::{Entry, Operation, OtherManager};
pub use secret::{SecretDigest, holds_secrets, is_token_type};
pub use shown_text::{is_hidden_annotation, shown_text};
pub use text::ObjectText;

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// The group and version of the owner.
    #[serde(deserialize_with = "shared_text")]
    pub api_version: Arc<str>,
    /// The kind of the owner.
    #[serde(deserialize_with = "shared_text")]
    pub kind: Arc<str>,
    /// The name of the owner.
    pub name: Box<str>,
    /// The uid of the owner.
    pub uid: Box<str>,
    /// Whether the owner is the controller.
    #[serde(default)]
    pub controller: bool,
}

/// Reads a text that objects can share.
fn shared_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Box::<str>::deserialize(deserializer).map(Arc::from)
}

/// An object: a head with the fields that the host reads often, and the text of the whole object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The uid.
    pub uid: Box<str>,
    /// The resource version, as the server wrote it. Compare [`Object::version`] instead, and only
    /// within one resource.
    pub resource_version: Box<str>,
    /// The generation; 0 where the kind has none.
    pub generation: i64,
    /// The labels.
    pub labels: Labels,
    /// The owners (controllers and others).
    pub owners: Box<[OwnerReference]>,
    /// `metadata.deletionTimestamp`, if the object is being deleted.
    pub deletion_timestamp: Option<Timestamp>,
    /// The finalizers.
    pub finalizers: Box<[Box<str>]>,
    /// The entries of the host's managers in `managedFields`.
    pub entries: Box<[Entry]>,
    /// The other managers in `managedFields`.
    pub other_managers: Box<[OtherManager]>,
    /// The whole object as JSON, without `managedFields` and the last-applied annotation.
    pub text: ObjectText,
}

impl Object {
    /// The resource version as a number; 0 if it is not one.
    ///
    /// Kubernetes 1.35 made versions comparable within one resource (KEP-5504, "comparable resource
    /// version").
    pub fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// The owner that is the controller.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// The uids of the object's owners, and of the primaries for which a module wrote to it: an
    /// object in another namespace, and one that a module only merges into, has no owner reference.
    pub fn owner_and_writer_uids(&self) -> BTreeSet<&str> {
        let owners = self.owners.iter().map(|owner| &*owner.uid);
        owners.chain(self.entries.iter().filter_map(|entry| entry.manager.uid())).collect()
    }

    /// Whether the primary with this uid owns the object, or its module made it. A merge into the
    /// object does not count, and neither does a write under the host's name that is no apply.
    pub fn is_made_for(&self, uid: &str) -> bool {
        let made = |entry: &Entry| {
            entry.is_apply()
                && matches!(&entry.manager, Manager::Primary { uid: maker, .. } if maker == uid)
        };
        self.owners.iter().any(|owner| *owner.uid == *uid) || self.entries.iter().any(made)
    }

    /// The `fieldsV1` text of the fields that a manager of the host owns by server-side apply,
    /// without those of subresources.
    pub fn applied_by(&self, manager: &Manager) -> Option<Cow<'_, str>> {
        self.apply_entry(manager).map(|entry| entry.fields.read())
    }

    /// Whether a manager of the host owns fields by server-side apply, without those of
    /// subresources.
    pub fn is_applied_by(&self, manager: &Manager) -> bool {
        self.apply_entry(manager).is_some()
    }

    fn apply_entry(&self, manager: &Manager) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.is_apply() && entry.manager == *manager)
    }

    /// The time of the last server-side apply by a manager of the host that changed the object, in
    /// seconds of Unix time; `None` if there is none, or its time cannot be read.
    pub fn applied_at(&self, manager: &Manager) -> Option<i64> {
        self.apply_entry(manager).map(|entry| entry.time).filter(|time| *time > 0)
    }

    /// The value of an annotation; `None` if the object does not have it.
    pub fn annotation(&self, name: &str) -> Option<String> {
        #[derive(Deserialize)]
        struct Head {
            metadata: Annotated,
        }
        #[derive(Deserialize)]
        struct Annotated {
            #[serde(default)]
            annotations: Option<BTreeMap<String, String>>,
        }
        // Most objects do not have the annotation: a search in the text is cheaper than a parse.
        let text = self.text.read();
        if !text.contains(name) {
            return None;
        }
        serde_json::from_str::<Head>(&text).ok()?.metadata.annotations?.remove(name)
    }

    /// Whether the object is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// How many bytes the object takes in a cache: its text and the text of the entries.
    pub fn bytes(&self) -> usize {
        self.text.stored_bytes()
            + self.entries.iter().map(|entry| entry.fields.stored_bytes()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;

    use super::*;

    fn decode(text: &str, digest: Option<&SecretDigest<'_>>) -> Result<Object, DecodeError> {
        Object::decode(&Kind::namespaced("apps/v1", "Deployment", "deployments"), text, digest)
    }

    const DEPLOYMENT: &str = r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{
        "name":"a","namespace":"n","uid":"u1","resourceVersion":"7","generation":2,
        "labels":{"app":"x"},
        "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{secret}","b":"c"},
        "ownerReferences":[{"apiVersion":"quay.io/v1alpha1","kind":"Podroute","name":"p","uid":"u0","controller":true}],
        "managedFields":[
          {"manager":"innkeeper/podroute/u0","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}}},
          {"manager":"kubectl","operation":"Update","apiVersion":"apps/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:paused":{}}},"subresource":"status"}]},
        "spec":{"replicas":3}}"#;

    #[test]
    fn decoded_head_has_versions_controller_and_managers() {
        let object = decode(DEPLOYMENT, None).unwrap();
        assert_eq!(object.key, ObjectKey::new("n", "a"));
        assert_eq!((object.version(), object.generation), (7, 2));
        assert_eq!(object.controller().unwrap().uid.as_ref(), "u0");
        assert_eq!(
            object.applied_by(&Manager::primary("podroute", "u0")),
            Some(r#"{"f:spec":{"f:replicas":{}}}"#.into())
        );
        assert_eq!(object.applied_by(&Manager::primary("podroute", "u1")), None);
        let applied_at = object.applied_at(&Manager::primary("podroute", "u0"));
        assert_eq!(applied_at, Some(1_767_225_600));
        assert_eq!(object.other_managers[0].name.as_ref(), "kubectl");
        assert_eq!(object.other_managers[0].subresource.as_ref(), "status");
    }

    #[test]
    fn unreadable_time_of_a_managed_fields_entry_is_none() {
        for time in [r#""time":"yesterday","#, r#""time":null,"#, ""] {
            let text = DEPLOYMENT.replacen(r#""time":"2026-01-01T00:00:00Z","#, time, 1);
            let object = decode(&text, None).unwrap();
            assert_eq!(object.applied_at(&Manager::primary("podroute", "u0")), None, "{time}");
        }
    }

    #[test]
    fn the_text_lacks_managed_fields_and_the_last_applied_annotation() {
        let object = decode(DEPLOYMENT, None).unwrap();
        let value: serde_json::Value = serde_json::from_str(&object.text.read()).unwrap();
        assert_eq!(value["metadata"].get("managedFields"), None);
        assert_eq!(value["metadata"]["annotations"], serde_json::json!({"b": "c"}));
        assert_eq!(value["spec"]["replicas"], 3);
        assert!(!object.text.read().contains("secret"));
    }

    #[test]
    fn the_values_of_a_secret_are_replaced() {
        let text = r#"{"metadata":{"name":"s","namespace":"n"},"data":{"password":"aHVudGVyMg=="},"type":"Opaque"}"#;
        let object = redacted(&Kind::namespaced("v1", "Secret", "secrets"), text).unwrap();
        assert_eq!(
            object.text.read(),
            r#"{"data":{"password":"n/s/password/12"},"metadata":{"name":"s","namespace":"n"},"type":"Opaque","apiVersion":"v1","kind":"Secret"}"#
        );
    }

    fn redacted(kind: &Kind, text: &str) -> Result<Object, DecodeError> {
        let digest: &SecretDigest<'_> = &|key, name, value| format!("{key}/{name}/{}", value.len());
        Object::decode(kind, text, Some(digest))
    }

    #[test]
    fn a_secret_is_redacted_whatever_its_kind_or_resource_is_called() {
        let item = r#"{"metadata":{"name":"s","namespace":"n"},"data":{"a":"aHVudGVyMg=="},"stringData":{"b":"hunter2"}}"#;
        for kind in [
            Kind::namespaced("v1", "Secret", "secrets"),
            Kind::namespaced("v1", "Sekret", "secrets"),
            Kind::namespaced("v1", "ConfigMap", "secrets"),
            Kind::namespaced("v1", "Secret", "configmaps"),
            Kind::cluster("v1", "SECRET", "secrets"),
            Kind::namespaced("v2", "Secret", "secrets"),
        ] {
            let object = redacted(&kind, item).unwrap();
            assert!(
                !object.text.read().contains("aHVudGVyMg=="),
                "{kind:?}: {}",
                object.text.read()
            );
            assert!(!object.text.read().contains("hunter2"), "{kind:?}: {}", object.text.read());
        }
        let map = redacted(&Kind::namespaced("v1", "ConfigMap", "configmaps"), item).unwrap();
        assert!(
            map.text.read().contains("hunter2"),
            "a ConfigMap is given whole: {}",
            map.text.read()
        );
    }

    #[test]
    fn an_object_of_another_kind_is_refused_and_redacted_where_it_is_a_secret() {
        let foo = Kind::namespaced("x.example.com/v1", "Foo", "foos");
        for type_meta in [
            r#""apiVersion":"v1","kind":"Secret""#,
            r#""kind":"Secret","apiVersion":"v1""#,
            r#""apiVersion":"v1","kind":"\u0053ecret""#,
            r#""apiVersion":"x.example.com/v2","kind":"Foo""#,
            r#""apiVersion":"x.example.com/v1","kind":"foo""#,
            r#""kind":"Bar""#,
        ] {
            let text =
                format!(r#"{{{type_meta},"metadata":{{"name":"s"}},"data":{{"a":"hunter2"}}}}"#);
            let error = redacted(&foo, &text).unwrap_err();
            assert!(matches!(error, DecodeError::OtherKind { .. }), "{type_meta}: {error}");
            assert!(!error.to_string().contains("hunter2"));
        }
        let secret = Kind::namespaced("v1", "Secret", "secrets");
        let escaped = r#"{"apiVersion":"v1","kind":"\u0053ecret","\u0064ata":{"a":"hunter2"}}"#;
        assert!(!redacted(&secret, escaped).unwrap().text.read().contains("hunter2"));
        let nested = r#"{"metadata":{"name":"s"},"data":{"a":{"b":"hunter2"}}}"#;
        let error = redacted(&secret, nested).unwrap_err().to_string();
        assert_eq!(error, "a Secret whose data is not a map of texts");
    }

    #[test]
    fn partial_object_metadata_is_decoded_as_any_kind() {
        let text = r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}"#;
        assert_eq!(decode(text, None).unwrap().key.name(), "a");
        let text = text.replace("meta.k8s.io/v1", "v1");
        assert!(decode(&text, None).is_err());
    }

    #[test]
    fn object_without_metadata_is_decoded_and_other_text_is_refused() {
        assert_eq!(
            decode("{}", None).unwrap().text.read(),
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{}}"#
        );
        for garbage in ["", "[]", "{\"metadata\":3}", "nul", "{\"metadata\":{\"labels\":[]}}"] {
            assert!(decode(garbage, None).is_err(), "{garbage}");
        }
    }
}
