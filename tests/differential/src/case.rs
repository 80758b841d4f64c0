//! Sequences of requests, as data.

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
    /// In which groups, if that matters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Absent: none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub body: Value,
    /// The body as a text, with `{n}` and `{s}` as above: for one that no JSON value can be.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// A JSON patch of the object that was answered last: what comes of it is the body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub edit: Value,
    /// Whether it is to be the same once all controllers have done their work: the real server is
    /// asked again until it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settled: bool,
    /// A watch is over after an event in whose text this stands, with `{n}` and `{s}` as above.
    /// A real server does not end a watch by itself when it has sent all events.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub until: String,
    /// For the report: what it is about.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The same: the API version and the kind, for which lists of it are touched.
    #[serde(default, skip_serializing_if = "is_no_kind")]
    pub of: (String, String),
    /// What the real answer must be, in addition to the same as the simulator's.
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
