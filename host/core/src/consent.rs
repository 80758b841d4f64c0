//! Consent of a user: an annotation that permits something and that no guest wrote.
//!
//! `managedFields` shows who wrote an annotation. The host writes for guests under managers of its
//! own ([`Manager`]), so an annotation of such a manager is no consent of a user.

use crate::fieldset::FieldSet;
use crate::object::Entry;
use crate::well_known::ADOPT_ANNOTATION;
use crate::{Manager, Object};

pub use crate::well_known::{PAUSED_ANNOTATION, RESYNC_ANNOTATION};

/// The annotations by which a user decides about an object, which a guest must not write anywhere.
pub const USER_ANNOTATIONS: [&str; 3] = [ADOPT_ANNOTATION, PAUSED_ANNOTATION, RESYNC_ANNOTATION];

/// The value of an annotation that a user set; `None` if the object does not have it, or if a
/// manager of the host holds it, of any module and by any operation.
pub fn of_user(object: &Object, name: &str) -> Option<String> {
    let value = object.annotation(name)?;
    holders(object, "annotations", name).next().is_none().then_some(value)
}

/// The value of an annotation that a user set, or that the host set on a desired object of this
/// module because of a policy.
pub fn of_user_or_module(object: &Object, name: &str, module: &str) -> Option<String> {
    let value = object.annotation(name)?;
    let mut holders = holders(object, "annotations", name).peekable();
    let is_of_user = holders.peek().is_none();
    (is_of_user || holders.any(|entry| is_made_by(entry, module))).then_some(value)
}

/// Whether a guest merged a label into an object that it did not make.
pub fn is_merged_label(object: &Object, name: &str) -> bool {
    holders(object, "labels", name).any(|entry| matches!(entry.manager, Manager::Merge { .. }))
}

/// Whether an entry shows that a module made the object, for any primary.
pub fn is_made_by(entry: &Entry, module: &str) -> bool {
    entry.is_apply()
        && matches!(&entry.manager, Manager::Primary { module: maker, .. } if maker == module)
}

/// The entries of the host's managers that hold one label or annotation.
fn holders<'a>(
    object: &'a Object,
    member: &'static str,
    name: &'a str,
) -> impl Iterator<Item = &'a Entry> {
    object.entries.iter().filter(move |entry| holds(entry, member, name))
}

/// Whether an entry holds one label or annotation. An entry that cannot be parsed may hold it.
fn holds(entry: &Entry, member: &str, name: &str) -> bool {
    let Ok(fields) = FieldSet::parse(&entry.fields.read()) else { return true };
    let mut below = &fields;
    for step in ["metadata", member] {
        match below.field(step) {
            None => return false,
            // A leaf stands for its whole value.
            Some(node) if node.is_leaf() => return true,
            Some(node) => below = node.below(),
        }
    }
    below.field(name).is_some()
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::Kind;
    use serde_json::{Value, json};

    use super::*;

    const NAME: &str = "innkeeper.dev/adopt";

    fn object(managers: &Value) -> Object {
        let kind = Kind::namespaced("example.com/v1", "Thing", "things");
        let text = json!({"metadata": {"name": "a", "annotations": {NAME: "true"},
            "labels": {"app": "a"}, "managedFields": managers}});
        Object::decode(&kind, &text.to_string(), None).unwrap()
    }

    fn manager(name: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": name, "operation": operation, "fieldsV1": {"f:metadata": fields}})
    }

    fn annotation_held() -> Value {
        json!({"f:annotations": {format!("f:{NAME}"): {}}})
    }

    #[test]
    fn annotation_of_a_user_counts() {
        let of_user_only = object(&json!([
            manager("kubectl", "Update", &annotation_held()),
            manager("innkeeper/m/u1", "Apply", &json!({"f:annotations": {"f:x": {}}})),
        ]));
        assert_eq!(of_user(&of_user_only, NAME).as_deref(), Some("true"));
        assert_eq!(of_user(&of_user_only, "innkeeper.dev/paused"), None);
        assert_eq!(of_user(&object(&json!([])), NAME).as_deref(), Some("true"));
    }

    #[test]
    fn annotation_of_a_guest_is_ignored_even_if_a_user_holds_it_too() {
        for (name, operation) in [
            ("innkeeper/m/u1/merge", "Apply"),
            ("innkeeper/other/u9/merge", "Apply"),
            ("innkeeper/m/u1", "Apply"),
            ("innkeeper/m/u1", "Update"),
        ] {
            let of_guest = manager(name, operation, &annotation_held());
            let both = json!([of_guest, manager("kubectl", "Apply", &annotation_held())]);
            assert_eq!(of_user(&object(&both), NAME), None, "{name} {operation}");
        }
    }

    #[test]
    fn annotation_is_ignored_when_an_entry_holds_all_annotations_or_cannot_be_parsed() {
        for fields in [json!({"f:annotations": {}}), json!({"x": {}})] {
            let all = json!([manager("innkeeper/m/u1/merge", "Apply", &fields)]);
            assert_eq!(of_user(&object(&all), NAME), None, "{fields}");
        }
        let status = json!([{"manager": "innkeeper/m/u1/merge", "operation": "Apply",
            "subresource": "status", "fieldsV1": {"f:metadata": annotation_held()}}]);
        assert_eq!(of_user(&object(&status), NAME), None, "through a subresource");
    }

    #[test]
    fn annotation_counts_for_the_module_that_applied_it_and_not_when_merged() {
        let held_by = |name: &str| object(&json!([manager(name, "Apply", &annotation_held())]));
        let of = |name: &str| of_user_or_module(&held_by(name), NAME, "m");
        assert_eq!(of("innkeeper/m/u1").as_deref(), Some("true"));
        assert_eq!(of("kubectl").as_deref(), Some("true"));
        assert_eq!(of("innkeeper/m/u1/merge"), None);
        assert_eq!(of("innkeeper/other/u1"), None);
    }

    #[test]
    fn merged_label_is_distinguished_from_one_of_a_user() {
        let labels = json!({"f:labels": {"f:app": {}}});
        let merged = object(&json!([manager("innkeeper/m/u1/merge", "Apply", &labels)]));
        assert!(is_merged_label(&merged, "app"));
        assert!(!is_merged_label(&object(&json!([manager("kubectl", "Apply", &labels)])), "app"));
    }

    #[test]
    fn annotation_is_found_in_managed_fields_of_a_megabyte() {
        let mut labels = serde_json::Map::new();
        for index in 0..40_000 {
            labels.insert(format!("f:example.com/{index}"), json!({}));
        }
        let fields = json!({"f:labels": labels, "f:annotations": {format!("f:{NAME}"): {}}});
        let flooded = object(&json!([manager("innkeeper/m/u1/merge", "Apply", &fields)]));
        assert_eq!(of_user(&flooded, NAME), None);
    }
}
