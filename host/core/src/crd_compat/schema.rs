//! Whether one schema accepts every value that another accepts, and prunes nothing of it.
//!
//! A change that is not proven to accept as much is incompatible: a keyword that this file does not
//! know must not change.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Number, Value, json};

use super::findings::Findings;
use super::normal::{EMPTIED, with_type_and_object_meta};

/// Keywords whose number may only grow.
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords whose number may only shrink.
const LOWER: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];

/// Keywords that may be removed, and must not be added or changed.
const ONLY_LOOSER: [&str; 10] = [
    "pattern",
    "format",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];

/// Flags that may be added, and must not be removed.
const ONLY_ADDED: [&str; 3] =
    ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "nullable"];

/// Keywords that have a function of their own below.
const COMPARED: [&str; 8] = [
    "type",
    "enum",
    "default",
    "required",
    "properties",
    "items",
    "additionalProperties",
    "x-kubernetes-validations",
];

/// Which constraints of the objects around a place a new default can violate.
#[derive(Clone, Copy, Default)]
struct Guard {
    /// The innermost object bounds the number of its members.
    counts: bool,
    /// One of the objects has a logical keyword.
    logical: bool,
    /// One of the objects has a rule. The API server accepts no rule about an undefined field, so a
    /// rule says nothing about a new field.
    rules: bool,
}

impl Guard {
    fn below(self, schema: &Value) -> Self {
        let has = |keyword: &str| schema.get(keyword).is_some();
        Self {
            counts: has("maxProperties"),
            logical: self.logical || ["allOf", "anyOf", "oneOf", "not"].into_iter().any(has),
            rules: self.rules || has("x-kubernetes-validations"),
        }
    }

    fn forbids_new_members(self) -> bool {
        self.counts || self.logical
    }

    fn forbids_new_defaults(self) -> bool {
        self.forbids_new_members() || self.rules
    }
}

/// A schema that accepts every value.
static ANYTHING: LazyLock<Value> =
    LazyLock::new(|| json!({"x-kubernetes-preserve-unknown-fields": true, "nullable": true}));

/// How a schema treats a member.
enum Member<'a> {
    /// It accepts values of this schema.
    Of(&'a Value),
    /// It accepts any value.
    Anything,
    /// The API server prunes it, so no stored object has it.
    Pruned,
}

/// Compares the schemas of whole objects, both in normal form.
pub(super) fn compare_objects(old: &Value, new: &Value, found: &mut Findings) {
    let (old, new) = match (old.is_object(), new.is_object()) {
        (_, false) if old == new => return,
        (_, false) => return found.add("the object has no schema".to_owned()),
        (false, true) => (ANYTHING.clone(), new.clone()),
        (true, true) => (old.clone(), new.clone()),
    };
    compare(
        &with_type_and_object_meta(old),
        &with_type_and_object_meta(new),
        &mut String::new(),
        Guard::default(),
        found,
    );
}

fn compare(old: &Value, new: &Value, path: &mut String, guard: Guard, found: &mut Findings) {
    if old == new || found.is_full() {
        return;
    }
    if !old.is_object() || !new.is_object() {
        return found.add_at(path, "has another schema");
    }
    if is_set(old, EMBEDDED) && is_set(new, EMBEDDED) && !has_object_meta(old) {
        let (old, new) =
            (with_type_and_object_meta(old.clone()), with_type_and_object_meta(new.clone()));
        if !has_object_meta(&old) {
            return found.add_at(path, "has properties that are no object");
        }
        return compare(&old, &new, path, guard, found);
    }
    if !accepts_type(old, new) {
        return found.add_at(path, "has another type");
    }
    keywords(old, new, path, found);
    defaults(old, new, path, guard, found);
    let guard = guard.below(new);
    members(old, new, path, guard, found);
    items(old, new, path, guard, found);
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

fn is_set(schema: &Value, flag: &str) -> bool {
    schema.get(flag) == Some(&Value::Bool(true))
}

/// Whether a schema has the members that [`with_type_and_object_meta`] adds.
fn has_object_meta(schema: &Value) -> bool {
    schema.pointer("/properties/metadata/properties/generateName").is_some()
}

/// Whether the new type accepts all values of the old one.
fn accepts_type(old: &Value, new: &Value) -> bool {
    let (was, now) = (old.get("type"), new.get("type"));
    match (was, now) {
        (was, Some(_)) => was == now,
        (was, None) if is_set(new, INT_OR_STRING) => {
            is_set(old, INT_OR_STRING) || was.is_some_and(|was| was == "integer" || was == "string")
        }
        (_, None) => true,
    }
}

fn keywords(old: &Value, new: &Value, path: &str, found: &mut Findings) {
    for flag in ONLY_ADDED {
        if is_set(old, flag) && !is_set(new, flag) {
            found.add_at(path, &format!("loses {flag}"));
        }
    }
    for keyword in ONLY_LOOSER {
        if new.get(keyword).is_some_and(|now| old.get(keyword) != Some(now)) {
            found.add_at(path, &format!("has another {keyword}"));
        }
    }
    let wrong = |keyword: &str, worse: Ordering| {
        let (was, now) = (old.get(keyword), new.get(keyword));
        now.is_some() && was != now && {
            let numbers = was.and_then(Value::as_number).zip(now.and_then(Value::as_number));
            numbers.and_then(|(was, now)| order(now, was)).is_none_or(|order| order == worse)
        }
    };
    for keyword in UPPER.into_iter().filter(|keyword| wrong(keyword, Ordering::Less)) {
        found.add_at(path, &format!("has a smaller {keyword}"));
    }
    for keyword in LOWER.into_iter().filter(|keyword| wrong(keyword, Ordering::Greater)) {
        found.add_at(path, &format!("has a greater {keyword}"));
    }
    values(old, new, path, found);
    let known = rules(old);
    for rule in rules(new).difference(&known) {
        found.add_at(path, &format!("has a new rule: {}", rule.0));
    }
    let names = |schema: &Value| -> BTreeSet<String> {
        schema.as_object().into_iter().flat_map(Map::keys).cloned().collect()
    };
    let is_known = |name: &str| {
        [&ONLY_ADDED[..], &ONLY_LOOSER[..], &UPPER[..], &LOWER[..], &COMPARED[..]]
            .iter()
            .any(|known| known.contains(&name))
    };
    for name in names(old).union(&names(new)).filter(|name| !is_known(name)) {
        if old.get(name) != new.get(name) {
            found.add_at(path, &format!("has another {name}"));
        }
    }
}

/// Compares two numbers; integers exactly.
fn order(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn values(old: &Value, new: &Value, path: &str, found: &mut Findings) {
    let Some(allowed) = new.get("enum") else { return };
    let texts = |values: &Value| -> BTreeSet<String> {
        values.as_array().into_iter().flatten().map(ToString::to_string).collect()
    };
    match old.get("enum") {
        None => found.add_at(path, "takes certain values only"),
        Some(was) => {
            for value in texts(was).difference(&texts(allowed)) {
                found.add_at(path, &format!("no longer takes {value}"));
            }
        }
    }
}

/// The text of each rule, and whether the API server checks it for new objects too.
fn rules(schema: &Value) -> BTreeSet<(String, bool)> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    let rule = |rule: &Value| {
        let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
        (text.to_owned(), is_set(rule, "optionalOldSelf"))
    };
    rules.into_iter().flatten().map(rule).collect()
}

fn defaults(old: &Value, new: &Value, path: &str, guard: Guard, found: &mut Findings) {
    match (old.get("default"), new.get("default")) {
        (Some(_), None) => found.add_at(path, "loses its default"),
        (Some(was), Some(now)) if was != now => found.add_at(path, "has another default"),
        (None, Some(_)) if guard.forbids_new_defaults() => found.add_at(path, NEW_DEFAULT),
        _ => {}
    }
}

pub(super) const NEW_DEFAULT: &str =
    "has a new default within an object that has maxProperties, a rule or a logical keyword";

fn member<'a>(schema: &'a Value, name: &str) -> Member<'a> {
    property(schema, name).map_or_else(|| unnamed_members(schema), Member::Of)
}

