//! What a case asserts of an answer of the real server, in addition to that the simulator's is the
//! same.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::place::{Known, Place, fill, fill_value};
use crate::server::Reply;

/// What is asserted. Members are named by JSON pointers, and in texts braces are replaced as in
/// requests: `{rv:NAME}` is the version before the request. An entry of `managedFields` is named by
/// its manager, as in [`Expect::owns`]: its place in the list depends on the seconds in which
/// others wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Expect {
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// Members with these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub has: BTreeMap<String, Value>,
    /// Members with other values than these.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not: BTreeMap<String, Value>,
    /// Members that are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// How many members or items there are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub count: BTreeMap<String, usize>,
    /// A part of the message of a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub says: String,
    /// All warnings, as in the headers: of both servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warns: Option<Vec<String>>,
    /// All paths that are in conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<BTreeSet<String>>,
    /// All managers with all paths they own. A manager is called by its name if it applied, else by
    /// its name, its operation and, if there is one, the subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owns: Option<BTreeMap<String, BTreeSet<String>>>,
}

impl Expect {
    /// Of which other things an answer warns.
    pub fn unwarned(&self, reply: &Reply) -> Option<String> {
        let warns = self.warns.as_ref().filter(|warns| **warns != reply.warnings)?;
        Some(format!("the warnings should be {warns:?} and are {:?}", reply.warnings))
    }

    /// What an answer is not, in sentences: nothing, if it is as it should be.
    pub fn unmet(&self, reply: &Reply, place: &Place, known: &Known) -> Vec<String> {
        let mut lines = Vec::new();
        let at = |pointer: &str| found(&reply.body, &fill(pointer, place, known));
        let show = |value: Option<&Value>| value.map_or("absent".to_owned(), Value::to_string);
        if let Some(code) = self.code
            && code != reply.code
        {
            lines.push(format!("the code should be {code} and is {}: {}", reply.code, reply.body));
        }
        for (pointer, value) in &self.has {
            let (value, found) = (fill_value(value, place, known), at(pointer));
            if found != Some(&value) {
                lines.push(format!("{pointer} should be {value} and is {}", show(found)));
            }
        }
        for (pointer, value) in &self.not {
            let (value, found) = (fill_value(value, place, known), at(pointer));
            if found == Some(&value) {
                lines.push(format!("{pointer} should not be {value}"));
            }
        }
        for pointer in &self.absent {
            if let Some(found) = at(pointer) {
                lines.push(format!("{pointer} should be absent and is {found}"));
            }
        }
        for (pointer, count) in &self.count {
            let found = at(pointer).map_or(0, |value| match value {
                Value::Array(items) => items.len(),
                Value::Object(map) => map.len(),
                _ => 1,
            });
            if found != *count {
                lines.push(format!("{pointer} should have {count} members and has {found}"));
            }
        }
        let message = reply.body["message"].as_str().unwrap_or_default();
        let says = fill(&self.says, place, known);
        if !message.contains(&says) {
            lines.push(format!("the message should say {says:?} and is {message:?}"));
        }
        lines.extend(self.unwarned(reply));
        if let Some(conflicts) = &self.conflicts {
            let causes = reply.body["details"]["causes"].as_array().into_iter().flatten();
            let found: BTreeSet<String> =
                causes.filter_map(|cause| Some(cause["field"].as_str()?.to_owned())).collect();
            if found != *conflicts {
                lines.push(format!("in conflict should be {conflicts:?} and is {found:?}"));
            }
        }
        if let Some(owns) = &self.owns {
            owned(owns, &reply.body, &mut lines);
        }
        lines
    }
}

/// Where the entries of managers begin.
const ENTRIES: &str = "/metadata/managedFields/";

