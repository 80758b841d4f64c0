//! The difference of two versions of an object, as paths for users.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::fieldset::Element;

/// Members that identify an item of a list; the first one that the items have is used.
const KEYS: [&str; 4] = ["name", "key", "type", "ip"];

/// The value of a field that an object does not have.
static NONE: Value = Value::Null;

/// A field in which two objects differ.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange<'v> {
    /// Its path, as in `.spec.containers[name="a"].image`, as deep as both objects have a value.
    pub path: String,
    /// Its value before; `Value::Null` if there is none.
    pub before: &'v Value,
    /// Its value afterwards; `Value::Null` if there is none.
    pub after: &'v Value,
}

/// Lists the fields in which two objects differ, as in `.spec.containers[name="a"].image`, in
/// order, at most `max`. Each path is as deep as both objects have a value.
///
/// It omits the host's own annotations.
pub fn changed_fields(before: &Value, after: &Value, max: usize) -> Vec<String> {
    changed_values(before, after, max).into_iter().map(|change| change.path).collect()
}

/// Lists the fields of [`changed_fields`] with their values.
pub fn changed_values<'v>(before: &'v Value, after: &'v Value, max: usize) -> Vec<FieldChange<'v>> {
    let mut changes = Vec::new();
    walk(before, after, &mut String::new(), &mut changes);
    changes.retain(|change: &FieldChange<'_>| {
        !change.path.starts_with(r#".metadata.annotations["innkeeper.dev/"#)
    });
    changes.truncate(max);
    changes
}

fn walk<'v>(
    before: &'v Value,
    after: &'v Value,
    path: &mut String,
    changes: &mut Vec<FieldChange<'v>>,
) {
    if before == after {
        return;
    }
    let length = path.len();
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                path.push_str(&Element::Field(name.as_str().into()).to_string());
                let (old, new) = (old.get(name), new.get(name));
                walk(old.unwrap_or(&NONE), new.unwrap_or(&NONE), path, changes);
                path.truncate(length);
            }
        }
        (Value::Array(old), Value::Array(new)) if is_keyed(old) && is_keyed(new) => {
            let (old, new) = (by_key(old), by_key(new));
            let keys: BTreeSet<ItemKey<'_>> = old.keys().chain(new.keys()).copied().collect();
            let known = changes.len();
            for key in keys {
                let (member, value) = key;
                let _ = write!(path, "[{member}={value:?}]");
                let (old, new) = (old.get(&key).copied(), new.get(&key).copied());
                walk(old.unwrap_or(&NONE), new.unwrap_or(&NONE), path, changes);
                path.truncate(length);
            }
            // The items are the same in another order.
            if changes.len() == known {
                changes.push(FieldChange { path: path.clone(), before, after });
            }
        }
        _ => {
            let path = if path.is_empty() { ".".to_owned() } else { path.clone() };
            changes.push(FieldChange { path, before, after });
        }
    }
}

/// The items of a list by what identifies them.
fn by_key(items: &[Value]) -> BTreeMap<ItemKey<'_>, &Value> {
    items.iter().filter_map(|item| Some((key(item)?, item))).collect()
}

/// Whether each item has a member that identifies it.
fn is_keyed(items: &[Value]) -> bool {
    let keys: Vec<_> = items.iter().filter_map(key).collect();
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.len() == items.len()
}

/// The member that identifies an item of a list, and its value.
type ItemKey<'v> = (&'static str, &'v str);

/// The member that identifies an item of a list, and its value.
pub(crate) fn key(item: &Value) -> Option<ItemKey<'_>> {
    KEYS.into_iter().find_map(|member| Some((member, item.get(member)?.as_str()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(before: &Value, after: &Value) -> Vec<String> {
        changed_fields(before, after, 10)
    }

    #[test]
    fn change_is_listed_as_the_deepest_field() {
        let before = json!({"spec": {"replicas": 1, "template": {"containers": [
            {"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]}}});
        let after = json!({"spec": {"replicas": 2, "template": {"containers": [
            {"name": "a", "image": "x:2"}, {"name": "c", "image": "y:1"}]}}});
        assert_eq!(
            of(&before, &after),
            [
                ".spec.replicas",
                r#".spec.template.containers[name="a"].image"#,
                r#".spec.template.containers[name="b"]"#,
                r#".spec.template.containers[name="c"]"#,
            ]
        );
        assert_eq!(changed_fields(&before, &after, 1), [".spec.replicas"]);
    }

    #[test]
    fn list_of_very_many_items_is_compared_in_a_moment() {
        let list = |image: &str| -> Value {
            let items = (0..100_000).map(|index| json!({"name": index.to_string(), "image": "x"}));
            let mut items: Vec<Value> = items.collect();
            items[7]["image"] = image.into();
            json!({ "items": items })
        };
        assert_eq!(of(&list("x"), &list("y")), [r#".items[name="7"].image"#]);
    }

    #[test]
    fn changed_field_has_both_values_and_null_for_none() {
        let (before, after) = (json!({"a": {"b": 1}}), json!({"a": {"b": 2}, "c": [3]}));
        let changes = changed_values(&before, &after, 10);
        let changes: Vec<_> =
            changes.iter().map(|one| (one.path.as_str(), one.before, one.after)).collect();
        assert_eq!(changes, [(".a.b", &json!(1), &json!(2)), (".c", &Value::Null, &json!([3]))]);
    }

    #[test]
    fn list_is_one_field_when_it_has_no_keys_or_another_order() {
        assert_eq!(of(&json!({"args": [1, 2]}), &json!({"args": [1, 3]})), [".args"]);
        let (ab, ba) = (
            json!({"l": [{"name": "a"}, {"name": "b"}]}),
            json!({"l": [{"name": "b"}, {"name": "a"}]}),
        );
        assert_eq!(of(&ab, &ba), [".l"]);
        assert_eq!(of(&ab, &ab), [""; 0]);
    }

    #[test]
    fn added_and_removed_fields_are_listed_without_the_hosts_annotations() {
        let before = json!({"metadata": {"annotations": {"innkeeper.dev/applied": "1", "a": "b"}}});
        let after =
            json!({"metadata": {"annotations": {"innkeeper.dev/applied": "2"}, "labels": {}}});
        assert_eq!(of(&before, &after), [".metadata.annotations.a", ".metadata.labels"]);
        assert_eq!(of(&json!({}), &json!([])), ["."]);
    }
}
