//! The documents that a guest reads, joined from the cached texts of objects without parsing them.

use std::borrow::Borrow;

use innkeeper_contract::{Kind, Readiness, ReadinessState, Unapplied};
use serde::Serialize;

use crate::Object;

/// The parts of an `observed` document (see `innkeeper_contract::Observed`).
#[derive(Debug)]
pub struct Observed<'a, O = &'a Object> {
    /// The primary.
    pub object: &'a Object,
    /// The objects that the module made for the primary, in order.
    pub owned: &'a [(O, Readiness)],
    /// The objects that the host could not apply in the previous round.
    pub unapplied: &'a [Unapplied],
    /// Declared kinds that the cluster does not serve.
    pub unserved: &'a [Kind],
    /// The parameters of the Module as JSON; empty if it has none.
    pub parameters: &'a str,
    /// The primary is being deleted and has the module's finalizer.
    pub deleting: bool,
}

/// The member of an object that is ready.
const READY: &str = r#","readiness":{"state":"Ready"}"#;

/// How many bytes an object takes in addition to its text: its readiness, without the message.
const ENVELOPE_BYTES: usize = 64;

/// Estimates how many bytes objects take in a document, without the messages of their readiness, so
/// that a caller can check a limit before it joins the document.
pub fn bytes<'a>(objects: impl IntoIterator<Item = &'a Object>) -> usize {
    objects.into_iter().fold(0, |sum: usize, object| {
        sum.saturating_add(object.text.len()).saturating_add(ENVELOPE_BYTES)
    })
}

