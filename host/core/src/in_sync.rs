//! Whether applying a desired object would change nothing, told without asking the server.
//!
//! Values are not compared: the server stores them otherwise than they were sent (a
//! quantity `1000m` becomes `1`, lists get defaults), and an object would be written for
//! ever. Instead: whoever changes the value of a field that we own takes the field
//! out of our entry of `managedFields`. So an object is settled if
//! - we want what we wanted when we last applied it (a digest tells), and
//! - our entry still holds every field that we applied.
//!
//! The running host remembers both as of its last apply ([`LastApplied`]). After a restart
//! the digest is read from an annotation on the object ([`set_digest`]), and what our entry
//! should be is told from the desired object ([`is_in_sync_after_restart`]).
//!
//! Two things make an object be applied once after a restart, needlessly:
//! - a desired empty list whose items the server merges by key: it leaves no trace in our entry,
//! - inside an object that the server keeps whole, a value that it stores otherwise than it was
//!   sent (the `divisor: 1000m` of a resourceFieldRef becomes `1`).
//!
//! The other way round, a change is missed if, while the host was down, others took all
//! members of an object of free names from us and then put our values back: nothing is wrong then.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::fieldset::{Element, FieldSet, Node, json};
use crate::{Manager, Object};

/// The annotation that holds the digest of an object as it was last applied.
pub const APPLIED_ANNOTATION: &str = "innkeeper.dev/applied";

/// Bytes kept of a SHA-256: 16 (128 bits) leave no room for chance.
const DIGEST_BYTES: usize = 16;

/// Bytes of the hash of a manager in the annotation's name.
const MANAGER_BYTES: usize = 4;

/// What the server never puts into an entry of `managedFields`.
const UNOWNED_METADATA: &[&str] = &[
    "creationTimestamp",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The annotation for what a primary merges into an object that is not its own: several
/// may meet on one object, so the name ends in a short hash of the manager.
pub fn merge_annotation(manager: &Manager) -> String {
    let hash = Sha256::digest(manager.to_string());
    format!("{APPLIED_ANNOTATION}-{}", hex::encode(&hash[..MANAGER_BYTES]))
}

/// The digest of a desired object, 32 hex digits; guards (`metadata.uid` and
/// `resourceVersion`) and our own annotations do not count.
///
/// It is taken of the JSON text with members in order. That is canonical enough: a digest
/// is only ever compared with one that this function made from the answer of a guest, and
/// two texts for one value (`1` and `1.0`) cost one needless write, not a missed one.
pub fn digest(desired: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(desired, Place::Root, &mut text);
    hex::encode(&Sha256::digest(&text)[..DIGEST_BYTES])
}

/// Writes the digest of an owned object onto it, as the annotation [`APPLIED_ANNOTATION`], and
/// returns the digest.
pub fn set_digest(desired: &mut Value) -> String {
    set_digest_as(desired, APPLIED_ANNOTATION.to_owned())
}

/// Writes the digest of what `manager` merges onto it, as its [`merge_annotation`], and returns the
/// digest.
pub fn set_merge_digest(desired: &mut Value, manager: &Manager) -> String {
    set_digest_as(desired, merge_annotation(manager))
}

fn set_digest_as(desired: &mut Value, annotation: String) -> String {
    let digest = digest(desired);
    // What is no object at all cannot carry an annotation; the server says so on apply.
    if let Some(desired) = desired.as_object_mut()
        && let Some(metadata) = object_at(desired, "metadata")
        && let Some(annotations) = object_at(metadata, "annotations")
    {
        annotations.insert(annotation, Value::from(digest.as_str()));
    }
    digest
}

/// The object under a name, made if there is none.
fn object_at<'a>(
    parent: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let member = parent.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Map::new());
    }
    member.as_object_mut()
}

/// What the running host remembers of its last apply of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastApplied {
    /// The digest of the desired object.
    desired: [u8; DIGEST_BYTES],
    /// The digest of our entry as the server answered it, and of the object's uid.
    entry: [u8; DIGEST_BYTES],
}

