//! One Kubernetes object as the host keeps it: raw JSON text and a small head.
//!
//! Never a parsed tree: a parsed 1.5 KB pod takes 15 KB, its text takes 1. Decoding takes
//! `managedFields` out of the text (of it the head keeps our own entries and the names of
//! the other managers) and drops `kubectl.kubernetes.io/last-applied-configuration`, which
//! may hold a Secret's values.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::well_known::APPLIED_ANNOTATION;
use crate::{Labels, Manager, foreign};
use innkeeper_contract::Kind;

/// The annotation that is dropped from every object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Namespace and name. Orders by namespace, then name. A clone costs nothing, since an index
/// of many objects is made of many keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(
    /// The namespace, a NUL, and the name: a NUL is smaller than whatever a namespace may hold,
    /// so that the text orders as the pair does.
    Arc<str>,
);

impl ObjectKey {
    /// The key of an object; `namespace` empty for cluster-scoped ones.
    ///
    /// Kubernetes allows no NUL in a namespace; one that comes all the same ends it.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self([namespace, "\0", name].concat().into())
    }

    /// The namespace; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.parts().0
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once('\0').unwrap_or_default()
    }
}

impl Default for ObjectKey {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl std::fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({self})")
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parts() {
            ("", name) => f.write_str(name),
            (namespace, name) => write!(f, "{namespace}/{name}"),
        }
    }
}

/// The controller of an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version.
    pub api_version: Box<str>,
    /// Kind.
    pub kind: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Uid.
    pub uid: Box<str>,
    /// Whether it is the controller.
    #[serde(default)]
    pub controller: bool,
}

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// By anything else.
    Update,
}

/// An entry of `managedFields` that is ours, with its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The manager.
    pub manager: Manager,
    /// Apply, or Update where somebody used our name otherwise.
    pub operation: Operation,
    /// Empty for the object itself, else the subresource (`status`).
    pub subresource: Box<str>,
    /// The `fieldsV1` document, as the server wrote it.
    pub fields: Box<str>,
}

/// An entry of `managedFields` that is somebody else's: fields are not kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OtherManager {
    /// When it last wrote; as the server wrote it (RFC 3339), empty if it did not say.
    pub time: Box<str>,
    /// The manager's name.
    pub name: Box<str>,
    /// Empty for the object itself, else the subresource.
    pub subresource: Box<str>,
}

/// An object: what the host needs at hand, and the text of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The uid.
    pub uid: Box<str>,
    /// The version, as the server wrote it. Compare by [`Object::version`], within one resource
    /// only.
    pub resource_version: Box<str>,
    /// The generation; 0 where the kind has none.
    pub generation: i64,
    /// The labels.
    pub labels: Labels,
    /// The owners (controllers and others).
    pub owners: Box<[Owner]>,
    /// When deletion was asked for, if it was.
    pub deletion: Option<Timestamp>,
    /// The finalizers.
    pub finalizers: Box<[Box<str>]>,
    /// Our entries of `managedFields`.
    pub entries: Box<[Entry]>,
    /// The other managers.
    pub others: Box<[OtherManager]>,
    /// The whole object as JSON, without `managedFields` and the last-applied annotation.
    pub text: Box<str>,
}

/// Why a text is not an object.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is not JSON, or a member of `metadata` has another type than Kubernetes gives it.
    #[error("not a Kubernetes object: {0}")]
    Json(#[from] serde_json::Error),
    /// It is a Secret whose `data` or `stringData` maps names to something else than texts. The
    /// error quotes nothing: it might quote a value.
    #[error("a Secret whose data is not a map of texts")]
    Secret,
    /// It says that it is of another kind than the one that was asked for.
    #[error("the object says that it is {received}, but {requested} was asked for")]
    OtherKind {
        /// Its own group, version and kind.
        received: Box<str>,
        /// The kind that was asked for.
        requested: Box<str>,
    },
    /// It lies in a namespace although its kind has none, or in none although its kind has one.
    #[error("the object lies in namespace {namespace:?}, but {requested} has scope {scope}")]
    OtherScope {
        /// Its namespace.
        namespace: Box<str>,
        /// The kind that was asked for.
        requested: Box<str>,
        /// The scope of that kind.
        scope: &'static str,
    },
}

