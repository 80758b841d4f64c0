//! The `observed` documents that a guest is given, joined from cached texts: nothing is
//! parsed and written again.

use innkeeper_contract::{Kind, Readiness, Unapplied};
use serde::Serialize;

use crate::Object;

/// All that an `observed` document is made from (see `innkeeper_contract::Observed`).
#[derive(Debug)]
pub struct Observed<'a> {
    /// The primary.
    pub object: &'a Object,
    /// What it made, in order.
    pub owned: &'a [(&'a Object, Readiness)],
    /// What could not be applied in the round before.
    pub unapplied: &'a [Unapplied],
    /// Declared kinds that are not served.
    pub unserved: &'a [Kind],
    /// The Module's parameters as JSON; empty for none.
    pub parameters: &'a str,
    /// The primary is being deleted, and the guest's finalizer is on it.
    pub deleting: bool,
}

/// Bytes beside the text of an object: its readiness, without its message.
const ENVELOPE_BYTES: usize = 64;

/// The bytes of the texts of objects in a document, which it has without the messages of their
/// readiness: to be asked before a document is joined.
pub fn bytes<'a>(objects: impl IntoIterator<Item = &'a Object>) -> usize {
    objects.into_iter().fold(0, |sum: usize, object| {
        sum.saturating_add(object.text.len()).saturating_add(ENVELOPE_BYTES)
    })
}

impl Observed<'_> {
    /// The document.
    pub fn document(&self) -> String {
        let owned_bytes = bytes(self.owned.iter().map(|(object, _)| *object));
        let mut out = String::with_capacity(self.object.text.len() + owned_bytes + 128);
        out.push_str(r#"{"object":"#);
        out.push_str(&self.object.guest_text());
        out.push_str(r#","owned":"#);
        list(&mut out, self.owned.iter().map(|(object, readiness)| (*object, readiness)));
        member(&mut out, "unapplied", self.unapplied);
        member(&mut out, "unserved", self.unserved);
        if !self.parameters.is_empty() {
            out.push_str(r#","parameters":"#);
            out.push_str(self.parameters);
        }
        out.push_str(if self.deleting { r#","deleting":true}"# } else { "}" });
        out
    }
}

/// An `observed-object` document: the answer of `cluster.get`.
pub fn object_document(object: &Object, readiness: &Readiness) -> String {
    let mut out = String::with_capacity(object.text.len() + ENVELOPE_BYTES);
    push_object(&mut out, object, readiness);
    out
}

/// An `observed-list` document: the answer of `cluster.list`.
pub fn list_document(objects: &[(&Object, Readiness)]) -> String {
    let bytes = bytes(objects.iter().map(|(object, _)| *object));
    let mut out = String::with_capacity(bytes + 16);
    out.push_str(r#"{"items":"#);
    list(&mut out, objects.iter().map(|(object, readiness)| (*object, readiness)));
    out.push('}');
    out
}

fn list<'a>(out: &mut String, objects: impl Iterator<Item = (&'a Object, &'a Readiness)>) {
    out.push('[');
    for (index, (object, readiness)) in objects.enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_object(out, object, readiness);
    }
    out.push(']');
}

fn push_object(out: &mut String, object: &Object, readiness: &Readiness) {
    out.push_str(r#"{"object":"#);
    out.push_str(&object.guest_text());
    member(out, "readiness", readiness);
    out.push('}');
}

/// Adds a member whose type cannot fail to become JSON.
fn member(out: &mut String, name: &str, value: &(impl Serialize + ?Sized)) {
    out.push_str(",\"");
    out.push_str(name);
    out.push_str("\":");
    out.push_str(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()));
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{ObservedList, ReadinessState, Reference};
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Object {
        let kind = Kind::namespaced("v1", "Service", "services");
        Object::decode(&kind, &json!({"metadata": {"name": name}}).to_string(), None).unwrap()
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
        assert!(secret.text.contains("0123456789abcdef"), "the host compares it");
        let shown = object_document(&decode("ConfigMap", "configmaps"), &ready);
        assert!(shown.contains("0123456789abcdef"), "{shown}");
    }

    #[test]
    fn the_document_reads_back_as_the_contract_says() {
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
    fn nothing_but_the_primary() {
        let primary = object("p");
        let text = Observed {
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
    fn bytes_are_about_those_of_the_document() {
        let (a, b) = (object("a"), object("b"));
        let text = list_document(&[(&a, Readiness::default()), (&b, Readiness::default())]);
        let counted = bytes([&a, &b]);
        assert!(counted.abs_diff(text.len()) < 2 * ENVELOPE_BYTES, "{counted} {}", text.len());
    }

    #[test]
    fn lists_keep_their_order() {
        let (a, b) = (object("a"), object("b"));
        let text = list_document(&[(&a, Readiness::default()), (&b, Readiness::default())]);
        let read: ObservedList = serde_json::from_str(&text).unwrap();
        let names: Vec<&str> =
            read.items.iter().filter_map(|item| item.object["metadata"]["name"].as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(
            serde_json::from_str::<ObservedList>(&list_document(&[])).unwrap().items.len(),
            0
        );
    }
}
