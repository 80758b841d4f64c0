//! Whether an object that is as it is desired shows that the server accepts a change of another.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::diff::key;

/// The host's own annotations, which differ between any two objects.
const OWN_ANNOTATIONS: &str = "innkeeper.dev/";

/// Returns whether an object has the change that would make a live object the desired one: at each
/// place where the two differ, the body of `proof` is as desired.
///
/// A field that only the live object has is a default of the server, unless `proof` has it: then
/// the change may be its removal, and `proof` does not show that.
pub(super) fn has_change(proof: &Value, live: &Value, desired: &Value) -> bool {
    walk(Place::Object, Some(proof), live, desired)
}

/// Where in an object a value is.
#[derive(Clone, Copy)]
enum Place {
    Object,
    Metadata,
    Annotations,
    Other,
}

impl Place {
    /// The place of a member; `None` if the member is the host's own.
    fn member(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Object, "metadata") => Some(Self::Metadata),
            (Self::Metadata, "annotations") => Some(Self::Annotations),
            (Self::Annotations, name) if name.starts_with(OWN_ANNOTATIONS) => None,
            _ => Some(Self::Other),
        }
    }
}

/// The items of a list by the member that identifies them, and its value.
type Keyed<'a> = BTreeMap<(&'static str, &'a str), &'a Value>;

fn walk(place: Place, proof: Option<&Value>, live: &Value, desired: &Value) -> bool {
    if live == desired {
        return true;
    }
    match (live, desired) {
        (Value::Object(old), Value::Object(new)) => {
            let proof = |name: &str| proof.and_then(|proof| proof.get(name));
            let is_default = |name: &String| {
                new.contains_key(name) || place.member(name).is_none() || proof(name).is_none()
            };
            old.keys().all(is_default)
                && new.iter().all(|(name, new)| {
                    place
                        .member(name)
                        .is_none_or(|place| item(place, proof(name), old.get(name), new))
                })
        }
        (Value::Array(old), Value::Array(new)) => {
            let lists = keyed(old).zip(keyed(new)).zip(keyed(items(proof)));
            lists.filter(|((live, desired), _)| is_same_order(old, live, new, desired)).map_or_else(
                || proof == Some(desired),
                |((old, new), proof)| {
                    old.keys().all(|key| new.contains_key(key) || !proof.contains_key(key))
                        && new.iter().all(|(key, new)| {
                            let (proof, old) = (proof.get(key).copied(), old.get(key).copied());
                            item(Place::Other, proof, old, new)
                        })
                },
            )
        }
        _ => proof == Some(desired),
    }
}

/// The same for a value that the live object may lack.
fn item(place: Place, proof: Option<&Value>, live: Option<&Value>, desired: &Value) -> bool {
    live.map_or_else(|| proof == Some(desired), |live| walk(place, proof, live, desired))
}

fn items(list: Option<&Value>) -> &[Value] {
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The items by their keys; `None` if an item has none, or the one of another item.
fn keyed(items: &[Value]) -> Option<Keyed<'_>> {
    let keyed: Keyed<'_> = items.iter().filter_map(|item| Some((key(item)?, item))).collect();
    (keyed.len() == items.len()).then_some(keyed)
}

/// Whether the items that both lists have are in the same order.
fn is_same_order(
    live: &[Value],
    live_keys: &Keyed<'_>,
    desired: &[Value],
    desired_keys: &Keyed<'_>,
) -> bool {
    let in_live = live.iter().filter_map(key).filter(|key| desired_keys.contains_key(key));
    in_live.eq(desired.iter().filter_map(key).filter(|key| live_keys.contains_key(key)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A proof, a live object and a desired one, and whether the proof has the change.
    fn check(proof: &Value, live: &Value, desired: &Value, expected: bool) {
        assert_eq!(has_change(proof, live, desired), expected, "{proof} {live} {desired}");
    }

    #[test]
    fn proof_has_a_change_whose_fields_it_has_alike() {
        let pod = |image: &str| json!({"spec": {"image": image}});
        check(&pod("2"), &pod("1"), &pod("2"), true);
        check(&pod("1"), &pod("1"), &pod("2"), false);
        check(&json!({}), &pod("1"), &pod("2"), false);
        check(&json!("pod"), &pod("1"), &pod("2"), false);
        check(&json!({"a": {"b": 1}}), &json!({}), &json!({"a": {"b": 1}}), true);
        check(&json!({"a": {"b": 1, "c": 2}}), &json!({}), &json!({"a": {"b": 1}}), false);
        // Fields that the change does not concern.
        let (live, desired) = (json!({"name": "b", "n": 1}), json!({"name": "b", "n": 2}));
        check(&json!({"name": "a", "n": 2, "own": 3}), &live, &desired, true);
        check(&json!({"name": "a"}), &live, &live, true);
    }

    #[test]
    fn proof_that_keeps_a_removed_field_has_no_change() {
        let live = json!({"n": 1, "removed": 1, "default": 1});
        check(&json!({"n": 1}), &live, &json!({"n": 1}), true);
        check(&json!({"n": 1, "removed": 2}), &live, &json!({"n": 1}), false);
        let list = |names: &[&str]| -> Value {
            let items: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
            json!({ "items": items })
        };
        check(&list(&["a"]), &list(&["a", "b"]), &list(&["a"]), true);
        check(&list(&["a", "b"]), &list(&["a", "b"]), &list(&["a"]), false);
    }

    #[test]
    fn lists_are_compared_by_the_keys_of_their_items() {
        let list = |items: &[(&str, u32)]| -> Value {
            items.iter().map(|(name, image)| json!({"name": name, "image": image})).collect()
        };
        check(&list(&[("a", 2)]), &list(&[("a", 1), ("b", 1)]), &list(&[("a", 2), ("b", 1)]), true);
        check(&list(&[("a", 1)]), &list(&[("a", 1)]), &list(&[("a", 1), ("b", 1)]), false);
        check(&list(&[("b", 1)]), &list(&[("a", 1)]), &list(&[("a", 1), ("b", 1)]), true);
        // Another order is a change of its own.
        let (ab, ba) = (list(&[("a", 1), ("b", 1)]), list(&[("b", 1), ("a", 1)]));
        check(&ab, &ba, &ab, true);
        check(&ba, &ab, &ba, true);
        check(&ab, &ab, &ba, false);
        // Without keys, a list is one value.
        check(&json!([1, 2]), &json!([1]), &json!([1, 2]), true);
        check(&json!([2]), &json!([1]), &json!([1, 2]), false);
        let twice = list(&[("a", 1), ("a", 2)]);
        check(&twice, &list(&[("a", 1)]), &twice, true);
        check(&list(&[("a", 2)]), &list(&[("a", 1)]), &twice, false);
    }

    #[test]
    fn annotations_of_the_host_are_no_change() {
        let pod = |digest: &str, owner: &str| json!({"metadata": {"annotations": {"innkeeper.dev/applied": digest, "owner": owner}}});
        check(&pod("1", "x"), &pod("2", "y"), &pod("3", "y"), true);
        check(&pod("1", "x"), &pod("2", "y"), &pod("3", "z"), false);
        let template = json!({"spec": {"innkeeper.dev/applied": "1"}});
        check(&json!({}), &json!({"spec": {}}), &template, false);
    }
}