/// The kind of objects that hold metadata only, as the API server names it when it is asked for
/// these.
const METADATA_KIND: &str = "PartialObjectMetadata";

/// How much of an object's own kind an error quotes, in bytes.
const RECEIVED_BYTES_MAX: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(default, borrow)]
    namespace: Cow<'a, str>,
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default)]
    generation: i64,
    #[serde(default)]
    labels: Option<Labels>,
    #[serde(default)]
    owner_references: Option<Box<[Owner]>>,
    #[serde(default)]
    deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    finalizers: Option<Box<[Box<str>]>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEntry<'a> {
    #[serde(default, borrow)]
    manager: Cow<'a, str>,
    operation: Operation,
    #[serde(default)]
    time: Option<Box<str>>,
    #[serde(default)]
    subresource: Box<str>,
    #[serde(default, rename = "fieldsV1", borrow)]
    fields: Option<&'a RawValue>,
}

/// Gives what stands for one value of a Secret: takes the Secret's key, the name of the
/// value, and the value as it stands in the object (base64 in `data`).
pub type Digest<'a> = dyn Fn(&ObjectKey, &str, &str) -> String + 'a;

impl Object {
    /// Reads an object as the API server writes it.
    ///
    /// `kind` goes into the text where the server left it out, as it does in lists. With `digest`
    /// each value of `data` and `stringData` of a Secret is replaced by what it answers, so that a
    /// Secret's bytes are never kept. The resource ([`holds_secrets`]) and the object's own kind
    /// decide what is a Secret: either is enough.
    ///
    /// # Errors
    /// If the text is not an object, or says that it is of another kind than `kind`.
    pub fn decode(
        kind: &Kind,
        text: &str,
        digest: Option<&Digest<'_>>,
    ) -> Result<Self, DecodeError> {
        let members: Members<'_> = serde_json::from_str(text)?;
        let own = OwnKind::of(&members)?;
        own.check(kind)?;
        let metadata_text = members.get("metadata").map_or("{}", |metadata| metadata.get());
        let metadata: Metadata<'_> = serde_json::from_str(metadata_text)?;
        let key = ObjectKey::new(&metadata.namespace, &metadata.name);

        let mut metadata_members: Members<'_> = serde_json::from_str(metadata_text)?;
        let (entries, others) = match metadata_members.remove("managedFields") {
            Some(fields) => split_managers(fields)?,
            None => Default::default(),
        };
        let mut replaced: BTreeMap<&str, String> = BTreeMap::new();
        if let Some(annotations) = metadata_members.get("annotations")
            && annotations.get().contains(LAST_APPLIED)
        {
            let mut map: BTreeMap<String, String> = serde_json::from_str(annotations.get())?;
            map.remove(LAST_APPLIED);
            replaced.insert("annotations", serde_json::to_string(&map)?);
        }
        let metadata_text = join(&metadata_members, &replaced, metadata_text.len());

        let mut replaced = BTreeMap::from([("metadata", metadata_text)]);
        for (name, value) in [("apiVersion", &kind.api_version), ("kind", &kind.kind)] {
            if !members.contains_key(name) {
                replaced.insert(name, quoted(value));
            }
        }
        if let Some(digest) = digest.filter(|_| holds_secrets(kind) || own.is_secret()) {
            for name in ["data", "stringData"] {
                if let Some(values) = members.get(name) {
                    let values: Option<BTreeMap<String, String>> =
                        serde_json::from_str(values.get()).map_err(|_| DecodeError::Secret)?;
                    let values: BTreeMap<_, _> = values
                        .unwrap_or_default()
                        .into_iter()
                        .map(|(name, value)| {
                            let digest = digest(&key, &name, &value);
                            (name, digest)
                        })
                        .collect();
                    replaced.insert(name, serde_json::to_string(&values)?);
                }
            }
        }
        Ok(Self {
            key,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            labels: metadata.labels.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default(),
            deletion: metadata.deletion_timestamp,
            finalizers: metadata.finalizers.unwrap_or_default(),
            entries,
            others,
            text: join(&members, &replaced, text.len()).into(),
        })
    }