impl<O: Borrow<Object>> Observed<'_, O> {
    /// Joins the document.
    pub fn document(&self) -> String {
        let owned_bytes = bytes(self.owned.iter().map(|(object, _)| object.borrow()));
        let mut out = String::with_capacity(self.object.text.len() + owned_bytes + 128);
        out.push_str(r#"{"object":"#);
        out.push_str(&self.object.guest_text());
        out.push_str(r#","owned":"#);
        push_list(&mut out, self.owned);
        push_member(&mut out, "unapplied", self.unapplied);
        push_member(&mut out, "unserved", self.unserved);
        if !self.parameters.is_empty() {
            out.push_str(r#","parameters":"#);
            out.push_str(self.parameters);
        }
        if self.deleting {
            out.push_str(r#","deleting":true"#);
        }
        out.push_str(r#","reportReadFields":true}"#);
        out
    }
}

/// Joins an `observed-object` document: the result of `cluster.get`.
pub fn object_document(object: &Object, readiness: &Readiness) -> String {
    let mut out = String::with_capacity(object.text.len() + ENVELOPE_BYTES);
    push_object(&mut out, object, readiness);
    out
}

/// Joins an `observed-list` document: the result of `cluster.list`.
pub fn list_document<O: Borrow<Object>>(objects: &[(O, Readiness)]) -> String {
    let bytes = bytes(objects.iter().map(|(object, _)| object.borrow()));
    let mut out = String::with_capacity(bytes + 16);
    out.push_str(r#"{"items":"#);
    push_list(&mut out, objects);
    out.push('}');
    out
}

/// Appends a list of objects.
fn push_list<O: Borrow<Object>>(out: &mut String, objects: &[(O, Readiness)]) {
    out.push('[');
    for (index, (object, readiness)) in objects.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_object(out, object.borrow(), readiness);
    }
    out.push(']');
}

/// Appends an object with its readiness.
fn push_object(out: &mut String, object: &Object, readiness: &Readiness) {
    out.push_str(r#"{"object":"#);
    out.push_str(&object.guest_text());
    if readiness.state == ReadinessState::Ready && readiness.message.is_empty() {
        // Most objects of a list.
        out.push_str(READY);
    } else {
        push_member(out, "readiness", readiness);
    }
    out.push('}');
}

/// Appends a member whose type always has a JSON form.
fn push_member(out: &mut String, name: &str, value: &(impl Serialize + ?Sized)) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()));
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{ObservedList, Reference};
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Object {
        let kind = Kind::namespaced("v1", "Service", "services");
        Object::decode(&kind, &json!({"metadata": {"name": name}}).to_string(), None).unwrap()
    }

    #[test]
    fn ready_object_is_written_as_its_type_says() {
        let ready = Readiness { state: ReadinessState::Ready, message: String::new() };
        let mut out = String::new();
        push_member(&mut out, "readiness", &ready);
        assert_eq!(out, READY);
    }

    #[test]
    fn secret_is_shown_without_the_digests_of_what_was_applied() {
        let digest = |_: &crate::ObjectKey, _: &str, _: &str| "keyed".to_owned();
        let annotations = json!({"innkeeper.dev/applied": "0123456789abcdef",
            "innkeeper.dev/applied-0a": "0123456789abcdef", "a.example.com/kept": "yes"});
        let decode = |kind: &str, plural: &str| {
            let text = json!({"apiVersion": "v1", "kind": kind, "data": {"pin": "MTIzNA=="},
                "metadata": {"name": "n", "annotations": annotations}});
            let kind = Kind::namespaced("v1", kind, plural);
            Object::decode(&kind, &text.to_string(), Some(&digest)).unwrap()
        };
        let ready = Readiness { state: ReadinessState::Ready, message: String::new() };
        let secret = decode("Secret", "secrets");
        let document = Observed {
            object: &secret,
            owned: &[(&secret, ready.clone())],
            unapplied: &[],
            unserved: &[],
            parameters: "",
            deleting: false,
        };
        for shown in [document.document(), object_document(&secret, &ready)] {
            assert!(!shown.contains("0123456789abcdef"), "{shown}");
            assert!(shown.contains("a.example.com/kept") && shown.contains("keyed"), "{shown}");
        }
        assert!(secret.text.read().contains("0123456789abcdef"), "the host compares the digest");
        let shown = object_document(&decode("ConfigMap", "configmaps"), &ready);
        assert!(shown.contains("0123456789abcdef"), "{shown}");
    }

    #[test]
    fn document_is_parsed_by_the_types_of_the_contract() {
        let (primary, owned) = (object("p"), object("o"));
        let text = Observed {
            object: &primary,
            owned: &[(
                &owned,
                Readiness { state: ReadinessState::InProgress, message: "\"so\"".into() },
            )],
            unapplied: &[Unapplied {
                reference: Reference {
                    api_version: "v1".into(),
                    kind: "Service".into(),
                    namespace: "n".into(),
                    name: "x".into(),
                },
                reason: "Conflict".into(),
                message: "m".into(),
            }],
            unserved: &[Kind::namespaced("route.openshift.io/v1", "Route", "routes")],
            parameters: r#"{"a":1}"#,
            deleting: true,
        }
        .document();
        let read: innkeeper_contract::Observed = serde_json::from_str(&text).unwrap();
        assert_eq!(read.object["metadata"]["name"], "p");
        assert_eq!(read.owned[0].object["metadata"]["name"], "o");
        assert_eq!(read.owned[0].readiness.message, "\"so\"");
        assert_eq!(read.unapplied[0].reference.name, "x");
        assert_eq!(read.unserved[0].kind, "Route");
        assert_eq!(read.parameters, json!({"a": 1}));
        assert!(read.deleting);
    }

    #[test]
    fn document_without_optional_members_is_parsed() {
        let primary = object("p");
        let text = Observed::<&Object> {
            object: &primary,
            owned: &[],
            unapplied: &[],
            unserved: &[],
            parameters: "",
            deleting: false,
        }
        .document();
        let read: innkeeper_contract::Observed = serde_json::from_str(&text).unwrap();
        assert!(read.owned.is_empty() && read.parameters.is_null() && !read.deleting);
    }

    #[test]
    fn bytes_estimate_the_length_of_the_document() {
        let (a, b) = (object("a"), object("b"));
        let text = list_document(&[(&a, Readiness::default()), (&b, Readiness::default())]);
        let counted = bytes([&a, &b]);
        assert!(counted.abs_diff(text.len()) < 2 * ENVELOPE_BYTES, "{counted} {}", text.len());
    }

    #[test]
    fn list_document_keeps_the_order() {
        let (a, b) = (object("a"), object("b"));
        let text = list_document(&[(&a, Readiness::default()), (&b, Readiness::default())]);
        let read: ObservedList = serde_json::from_str(&text).unwrap();
        let names: Vec<&str> =
            read.items.iter().filter_map(|item| item.object["metadata"]["name"].as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            serde_json::from_str::<ObservedList>(&list_document::<&Object>(&[]))
                .unwrap()
                .items
                .len(),
            0
        );
    }
}
