//! The names of the members of an Event in its two groups. The state stores it as an Event of the
//! core group.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The other group, and its version.
pub(crate) const GROUP: &str = "events.k8s.io";
pub(crate) const API_VERSION: &str = "events.k8s.io/v1";

/// What a member is called there and in the core group.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// As the core group calls a member of the other one.
pub(crate) fn core(name: &str) -> &str {
    NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, core)| core)
}

/// As the other group calls a member of the core one.
pub(crate) fn other(name: &str) -> &str {
    NAMES.iter().find(|(_, core)| *core == name).map_or(name, |(other, _)| other)
}

/// The same members with other names.
pub(crate) fn renamed(object: &Map<String, Value>, name: fn(&str) -> &str) -> Map<String, Value> {
    object.iter().map(|(key, value)| (name(key).to_owned(), value.clone())).collect()
}

/// The same of the fields that a manager owns, if they are those of an Event of the other group.
pub(crate) fn renamed_fields<'a>(
    version: &str,
    fields: Cow<'a, Value>,
    name: fn(&str) -> &str,
) -> Cow<'a, Value> {
    match fields.as_object() {
        Some(map) if version == API_VERSION => {
            let named = |key: &str| match key.strip_prefix("f:") {
                Some(member) => format!("f:{}", name(member)),
                None => key.to_owned(),
            };
            let map: Map<_, _> =
                map.iter().map(|(key, value)| (named(key), value.clone())).collect();
            Cow::Owned(map.into())
        }
        _ => fields,
    }
}