impl LastApplied {
    /// Remembers an apply: `desired` as it was sent (with or without the stamp), `answer` as the
    /// server gave it back. `None` if the answer has no entry of the manager.
    pub fn new(desired: &Value, answer: &Object, manager: &Manager) -> Option<Self> {
        Self::with_digest(&digest(desired), answer, manager)
    }

    /// Whether applying `desired` would change nothing: it is what was applied, and our
    /// entry on the live object is as the last apply left it.
    pub fn is_in_sync(&self, desired: &Value, live: &Object, manager: &Manager) -> bool {
        self.is_in_sync_with(&digest(desired), live, manager)
    }

    /// The same of a desired object with this [`digest`].
    pub fn is_in_sync_with(&self, digest: &str, live: &Object, manager: &Manager) -> bool {
        self.has_digest(digest) && Self::with_digest(digest, live, manager).as_ref() == Some(self)
    }

    /// Whether the desired object had this digest.
    pub fn has_digest(&self, digest: &str) -> bool {
        decoded(digest) == Some(self.desired)
    }

    /// Remembers an apply of a desired object with this [`digest`], as [`LastApplied::new`] does.
    pub fn with_digest(digest: &str, object: &Object, manager: &Manager) -> Option<Self> {
        let fields = object.applied_by(manager)?;
        let desired = decoded(digest)?;
        let mut hash = Sha256::new();
        hash.update(object.uid.as_bytes());
        hash.update([0]);
        hash.update(fields);
        let mut entry = [0; DIGEST_BYTES];
        entry.copy_from_slice(&hash.finalize()[..DIGEST_BYTES]);
        Some(Self { desired, entry })
    }
}

fn decoded(digest: &str) -> Option<[u8; DIGEST_BYTES]> {
    let mut bytes = [0; DIGEST_BYTES];
    hex::decode_to_slice(digest, &mut bytes).ok()?;
    Some(bytes)
}

/// Whether applying a desired object would change nothing, as far as the object itself tells:
/// its annotation has the digest of `desired`, and our entry is what applying `desired` gives.
///
/// `desired` is stamped ([`set_digest`] or [`set_merge_digest`]), as it would be sent.
pub fn is_in_sync_after_restart(live: &Object, manager: &Manager, desired: &Value) -> bool {
    let Some(entry) = live.applied_by(manager) else { return false };
    let Some((annotation, digest)) = own_annotation(desired, manager) else { return false };
    // Cheap first: the annotation is told by its text.
    if !live.text.contains(digest) {
        return false;
    }
    let Ok(entry) = FieldSet::parse(entry) else { return false };
    let mut walk = Walk::default();
    if !walk.root(desired, &entry, None) {
        return false;
    }
    let Ok(live) = serde_json::from_str::<Value>(&live.text) else { return false };
    live["metadata"]["annotations"][annotation] == digest
        && (!walk.ambiguous || walk.root(desired, &entry, Some(&live)))
}

/// The name and value of our annotation on a stamped object.
fn own_annotation<'a>(desired: &'a Value, manager: &Manager) -> Option<(&'a str, &'a str)> {
    let annotations = desired.get("metadata")?.get("annotations")?.as_object()?;
    let merged = merge_annotation(manager);
    annotations
        .iter()
        .find(|(name, _)| *name == APPLIED_ANNOTATION || **name == merged)
        .and_then(|(name, digest)| Some((name.as_str(), digest.as_str()?)))
}

/// Whether the fields of a desired object are those of our entry: whether the
/// entry is what applying the object would give.
///
/// - Items of a list are paired with the entry's items by the keys that `desired` gives: the
///   server fills keys with their defaults (`protocol` of a port), so the ones that give most keys
///   go first, and every one needs its own.
/// - Members of a set are compared as a set.
/// - A leaf of the entry stands for its whole value.
/// - `apiVersion`, `kind`, the name and what else the server never puts into an entry do not
///   count, and neither does a status that it did not take.
pub fn matches(desired: &Value, entry: &FieldSet) -> bool {
    Walk::default().root(desired, entry, None)
}