    /// The text as a guest may see it: of a Secret without the digests of what was applied, from
    /// which a short value could be guessed, since no key is in them.
    pub fn shown(&self) -> Cow<'_, str> {
        let may_be_secret = self.text.contains(r#""kind":"Secret""#);
        let shown = (may_be_secret && self.text.contains(APPLIED_ANNOTATION))
            .then(|| self.without_applied().ok().flatten())
            .flatten();
        shown.map_or(Cow::Borrowed(&*self.text), Cow::Owned)
    }

    /// The text without the digests of what was applied; `None` if it is no Secret, or has none.
    fn without_applied(&self) -> Result<Option<String>, serde_json::Error> {
        let members: Members<'_> = serde_json::from_str(&self.text)?;
        if !OwnKind::of(&members).is_ok_and(|own| own.is_secret()) {
            return Ok(None);
        }
        let Some(metadata) = members.get("metadata") else { return Ok(None) };
        let metadata_members: Members<'_> = serde_json::from_str(metadata.get())?;
        let Some(annotations) = metadata_members.get("annotations") else { return Ok(None) };
        let mut annotations: BTreeMap<String, String> = serde_json::from_str(annotations.get())?;
        annotations.retain(|name, _| !name.starts_with(APPLIED_ANNOTATION));
        let replaced = BTreeMap::from([("annotations", serde_json::to_string(&annotations)?)]);
        let metadata = join(&metadata_members, &replaced, metadata.get().len());
        Ok(Some(join(&members, &BTreeMap::from([("metadata", metadata)]), self.text.len())))
    }

    /// The version as a number; 0 if the server wrote something else.
    ///
    /// Kubernetes 1.35 made versions comparable within one resource
    /// (KEP-5504, "comparable resource version").
    pub fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// The owner that is the controller.
    pub fn controller(&self) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.controller)
    }

    /// The uids of what owns it, and of the primaries that wrote to it: an object that has no
    /// owner (since it may have none, or since it is only merged into) is found by these.
    pub fn makers(&self) -> BTreeSet<&str> {
        let owners = self.owners.iter().map(|owner| &*owner.uid);
        owners.chain(self.entries.iter().filter_map(|entry| entry.manager.uid())).collect()
    }

    /// Whether a primary owns or made it: one that was only merged into is somebody else's, and so
    /// is one where somebody used our name otherwise than by an apply.
    pub fn is_made_for(&self, uid: &str) -> bool {
        let made = |entry: &Entry| {
            entry.operation == Operation::Apply
                && entry.subresource.is_empty()
                && matches!(&entry.manager, Manager::Primary { uid: maker, .. } if maker == uid)
        };
        self.owners.iter().any(|owner| *owner.uid == *uid) || self.entries.iter().any(made)
    }

    /// The fields that a manager of ours holds by apply on the object itself.
    pub fn applied_by(&self, manager: &Manager) -> Option<&str> {
        self.entries
            .iter()
            .find(|entry| {
                entry.operation == Operation::Apply
                    && entry.subresource.is_empty()
                    && entry.manager == *manager
            })
            .map(|entry| &*entry.fields)
    }

    /// The value of an annotation; `None` if it is not there.
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
        // Most objects do not have it: do not parse those.
        if !self.text.contains(name) {
            return None;
        }
        serde_json::from_str::<Head>(&self.text).ok()?.metadata.annotations?.remove(name)
    }

    /// Whether it is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.deletion.is_some()
    }

    /// Bytes that it takes in a cache: its text and the text of our entries.
    pub fn bytes(&self) -> usize {
        self.text.len() + self.entries.iter().map(|entry| entry.fields.len()).sum::<usize>()
    }
}

/// Whether objects of a kind are Secrets: by group and resource, whatever the kind is called, and
/// by the kind's name, whatever the resource is called.
pub fn holds_secrets(kind: &Kind) -> bool {
    kind.group().is_empty() && (kind.plural == "secrets" || kind.kind == "Secret")
}

/// What an object says of its own kind; the server leaves it out in lists.
struct OwnKind<'a> {
    api_version: Option<Cow<'a, str>>,
    kind: Option<Cow<'a, str>>,
}

