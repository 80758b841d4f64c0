//! Sequences of requests, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expect::Expect;

/// A request. `{n}` in texts is replaced by the namespace of the run and `{s}` by a word of it, so
/// that runs do not meet; `{uid:NAME}` and `{rv:NAME}` by what the object of that name had in the
/// last answer; `{uid:continue}` by where the last list ended, `{rv:list}` by its version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// In capitals.
    pub method: String,
    /// With the query.
    pub path: String,
    /// Of the body, if it is no plain JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content_type: String,
    /// As whom, if not as the admin.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// In which groups, if it is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Absent: none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// A JSON patch of the object that was answered last: what comes of it is the body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub edit: Value,
    /// Whether it is to be the same once all controllers have done their work: the real server is
    /// asked again until it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// A watch is over when it has told of something in whose text this stands, with `{n}` and
    /// `{s}` as above. A real server says no more by itself when it has told everything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// For the report: what it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The same: the API version and the kind, for which lists of it are touched.
    #[serde(default, skip_serializing_if = "is_no_kind")]
    pub of: (String, String),
    /// What the real answer must be, besides the same as the simulator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
}

fn is_no_kind(of: &(String, String)) -> bool {
    of.1.is_empty()
}

/// Requests that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Why it is kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The test of others that asserts the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// In order.
    pub steps: Vec<Step>,
}

/// Where a case is run.
#[derive(Clone, Debug)]
pub struct Place {
    /// Another one for each run.
    pub word: String,
    /// There on both servers.
    pub namespace: String,
}

/// What one server answered so far: uid and version by name.
pub type Known = BTreeMap<String, (String, String)>;

/// Replaces what stands in braces.
pub fn fill(text: &str, place: &Place, known: &Known) -> String {
    let mut result = text.replace("{s}", &place.word).replace("{n}", &place.namespace);
    for (mark, second) in [("{uid:", false), ("{rv:", true)] {
        while let Some(start) = result.find(mark) {
            let Some(length) = result[start..].find('}') else { break };
            let name = &result[start + mark.len()..start + length];
            let found = known.get(name).map(|(uid, version)| if second { version } else { uid });
            // Versions begin above 1, and a watch from 0 is told what is there.
            let unknown = || if name == "list" { "0" } else { "1" }.to_owned();
            let found = found.map_or_else(unknown, String::clone);
            result.replace_range(start..=start + length, &found);
        }
    }
    result
}

/// The same in every text of a document.
pub fn fill_value(value: &Value, place: &Place, known: &Known) -> Value {
    match value {
        Value::String(text) => fill(text, place, known).into(),
        Value::Array(items) => items.iter().map(|item| fill_value(item, place, known)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (fill(name, place, known), fill_value(value, place, known)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