/// One comparison of a desired object with an entry.
#[derive(Default)]
struct Walk {
    /// A leaf of the entry met a desired object with members: it may be one that the server
    /// keeps whole, or one of whose members we own none any more.
    ambiguous: bool,
}

/// The keys of an item of a list: names, and values as JSON text.
type Keys = BTreeMap<Box<str>, Box<str>>;

/// The live value beside a desired one: `None` if values are not looked at,
/// `Some(Null)` if there is none.
type Live<'a> = Option<&'a Value>;

impl Walk {
    fn root(&mut self, desired: &Value, entry: &FieldSet, live: Live<'_>) -> bool {
        let Some(desired) = desired.as_object() else { return false };
        let mut expected = 0;
        for (name, value) in desired {
            let node = entry.field(name);
            let fits = match (name.as_str(), node) {
                ("apiVersion" | "kind", _) | ("status", None) => continue,
                ("metadata", node) => {
                    let Some(metadata) = value.as_object() else { return false };
                    let mut owned = metadata
                        .iter()
                        .filter(|(name, _)| !UNOWNED_METADATA.contains(&name.as_str()));
                    match node {
                        None if owned.next().is_none() => continue,
                        None => false,
                        Some(node) => self.members(owned, node.below(), at(live, name)),
                    }
                }
                (_, None) => false,
                (_, Some(node)) => self.value(value, node, at(live, name)),
            };
            if !fits {
                return false;
            }
            expected += 1;
        }
        expected == entry.iter().count()
    }

    fn value(&mut self, desired: &Value, node: &Node, live: Live<'_>) -> bool {
        if node.is_leaf() {
            return self.leaf(desired, live);
        }
        match desired {
            Value::Object(members) => self.members(members.iter(), node.below(), live),
            Value::Array(items) => self.items(items, node.below(), live),
            _ => false,
        }
    }

    /// A leaf of the entry stands for its whole value. But where an object of free names (not
    /// of a schema's fields) loses all its members to others, it stays behind as a leaf as well.
    /// Only the live values can tell the two apart.
    fn leaf(&mut self, desired: &Value, live: Live<'_>) -> bool {
        if desired.as_object().is_none_or(Map::is_empty) {
            return true;
        }
        self.ambiguous = true;
        live.is_none_or(|live| holds(desired, live))
    }

