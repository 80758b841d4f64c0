//! Answers made comparable: without what chance, the clock and the history of a server put into
//! them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Who owns what of the condition that a definition is being deleted.
const ENDING: &str = "k:{\"type\":\"Terminating\"}";

/// What one server has called things so far, with the names they get here.
#[derive(Clone, Debug, Default)]
pub struct Names {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, String>,
}

fn name(known: &mut BTreeMap<String, String>, word: &str, text: &str) -> String {
    let next = known.len();
    known.entry(text.to_owned()).or_insert_with(|| format!("{word}-{next}")).clone()
}

fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && text.ends_with('Z')
}

fn is_uid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

impl Names {
    /// The comparable form of an answer.
    pub fn normal(&mut self, value: &Value) -> Value {
        let mut value = value.clone();
        // The version of a list counts what others write too.
        if value["items"].is_array()
            && let Some(metadata) = value["metadata"].as_object_mut()
        {
            metadata.remove("resourceVersion");
        }
        let mut value = self.walk("", &value);
        // What is wrong with a built-in object is compared by the code: see docs/simulator.md.
        let custom =
            value["details"]["group"].as_str().is_some_and(|group| group.contains("innkeeper"));
        let causes = value["details"]["causes"].as_array();
        let content = causes.is_some_and(|causes| {
            causes.iter().any(|cause| {
                let field = cause["field"].as_str().unwrap_or_default();
                !field.is_empty() && !field.starts_with("metadata") && field != "patch"
            })
        });
        if value["reason"] == "Invalid"
            && content
            && !custom
            && value["details"]["group"] != "meta.k8s.io"
        {
            value["message"] = Value::Null;
            value["details"]["causes"] = Value::Null;
        }
        value
    }

    fn walk(&mut self, member: &str, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(member, text).into(),
            Value::Array(items) => {
                let mut items: Vec<Value> =
                    items.iter().map(|item| self.walk(member, item)).collect();
                // Managers are ordered by time, causes by chance.
                if matches!(member, "managedFields" | "causes") {
                    items.sort_by_key(Value::to_string);
                    // How often the same is reported is not compared.
                    items.dedup();
                }
                Value::Array(items)
            }
            Value::Object(map) => {
                if map.get("field").is_some_and(|field| field == "patch") {
                    // What a patch would have made, and what Go says of it, is not compared.
                    return Value::from("a patch that does not fit");
                }
                // In the order of names, so that both servers name things alike.
                let ordered: BTreeMap<&String, &Value> = map.iter().collect();
                let mut result = serde_json::Map::new();
                for (name, value) in ordered {
                    // Whether a later word about a definition's end has another time depends on the
                    // second in which it is written.
                    if name == "f:lastTransitionTime" && member == ENDING {
                        continue;
                    }
                    let key = self.embedded(name);
                    result.insert(key, self.walk(name, value));
                }
                Value::Object(result)
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, member: &str, text: &str) -> String {
        match member {
            "resourceVersion" if !text.is_empty() => name(&mut self.versions, "version", text),
            "continue" if !text.is_empty() => "continue".to_owned(),
            "message" => {
                // Of several problems the order is chance.
                let mut text = self.embedded(text);
                if text.contains("too old resource version")
                    || text.contains("Too large resource version")
                    || text.contains("ResourceVersion in record")
                    || text.contains("ResourceVersion in object meta")
                {
                    text.retain(|one| !one.is_ascii_digit());
                }
                // In what words Go finds a type wrong is not compared.
                for words in [
                    "cannot unmarshal",
                    "cannot restore",
                    "cannot be restored",
                    "cannot convert",
                    "unrecognized type",
                    "json:",
                ] {
                    if let Some(start) = text.find(words) {
                        text.truncate(start);
                    }
                }
                // Nor the object that a patch would have made.
                if let Some(start) = text.find("patch: Invalid value: ") {
                    text.truncate(start);
                } else if text.starts_with("Invalid value: \"{\\\"apiVersion") {
                    text.clear();
                }
                // Of several problems with the shape the server finds by chance the first.
                if text.contains("field not declared in schema")
                    && let Some(start) = text.find("): ")
                {
                    text.truncate(start);
                }
                let mut parts: Vec<&str> =
                    text.split([',', '\n', '[', ']']).map(str::trim).collect();
                parts.sort_unstable();
                parts.join("|")
            }
            _ if text.starts_with("10.96.") => "ADDRESS".to_owned(),
            _ if is_time(text) => "TIME".to_owned(),
            _ => self.embedded(text),
        }
    }

    /// Uids within a text.
    fn embedded(&mut self, text: &str) -> String {
        if text.len() < 36 || !text.is_ascii() {
            return text.to_owned();
        }
        let mut result = String::new();
        let mut rest = text;
        while rest.len() >= 36 {
            let step = if is_uid(&rest[..36]) {
                result.push_str(&name(&mut self.uids, "uid", &rest[..36]));
                36
            } else {
                result.push_str(&rest[..1]);
                1
            };
            rest = &rest[step..];
        }
        result.push_str(rest);
        result
    }
}