impl<'a> OwnKind<'a> {
    fn of(members: &Members<'a>) -> Result<Self, DecodeError> {
        let text = |name: &str| -> Result<Option<Cow<'a, str>>, DecodeError> {
            let Some(raw) = members.get(name) else { return Ok(None) };
            let raw: &'a str = raw.get();
            let plain = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
            Ok(match plain.filter(|plain| !plain.contains('\\')) {
                Some(plain) => Some(Cow::Borrowed(plain)),
                None => serde_json::from_str::<Option<String>>(raw)?.map(Cow::Owned),
            })
        };
        Ok(Self { api_version: text("apiVersion")?, kind: text("kind")? })
    }

    fn is_secret(&self) -> bool {
        self.kind.as_deref() == Some("Secret")
            && self.api_version.as_deref().is_none_or(|version| !version.contains('/'))
    }

    /// Metadata is asked for under a kind of its own; an object that leaves out its kind is in a
    /// list.
    fn check(&self, asked: &Kind) -> Result<(), DecodeError> {
        let is_metadata = self.kind.as_deref() == Some(METADATA_KIND)
            && self.api_version.as_deref().is_some_and(|one| one.starts_with("meta.k8s.io/"));
        let differs = |said: &Option<Cow<'_, str>>, asked: &str| {
            said.as_deref().is_some_and(|said| !said.is_empty() && said != asked)
        };
        if is_metadata
            || !(differs(&self.kind, &asked.kind) || differs(&self.api_version, &asked.api_version))
        {
            return Ok(());
        }
        let part = |part: &Option<Cow<'_, str>>| part.as_deref().unwrap_or("-").to_owned();
        let said = format!("{} {}", part(&self.api_version), part(&self.kind));
        Err(DecodeError::OtherKind {
            received: foreign::one_line(&said, RECEIVED_BYTES_MAX).into(),
            requested: asked.to_string().into(),
        })
    }
}

/// The members of a JSON object, as text, ordered by name.
type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

type Managers = (Box<[Entry]>, Box<[OtherManager]>);

fn split_managers(fields: &RawValue) -> Result<Managers, DecodeError> {
    let mut entries = Vec::new();
    let mut others = Vec::new();
    for entry in
        serde_json::from_str::<Option<Vec<RawEntry<'_>>>>(fields.get())?.unwrap_or_default()
    {
        if let Some(manager) = Manager::parse(&entry.manager) {
            entries.push(Entry {
                manager,
                operation: entry.operation,
                subresource: entry.subresource,
                fields: entry.fields.map_or("{}", RawValue::get).into(),
            });
        } else {
            others.push(OtherManager {
                time: entry.time.unwrap_or_default(),
                name: entry.manager.as_ref().into(),
                subresource: entry.subresource,
            });
        }
    }
    others.sort();
    Ok((entries.into(), others.into()))
}