    fn members<'a>(
        &mut self,
        desired: impl Iterator<Item = (&'a String, &'a Value)>,
        entry: &FieldSet,
        live: Live<'_>,
    ) -> bool {
        let mut expected = 0;
        for (name, value) in desired {
            expected += 1;
            let Some(node) = entry.field(name) else { return false };
            if !self.value(value, node, at(live, name)) {
                return false;
            }
        }
        expected == entry.iter().count()
    }

    fn items(&mut self, desired: &[Value], entry: &FieldSet, live: Live<'_>) -> bool {
        if desired.len() != entry.iter().count() {
            return false;
        }
        let mut by_key = Vec::new();
        let mut values = BTreeSet::new();
        for (element, node) in entry.iter() {
            match element {
                Element::Key(keys) => by_key.push((keys, node)),
                Element::Value(value) => {
                    values.insert(value);
                }
                Element::Index(index) => {
                    let item = usize::try_from(*index).ok().and_then(|index| desired.get(index));
                    let live = live.map(|live| {
                        usize::try_from(*index)
                            .ok()
                            .and_then(|index| live.get(index))
                            .unwrap_or(&Value::Null)
                    });
                    if !item.is_some_and(|item| self.value(item, node, live)) {
                        return false;
                    }
                }
                Element::Field(_) => return false,
            }
        }
        if !values.is_empty() {
            return by_key.is_empty()
                && desired.iter().map(json).collect::<BTreeSet<_>>().iter().eq(values);
        }
        self.keyed(desired, by_key, live)
    }

    /// Pairs items with the entry's, those that give most keys first.
    fn keyed<'a>(
        &mut self,
        desired: &[Value],
        mut entry: Vec<(&'a Keys, &'a Node)>,
        live: Live<'_>,
    ) -> bool {
        if entry.is_empty() {
            // All by index, and each was compared.
            return true;
        }
        let names: BTreeSet<&str> =
            entry.iter().flat_map(|(keys, _)| keys.keys().map(|name| &**name)).collect();
        let mut items: Vec<_> = desired
            .iter()
            .map(|item| {
                let given: Vec<(&str, Box<str>)> =
                    names.iter().filter_map(|name| Some((*name, json(item.get(name)?)))).collect();
                (given, item)
            })
            .collect();
        items.sort_by_key(|(given, _)| std::cmp::Reverse(given.len()));
        items.into_iter().all(|(given, item)| {
            let found = entry.iter().position(|(keys, _)| {
                given.iter().all(|(name, value)| keys.get(*name) == Some(value))
            });
            found.is_some_and(|index| {
                let (keys, node) = entry.swap_remove(index);
                let live = live.map(|live| {
                    live.as_array()
                        .into_iter()
                        .flatten()
                        .find(|item| {
                            keys.iter().all(|(name, value)| {
                                item.get(&**name).is_some_and(|live| json(live) == *value)
                            })
                        })
                        .unwrap_or(&Value::Null)
                });
                self.value(item, node, live)
            })
        })
    }
}

/// The live value one field deeper.
fn at<'a>(live: Live<'a>, name: &str) -> Live<'a> {
    live.map(|live| live.get(name).unwrap_or(&Value::Null))
}

/// Whether a live value still holds a desired one; it may hold more (defaults), and what is
/// empty may be missing.
fn holds(desired: &Value, live: &Value) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().all(|(name, value)| holds(value, live.get(name).unwrap_or(&Value::Null)))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len()
                && desired.iter().zip(live).all(|(desired, live)| holds(desired, live))
        }
        (Value::Object(members), Value::Null) => members.values().all(|value| holds(value, live)),
        (Value::Array(items), Value::Null) => items.is_empty(),
        (Value::String(text), Value::Null) => text.is_empty(),
        (Value::Bool(flag), Value::Null) => !flag,
        (Value::Number(number), Value::Null) => number.as_f64() == Some(0.0),
        (Value::Number(desired), Value::Number(live)) => desired.as_f64() == live.as_f64(),
        _ => desired == live,
    }
}

/// Where in a desired object the writer of canonical text is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Metadata,
    Annotations,
    Below,
}

/// Writes JSON with the members of every object in order of their names, whatever map type
/// `serde_json` was built with, and without what a digest does not count.
fn write_canonical(value: &Value, place: Place, text: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().filter(|(name, value)| counts(name, value, place)).collect();
            members.sort_by_key(|(name, _)| *name);
            text.push(b'{');
            for (name, value) in members {
                write_json(name.as_str(), text);
                text.push(b':');
                let below = match (place, name.as_str()) {
                    (Place::Root, "metadata") => Place::Metadata,
                    (Place::Metadata, "annotations") => Place::Annotations,
                    _ => Place::Below,
                };
                write_canonical(value, below, text);
                text.push(b',');
            }
            text.push(b'}');
        }
        Value::Array(items) => {
            text.push(b'[');
            for item in items {
                write_canonical(item, Place::Below, text);
                text.push(b',');
            }
            text.push(b']');
        }
        scalar => write_json(scalar, text),
    }
}

fn write_json<T: Serialize + ?Sized>(value: &T, text: &mut Vec<u8>) {
    // Neither a text nor a scalar fails to become JSON, and writing into memory does not fail.
    let _ = serde_json::to_writer(text, value);
}