/// How a schema treats members that it does not name.
fn unnamed_members(schema: &Value) -> Member<'_> {
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => Member::Of(&EMPTIED),
        Some(others) if others.is_object() => Member::Of(others),
        _ if is_set(schema, PRESERVE) => Member::Anything,
        _ => Member::Pruned,
    }
}

fn members(old: &Value, new: &Value, path: &mut String, guard: Guard, found: &mut Findings) {
    let was_required: BTreeSet<&str> = required(old).collect();
    for name in required(new).filter(|name| !was_required.contains(name)) {
        // A default fills in the member.
        let default = property(new, name).and_then(|one| one.get("default"));
        if default.is_none() {
            found.add_at(path, &format!("needs {name}"));
        }
    }
    let names: BTreeSet<&String> = properties(old).chain(properties(new)).collect();
    let length = path.len();
    for name in names {
        path.push('.');
        path.push_str(name);
        match (member(old, name), member(new, name)) {
            (Member::Pruned, Member::Of(added)) => {
                if guard.forbids_new_members() && added.get("default").is_some() {
                    found.add_at(path, NEW_DEFAULT);
                }
            }
            (was, now) => compare_members(&was, &now, path, guard, found),
        }
        path.truncate(length);
    }
    path.push_str("{}");
    match (unnamed_members(old), unnamed_members(new)) {
        (Member::Pruned, _) => {}
        // `keywords` reports the removed flag.
        (Member::Anything, Member::Pruned) if is_set(old, PRESERVE) => {}
        (was, now) => compare_members(&was, &now, path, guard, found),
    }
    path.truncate(length);
}

fn compare_members(
    was: &Member<'_>,
    now: &Member<'_>,
    path: &mut String,
    guard: Guard,
    found: &mut Findings,
) {
    match (was, now) {
        (Member::Pruned, _) | (_, Member::Anything) => {}
        (_, Member::Pruned) => found.add_at(path, "is gone"),
        (Member::Of(was), Member::Of(now)) => compare(was, now, path, guard, found),
        (Member::Anything, Member::Of(now)) => compare(&ANYTHING, now, path, guard, found),
    }
}

fn items(old: &Value, new: &Value, path: &mut String, guard: Guard, found: &mut Findings) {
    let length = path.len();
    path.push_str("[]");
    let accepts_lists = old.get("type").is_none_or(|kind| kind == "array");
    match (old.get("items"), new.get("items")) {
        (Some(was), Some(now)) => compare(was, now, path, guard, found),
        (Some(_), None) if !is_set(new, PRESERVE) => found.add_at(path, "is gone"),
        (None, Some(now)) if accepts_lists && is_set(old, PRESERVE) || is_list(old) => {
            compare(&ANYTHING, now, path, guard, found);
        }
        _ => {}
    }
    path.truncate(length);
}

fn is_list(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "array")
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn properties(schema: &Value) -> impl Iterator<Item = &String> {
    schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}