/// Puts members together again, some of them with another text; adds those that were not there.
fn join(members: &Members<'_>, replaced: &BTreeMap<&str, String>, capacity: usize) -> String {
    let mut out = String::with_capacity(capacity);
    let mut member = |name: &str, text: &str| {
        out.push(if out.is_empty() { '{' } else { ',' });
        push_quoted(name, &mut out);
        out.push(':');
        out.push_str(text);
    };
    for (name, value) in members {
        member(name, replaced.get(name.as_ref()).map_or(value.get(), String::as_str));
    }
    for (name, text) in replaced {
        if !members.contains_key(*name) {
            member(name, text);
        }
    }
    out.push(if out.is_empty() { '{' } else { '}' });
    if out.len() == 1 {
        out.push('}');
    }
    out
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Adds a text as JSON. Nearly all names of members are letters and digits, which stand for
/// themselves.
fn push_quoted(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&quoted(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, digest: Option<&Digest<'_>>) -> Result<Object, DecodeError> {
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
    fn the_head_keeps_what_the_host_needs() {
        let object = decode(DEPLOYMENT, None).unwrap();
        assert_eq!(object.key, ObjectKey::new("n", "a"));
        assert_eq!((object.version(), object.generation), (7, 2));
        assert_eq!(object.controller().unwrap().uid.as_ref(), "u0");
        assert_eq!(
            object.applied_by(&Manager::primary("podroute", "u0")),
            Some(r#"{"f:spec":{"f:replicas":{}}}"#)
        );
        assert_eq!(object.applied_by(&Manager::primary("podroute", "u1")), None);
        assert_eq!(object.others[0].name.as_ref(), "kubectl");
        assert_eq!(object.others[0].subresource.as_ref(), "status");
    }

    #[test]
    fn the_text_lacks_managed_fields_and_the_last_applied_annotation() {
        let object = decode(DEPLOYMENT, None).unwrap();
        let value: serde_json::Value = serde_json::from_str(&object.text).unwrap();
        assert_eq!(value["metadata"].get("managedFields"), None);
        assert_eq!(value["metadata"]["annotations"], serde_json::json!({"b": "c"}));
        assert_eq!(value["spec"]["replicas"], 3);
        assert!(!object.text.contains("secret"));
    }

    #[test]
    fn the_values_of_a_secret_are_replaced() {
        let text = r#"{"metadata":{"name":"s","namespace":"n"},"data":{"password":"aHVudGVyMg=="},"type":"Opaque"}"#;
        let object = redacted(&Kind::namespaced("v1", "Secret", "secrets"), text).unwrap();
        assert_eq!(
            object.text.as_ref(),
            r#"{"data":{"password":"n/s/password/12"},"metadata":{"name":"s","namespace":"n"},"type":"Opaque","apiVersion":"v1","kind":"Secret"}"#
        );
    }

    fn redacted(kind: &Kind, text: &str) -> Result<Object, DecodeError> {
        let digest: &Digest<'_> = &|key, name, value| format!("{key}/{name}/{}", value.len());
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
            assert!(!object.text.contains("aHVudGVyMg=="), "{kind:?}: {}", object.text);
            assert!(!object.text.contains("hunter2"), "{kind:?}: {}", object.text);
        }
        let map = redacted(&Kind::namespaced("v1", "ConfigMap", "configmaps"), item).unwrap();
        assert!(map.text.contains("hunter2"), "a ConfigMap is given whole: {}", map.text);
    }

    #[test]
    fn an_object_of_another_kind_is_refused_and_redacted_where_it_is_a_secret() {
        let foo = Kind::namespaced("x.example.com/v1", "Foo", "foos");
        for said in [
            r#""apiVersion":"v1","kind":"Secret""#,
            r#""kind":"Secret","apiVersion":"v1""#,
            r#""apiVersion":"v1","kind":"\u0053ecret""#,
            r#""apiVersion":"x.example.com/v2","kind":"Foo""#,
            r#""apiVersion":"x.example.com/v1","kind":"foo""#,
            r#""kind":"Bar""#,
        ] {
            let text = format!(r#"{{{said},"metadata":{{"name":"s"}},"data":{{"a":"hunter2"}}}}"#);
            let error = redacted(&foo, &text).unwrap_err();
            assert!(matches!(error, DecodeError::OtherKind { .. }), "{said}: {error}");
            assert!(!error.to_string().contains("hunter2"));
        }
        let secret = Kind::namespaced("v1", "Secret", "secrets");
        let escaped = r#"{"apiVersion":"v1","kind":"\u0053ecret","\u0064ata":{"a":"hunter2"}}"#;
        assert!(!redacted(&secret, escaped).unwrap().text.contains("hunter2"));
        let nested = r#"{"metadata":{"name":"s"},"data":{"a":{"b":"hunter2"}}}"#;
        let error = redacted(&secret, nested).unwrap_err().to_string();
        assert_eq!(error, "a Secret whose data is not a map of texts");
    }

    #[test]
    fn metadata_of_an_object_is_read_under_the_kind_of_metadata() {
        let text = r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}"#;
        assert_eq!(decode(text, None).unwrap().key.name(), "a");
        let text = text.replace("meta.k8s.io/v1", "v1");
        assert!(decode(&text, None).is_err());
    }

    #[test]
    fn an_object_without_metadata_is_read_and_garbage_is_not() {
        assert_eq!(
            decode("{}", None).unwrap().text.as_ref(),
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{}}"#
        );
        for garbage in ["", "[]", "{\"metadata\":3}", "nul", "{\"metadata\":{\"labels\":[]}}"] {
            assert!(decode(garbage, None).is_err(), "{garbage}");
        }
    }
}
