//! Random strategic merge patches and JSON patches that use all that these can say.

use serde_json::{Map, Value, json};

use crate::case::Step;
use crate::maker::Maker;

/// The members that lists of objects are merged by.
const KEYS: [&str; 6] = ["name", "containerPort", "port", "mountPath", "type", "uid"];
/// The lists of objects that are merged. An order of another makes the real server break off.
const MERGED: [&str; 8] = [
    "containers",
    "env",
    "ports",
    "volumes",
    "volumeMounts",
    "imagePullSecrets",
    "conditions",
    "ownerReferences",
];
/// Kinds whose rules the simulator does not know: nothing is taken out of them. See
/// docs/simulator.md.
const RULED: [&str; 3] = ["Ingress", "NetworkPolicy", "PersistentVolumeClaim"];
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON: &str = "application/json-patch+json";

/// What tells an item of a list from the others: a member, or the item itself.
fn id(item: &Value) -> Option<Value> {
    let Some(map) = item.as_object() else { return Some(item.clone()) };
    let key = KEYS.iter().find(|key| map.contains_key(**key))?;
    Some(json!({ *key: map[*key] }))
}

/// All places of a document that are maps or lists, as JSON pointers, without what is always there.
fn places(path: &str, value: &Value, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(name, value)| (escaped(name), value)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        _ => return,
    };
    for (name, child) in children {
        let path = format!("{path}/{name}");
        if matches!(path.as_str(), "/apiVersion" | "/kind" | "/metadata/name") {
            continue;
        }
        places(&path, child, found);
        found.push(path);
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl Maker<'_> {
    /// A strategic merge patch with directives.
    pub(crate) fn strategic_patch(&mut self) -> Step {
        if !self.subject.strategic {
            return self.pointers();
        }
        let (name, manager, extra) = (self.name(), self.manager(), self.extra());
        let mut object = self.right_object(name);
        // Which of two mistakes the server reports is chance.
        let mut mistakes = u8::from(self.one_in(8));
        if RULED.contains(&self.subject.kind) {
            self.direct(&mut object["metadata"], 1, &mut mistakes);
        } else {
            self.direct(&mut object, 0, &mut mistakes);
        }
        let path = self.path(name, &format!("?fieldManager={manager}{extra}"));
        self.make("PATCH", path, STRATEGIC, object, "strategic patch")
    }

    /// Puts directives into a patch.
    fn direct(&mut self, value: &mut Value, depth: u8, mistakes: &mut u8) {
        let Some(map) = value.as_object_mut() else { return };
        let names: Vec<String> = map.keys().cloned().collect();
        for name in &names {
            match &mut map[name] {
                Value::Object(_) if self.one_in(9) && name != "metadata" => {
                    // Nothing but the directive, or with what is to be there afterwards.
                    let whole = self.rng.bool();
                    self.replace(&mut map[name], whole, mistakes);
                }
                inner @ Value::Object(_) => self.direct(inner, depth + 1, mistakes),
                Value::Array(items) => {
                    // An account's are not, as a Pod's are.
                    let merged = MERGED.contains(&name.as_str())
                        && (self.subject.kind != "ServiceAccount" || name != "imagePullSecrets");
                    let plain = items.iter().all(|item| !item.is_object());
                    for item in items.iter_mut().filter(|_| merged) {
                        self.direct(item, depth + 1, mistakes);
                    }
                    if merged || (plain && !items.is_empty()) {
                        self.list_directives(map, name, mistakes);
                    }
                }
                // A value that is to go.
                _ if self.one_in(14) && depth > 1 && !KEYS.contains(&name.as_str()) => {
                    map[name] = Value::Null;
                }
                _ => {}
            }
        }
        if depth > 0 && self.one_in(12) && !names.is_empty() {
            // All but one, if there is a mistake.
            let mut kept: Vec<Value> = names.iter().map(|name| name.as_str().into()).collect();
            if *mistakes > 0 && self.rng.bool() {
                *mistakes -= 1;
                kept.remove(self.rng.usize(..kept.len()));
            }
            if self.rng.bool() {
                kept.push("other".into());
            }
            map.insert("$retainKeys".to_owned(), kept.into());
        }
    }

    /// Makes a map replace what is there, or take it away.
    fn replace(&mut self, value: &mut Value, whole: bool, mistakes: &mut u8) {
        let word = if *mistakes > 0 && self.rng.bool() {
            *mistakes -= 1;
            "other"
        } else {
            ["replace", "replace", "delete", "merge"][self.rng.usize(..4)]
        };
        if whole && word == "delete" {
            *value = json!({});
        }
        value["$patch"] = word.into();
    }

    /// Directives about a list, next to it or in its items.
    fn list_directives(&mut self, map: &mut Map<String, Value>, name: &str, mistakes: &mut u8) {
        let items = map[name].as_array().cloned().unwrap_or_default();
        let mut ids: Vec<Value> = items.iter().filter_map(id).collect();
        let plain = items.iter().all(|item| !item.is_object());
        match self.rng.u8(..9) {
            // Some items are taken away, by name.
            0 if !plain => {
                let mut left = items.clone();
                for item in &mut left {
                    if self.rng.bool()
                        && let Some(mut gone) = id(item)
                    {
                        gone["$patch"] = "delete".into();
                        *item = gone;
                    }
                }
                map[name] = left.into();
            }
            // The list replaces what is there.
            1 if !plain => {
                let mut left = items.clone();
                left.push(json!({"$patch": "replace"}));
                map[name] = left.into();
            }
            // Something is taken out of a list of texts, and perhaps something else put in.
            2 if plain => {
                let gone = if self.rng.bool() {
                    items.clone()
                } else {
                    vec!["-a".into(), "x.dev/a".into()]
                };
                map.insert(format!("$deleteFromPrimitiveList/{name}"), gone.into());
                if self.rng.bool() {
                    map.remove(name);
                }
            }
            // An order: of what is there and of what is not.
            3..6 => {
                let fits = *mistakes == 0 || self.rng.bool();
                if !fits {
                    *mistakes -= 1;
                    self.rng.shuffle(&mut ids);
                    ids.truncate(1);
                } else if self.rng.bool() {
                    let place = self.rng.usize(..=ids.len());
                    if let Some(more) = other(&items) {
                        ids.insert(place, more);
                    }
                }
                map.insert(format!("$setElementOrder/{name}"), ids.clone().into());
                if fits && self.one_in(3) {
                    // Only the order: of what the last write made.
                    map.remove(name);
                    if let Some(order) = map
                        .get_mut(&format!("$setElementOrder/{name}"))
                        .and_then(Value::as_array_mut)
                    {
                        order.reverse();
                    }
                }
            }
            _ => {}
        }
    }

    /// A JSON patch that moves, copies and tests, with places in lists.
    pub(crate) fn pointers(&mut self) -> Step {
        let (name, manager) = (self.name(), self.manager());
        let object = self.right_object(name);
        let mut places_found = Vec::new();
        places("", &object, &mut places_found);
        if RULED.contains(&self.subject.kind) {
            places_found.retain(|place| !place.starts_with("/spec/"));
        }
        let mut operations = Vec::new();
        // What is put there first can be moved.
        for member in ["spec", "data"] {
            if object[member].is_object() && self.rng.u8(..4) > 0 {
                operations.push(
                    json!({"op": "add", "path": format!("/{member}"), "value": object[member]}),
                );
            }
        }
        if !object["metadata"]["labels"].is_null() {
            operations.push(json!({"op": "add", "path": "/metadata/labels", "value": object["metadata"]["labels"]}));
        }
        for _ in 0..self.rng.usize(1..4) {
            let Some(from) = places_found.get(self.rng.usize(..places_found.len().max(1))).cloned()
            else {
                break;
            };
            let value = object.pointer(&from).cloned().unwrap_or_default();
            let to = self.target(&from, &places_found);
            operations.push(match self.rng.u8(..12) {
                0..3 => json!({"op": "move", "from": from, "path": to}),
                3..6 => json!({"op": "copy", "from": from, "path": to}),
                6..9 => json!({"op": "test", "path": from, "value": value}),
                9 => json!({"op": "test", "path": from, "value": Value::Null}),
                10 => json!({"op": "remove", "path": from}),
                _ => json!({"op": "add", "path": to, "value": value}),
            });
        }
        let path = self.path(name, &format!("?fieldManager={manager}"));
        self.make("PATCH", path, JSON, operations.into(), "json patch")
    }

    /// Where something is moved or copied to: another name next to it, another place in its list,
    /// or where something like it is.
    fn target(&mut self, from: &str, places: &[String]) -> String {
        let Some((parent, last)) = from.rsplit_once('/') else { return from.to_owned() };
        if last.parse::<usize>().is_ok() {
            let place = ["0", "1", "-", "-1", "9", "x"][self.rng.usize(..6)];
            return format!("{parent}/{place}");
        }
        let siblings: Vec<&String> = places
            .iter()
            .filter(|place| place.rsplit_once('/').is_some_and(|(other, _)| other == parent))
            .collect();
        match self.rng.u8(..8) {
            0 => format!("{parent}/b"),
            1 => format!("{parent}/none/b"),
            2 => places[self.rng.usize(..places.len())].clone(),
            3 => from.to_owned(),
            _ => siblings[self.rng.usize(..siblings.len())].clone(),
        }
    }
}

/// What another item of such a list would be called.
fn other(items: &[Value]) -> Option<Value> {
    match items.first().and_then(id)? {
        Value::Object(map) => {
            let (key, value) = map.into_iter().next()?;
            let other = if value.is_number() { json!(81) } else { json!("b") };
            Some(json!({ key: other }))
        }
        _ => Some(json!("-b")),
    }
}