/// What a pointer names.
fn found<'a>(body: &'a Value, pointer: &str) -> Option<&'a Value> {
    let Some(rest) = pointer.strip_prefix(ENTRIES) else { return body.pointer(pointer) };
    let (manager, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let entries = body["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| name(entry) == manager)?.pointer(rest)
}

/// What the entry of a manager is called: see [`Expect::owns`].
fn name(entry: &Value) -> String {
    let text = |member: &str| entry[member].as_str().unwrap_or_default();
    let mut name = text("manager").to_owned();
    if text("operation") != "Apply" {
        name = format!("{name} {}", text("operation"));
    }
    if !text("subresource").is_empty() {
        name = format!("{name} {}", text("subresource"));
    }
    name
}

fn owned(owns: &BTreeMap<String, BTreeSet<String>>, body: &Value, lines: &mut Vec<String>) {
    let mut found = BTreeMap::new();
    for entry in body["metadata"]["managedFields"].as_array().into_iter().flatten() {
        let mut paths = BTreeSet::new();
        walk("", &entry["fieldsV1"], &mut paths);
        found.insert(name(entry), paths);
    }
    for name in owns.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let (wanted, found) = (owns.get(name), found.get(name));
        if wanted != found {
            lines.push(format!("{name} should own {wanted:?} and owns {found:?}"));
        }
    }
}

/// The paths of a set of fields, as conflicts call them.
fn walk(path: &str, fields: &Value, paths: &mut BTreeSet<String>) {
    let members = fields.as_object();
    if members.is_none_or(serde_json::Map::is_empty) && !path.is_empty() {
        paths.insert(path.to_owned());
    }
    for (key, inner) in members.into_iter().flatten() {
        if key == "." {
            paths.insert(path.to_owned());
        } else if let Some(name) = key.strip_prefix("f:") {
            walk(&format!("{path}.{name}"), inner, paths);
        } else if let Some(value) = key.strip_prefix("v:") {
            walk(&format!("{path}[={value}]"), inner, paths);
        } else if let Some(keys) = key.strip_prefix("k:") {
            let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            walk(&format!("{path}[{}]", keys.join(",")), inner, paths);
        } else {
            walk(&format!("{path}?{key}"), inner, paths);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unmet_expectation_is_reported_in_one_sentence() {
        let place = Place { word: "w".to_owned(), namespace: "n".to_owned() };
        let known = Known::from([("one".to_owned(), ("u".to_owned(), "7".to_owned()))]);
        let fields = json!({"f:spec": {"f:tags": {".": {}, "v:\"a\"": {}}, "f:ports": {"k:{\"port\":80}": {"f:port": {}}}}});
        let body = json!({"metadata": {"name": "onew", "resourceVersion": "7", "managedFields": [
            {"manager": "ann", "operation": "Apply", "fieldsV1": fields}]}});
        let reply = Reply { code: 200, body, warnings: vec!["299 - \"w\"".to_owned()] };
        let expect = |value: Value| -> Vec<String> {
            let expect: Expect = serde_json::from_value(value).expect("it is one");
            expect.unmet(&reply, &place, &known)
        };
        let own = json!({"ann": [".spec.tags", ".spec.tags[=\"a\"]", ".spec.ports[port=80].port"]});
        assert!(
            expect(json!({"code": 200, "has": {"/metadata/name": "one{s}", "/metadata/resourceVersion": "{rv:one}"},
                "not": {"/metadata/name": "one"}, "absent": ["/spec"], "count": {"/metadata/managedFields": 1, "/metadata/managedFields/ann": 3}, "owns": own}))
            .is_empty()
        );
        for wrong in [
            json!({"code": 201}),
            json!({"has": {"/metadata/name": "one"}}),
            json!({"has": {"/metadata/labels": {}}}),
            json!({"not": {"/metadata/resourceVersion": "{rv:one}"}}),
            json!({"absent": ["/metadata/name"]}),
            json!({"count": {"/metadata/managedFields": 2}}),
            json!({"says": "no"}),
            json!({"warns": []}),
            json!({"conflicts": [".spec"]}),
            json!({"owns": {"ann": [".spec.tags"]}}),
            json!({"owns": {}}),
            json!({"has": {"/metadata/managedFields/ann Update/manager": "ann"}}),
            json!({"has": {"/metadata/managedFields/0/manager": "ann"}}),
        ] {
            assert_eq!(expect(wrong.clone()).len(), 1, "{wrong}");
        }
    }
}