fn counts(name: &str, value: &Value, place: Place) -> bool {
    match place {
        Place::Metadata if matches!(name, "uid" | "resourceVersion") => false,
        // A stamp made these members if they were not there, so empty is the same as missing.
        Place::Root if name == "metadata" => is_filled(value, Place::Metadata),
        Place::Metadata if name == "annotations" => is_filled(value, Place::Annotations),
        Place::Annotations => !is_applied_annotation(name),
        _ => true,
    }
}

fn is_filled(value: &Value, place: Place) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => members.iter().any(|(name, value)| counts(name, value, place)),
        _ => true,
    }
}

/// Whether an annotation is one of ours that holds a digest.
fn is_applied_annotation(name: &str) -> bool {
    name.strip_prefix(APPLIED_ANNOTATION)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(value: &Value) -> FieldSet {
        FieldSet::parse(&value.to_string()).unwrap()
    }

    fn check(desired: &Value, fields: &Value, expected: bool) {
        assert_eq!(matches(desired, &entry(fields)), expected, "{desired} against {fields}");
    }

    #[test]
    fn the_same_object_has_the_same_digest_in_any_order() {
        let a: Value = serde_json::from_str(r#"{"b":{"y":1,"x":[1,2]},"a":null}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"a":null,"b":{"x":[1,2],"y":1}}"#).unwrap();
        assert_eq!(digest(&a), digest(&b));
        assert_eq!(digest(&a).len(), 32);
    }

    #[test]
    fn different_objects_have_different_digests() {
        let objects = [
            json!({}),
            json!({"a": null}),
            json!({"a": {}}),
            json!({"a": []}),
            json!({"a": ""}),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"a": [1, 2]}),
            json!({"a": [2, 1]}),
            json!({"a": [12]}),
            json!({"a": [[1], 2]}),
            json!({"a": {"b": 1}, "c": 1}),
            json!({"a": {"b": 1, "c": 1}}),
            json!({"metadata": {"annotations": {"a": "b"}}}),
            json!({"metadata": {"labels": {}}}),
            json!({"spec": {"metadata": {"uid": "x"}}}),
        ];
        let digests: BTreeSet<_> = objects.iter().map(digest).collect();
        assert_eq!(digests.len(), objects.len());
    }

    #[test]
    fn stamps_and_guards_do_not_count() {
        let manager = Manager::primary("m", "u");
        for object in [
            json!({"kind": "A"}),
            json!({"kind": "A", "metadata": null}),
            json!({"kind": "A", "metadata": {"name": "x", "annotations": null}}),
            json!({"kind": "A", "metadata": {"name": "x", "annotations": {"innkeeper.dev/adopt": "true"}}}),
        ] {
            let before = digest(&object);
            let mut stamped = object.clone();
            set_digest(&mut stamped);
            assert_eq!(stamped["metadata"]["annotations"][APPLIED_ANNOTATION], before);
            set_merge_digest(&mut stamped, &manager);
            assert_eq!(stamped["metadata"]["annotations"][merge_annotation(&manager)], before);
            stamped["metadata"]["uid"] = json!("u");
            stamped["metadata"]["resourceVersion"] = json!("1");
            assert_eq!(digest(&stamped), before, "{stamped}");
        }
    }

    #[test]
    fn each_manager_has_its_own_merge_annotation() {
        let name = merge_annotation(&Manager::primary("m", "u"));
        assert_eq!(name, "innkeeper.dev/applied-144e434b");
        assert_ne!(name, merge_annotation(&Manager::primary("m", "v")));
    }

    #[test]
    fn what_is_no_object_is_not_stamped_and_not_settled() {
        for mut value in
            [json!("x"), json!({"metadata": "x"}), json!({"metadata": {"annotations": 1}})]
        {
            let before = value.clone();
            set_digest(&mut value);
            assert_eq!(value, before);
            assert!(!matches(
                &value,
                &entry(&json!({"f:metadata": {"f:annotations": {"f:a": {}}}}))
            ));
        }
    }

    #[test]
    fn the_head_is_in_no_entry() {
        let desired = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1"}});
        check(&desired, &json!({}), true);
        check(&desired, &json!({"f:data": {"f:a": {}}}), false);
        check(&json!({"status": {"a": 1}}), &json!({}), true);
        check(&json!({"status": {"a": 1}}), &json!({"f:status": {"f:a": {}}}), true);
        check(&json!({"status": {"a": 1}}), &json!({"f:status": {"f:b": {}}}), false);
    }

    #[test]
    fn items_are_paired_by_the_keys_that_are_given_most_specific_first() {
        let tcp = "k:{\"port\":53,\"protocol\":\"TCP\"}";
        let udp = "k:{\"port\":53,\"protocol\":\"UDP\"}";
        let fields = json!({"f:ports": {tcp: {".": {}, "f:port": {}}, udp: {".": {}, "f:port": {}, "f:protocol": {}}}});
        let bare = json!({"port": 53});
        let full = json!({"port": 53, "protocol": "UDP"});
        check(&json!({"ports": [bare, full]}), &fields, true);
        check(&json!({"ports": [full, bare]}), &fields, true);
        check(&json!({"ports": [full, full]}), &fields, false);
        check(&json!({"ports": [bare, bare]}), &fields, false);
        check(&json!({"ports": [full]}), &fields, false);
        check(&json!({"ports": [bare, full, {"port": 54}]}), &fields, false);
        check(&json!({"ports": [bare, {"port": "53", "protocol": "UDP"}]}), &fields, false);
    }

    #[test]
    fn sets_are_compared_without_order() {
        let fields = json!({"f:tags": {"v:\"a\"": {}, "v:1": {}}});
        check(&json!({"tags": [1, "a"]}), &fields, true);
        check(&json!({"tags": ["1", "a"]}), &fields, false);
        check(&json!({"tags": ["a"]}), &fields, false);
        check(&json!({"tags": {"a": 1}}), &fields, false);
    }

    #[test]
    fn items_by_index_are_compared_in_place() {
        let fields = json!({"f:list": {"i:0": {"f:a": {}}, "i:1": {}}});
        check(&json!({"list": [{"a": 1}, 2]}), &fields, true);
        check(&json!({"list": [2, {"a": 1}]}), &fields, false);
    }

    #[test]
    fn a_leaf_is_the_whole_value_and_a_struct_is_its_members() {
        let fields = json!({"f:spec": {"f:selector": {}, "f:strategy": {"f:type": {}}}});
        check(
            &json!({"spec": {"selector": {"a": {"b": 1}}, "strategy": {"type": "x"}}}),
            &fields,
            true,
        );
        check(&json!({"spec": {"selector": [1, 2], "strategy": {"type": null}}}), &fields, true);
        check(
            &json!({"spec": {"selector": {}, "strategy": {"type": "x", "more": 1}}}),
            &fields,
            false,
        );
        check(&json!({"spec": {"selector": {}, "strategy": {}}}), &fields, false);
        check(&json!({"spec": {"selector": {}, "strategy": "x"}}), &fields, false);
    }

    #[test]
    fn a_live_value_may_hold_more_than_was_wanted() {
        for (desired, live, expected) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            (json!({"a": 1}), json!({"a": 2}), false),
            (json!({"a": 1}), Value::Null, false),
            (json!({"a": null, "b": "", "c": false, "d": 0, "e": [], "f": {}}), Value::Null, true),
            (json!({"a": [1, {"b": 2}]}), json!({"a": [1.0, {"b": 2, "c": 3}]}), true),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]}), false),
            (json!({"a": [1]}), json!({"a": [1, 2]}), false),
        ] {
            assert_eq!(holds(&desired, &live), expected, "{desired} in {live}");
        }
    }
}
