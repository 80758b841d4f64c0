//! The comparison of a desired object with an entry of `managedFields`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::fieldset::{Element, FieldSet, Node, json};

/// Members of `metadata` that the server never puts into an entry of `managedFields`.
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

/// Whether an entry of `managedFields` is the one that applying a desired object would give.
///
/// - Items of a list are paired with the entry's items by the keys that `desired` has: the server
///   fills in defaults of keys (`protocol` of a port), so items with more keys are paired first,
///   and no two items share an item of the entry.
/// - Members of a set are compared as a set.
/// - A leaf of the entry stands for its whole value.
/// - `apiVersion`, `kind`, the name and other members that the server never puts into an entry do
///   not count, and neither does a status that the server ignored.
pub fn matches(desired: &Value, entry: &FieldSet) -> bool {
    Comparison::default().root(desired, entry, None)
}

/// One comparison of a desired object with an entry.
#[derive(Default)]
pub(super) struct Comparison {
    /// A leaf of the entry stands where the desired object has an object with members: either the
    /// server keeps that object whole, or the manager owns none of its members any more.
    pub(super) ambiguous: bool,
}

/// The keys of an item of a list: names, and values as JSON text.
type Keys = BTreeMap<Box<str>, Box<str>>;

/// The live value at the place of a desired one: `None` if the comparison reads no live values,
/// `Some(Null)` if the live object has none there.
type Live<'a> = Option<&'a Value>;

impl Comparison {
    /// Compares a whole object with an entry, and with the live object if it is given.
    pub(super) fn root(&mut self, desired: &Value, entry: &FieldSet, live: Live<'_>) -> bool {
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

    /// Compares a value with the element of its field or item.
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

    /// A leaf of the entry stands for its whole value. But where a map (an object whose names are
    /// no fields of a schema) loses all its members to other managers, it stays as a leaf as well.
    /// Only the live values distinguish the two.
    fn leaf(&mut self, desired: &Value, live: Live<'_>) -> bool {
        if desired.as_object().is_none_or(Map::is_empty) {
            return true;
        }
        self.ambiguous = true;
        live.is_none_or(|live| holds(desired, live))
    }

    /// Compares the members of an object: the entry must have exactly their fields.
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

    /// Compares the items of a list, by whichever kind of element the entry has.
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

    /// Pairs items with those of the entry; items with more keys first.
    fn keyed<'a>(
        &mut self,
        desired: &[Value],
        mut entry: Vec<(&'a Keys, &'a Node)>,
        live: Live<'_>,
    ) -> bool {
        if entry.is_empty() {
            // All items are by index, and each was compared already.
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

/// The live value of a field.
fn at<'a>(live: Live<'a>, name: &str) -> Live<'a> {
    live.map(|live| live.get(name).unwrap_or(&Value::Null))
}

/// Whether a live value still holds a desired one. The live value may have more members
/// (defaults), and empty values may be missing.
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
    fn value_that_is_no_object_matches_no_entry() {
        let fields = json!({"f:metadata": {"f:annotations": {"f:a": {}}}});
        for value in [json!("x"), json!({"metadata": "x"}), json!({"metadata": {"annotations": 1}})]
        {
            check(&value, &fields, false);
        }
    }

    #[test]
    fn api_version_kind_and_names_are_expected_in_no_entry() {
        let desired = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1"}});
        check(&desired, &json!({}), true);
        check(&desired, &json!({"f:data": {"f:a": {}}}), false);
        check(&json!({"status": {"a": 1}}), &json!({}), true);
        check(&json!({"status": {"a": 1}}), &json!({"f:status": {"f:a": {}}}), true);
        check(&json!({"status": {"a": 1}}), &json!({"f:status": {"f:b": {}}}), false);
    }

    #[test]
    fn items_with_more_keys_are_paired_first() {
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
    fn sets_match_in_any_order() {
        let fields = json!({"f:tags": {"v:\"a\"": {}, "v:1": {}}});
        check(&json!({"tags": [1, "a"]}), &fields, true);
        check(&json!({"tags": ["1", "a"]}), &fields, false);
        check(&json!({"tags": ["a"]}), &fields, false);
        check(&json!({"tags": {"a": 1}}), &fields, false);
    }

    #[test]
    fn items_by_index_match_in_place_only() {
        let fields = json!({"f:list": {"i:0": {"f:a": {}}, "i:1": {}}});
        check(&json!({"list": [{"a": 1}, 2]}), &fields, true);
        check(&json!({"list": [2, {"a": 1}]}), &fields, false);
    }

    #[test]
    fn leaf_stands_for_the_whole_value_and_struct_for_its_members() {
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
    fn live_value_holds_a_desired_one_when_it_has_more_members() {
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
