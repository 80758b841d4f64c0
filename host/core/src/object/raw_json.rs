//! JSON objects as the raw text of their members.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The members of a JSON object as raw text, ordered by name.
pub(crate) type Members<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Writes an object of members. `replaced` has other texts for some members, and further members.
pub(super) fn join(
    members: &Members<'_>,
    replaced: &BTreeMap<&str, String>,
    capacity: usize,
) -> String {
    let mut out = String::with_capacity(capacity);
    let mut member = |name: &str, text: &str| {
        out.push(if out.is_empty() { '{' } else { ',' });
        push_quoted(name, &mut out);
        out.push(':');
        out.push_str(text);
    };
    for (name, value) in members {
        member(name, replaced.get(name.as_ref()).map_or(value.get(), String::as_str));
    }
    for (name, text) in replaced {
        if !members.contains_key(*name) {
            member(name, text);
        }
    }
    out.push(if out.is_empty() { '{' } else { '}' });
    if out.len() == 1 {
        out.push('}');
    }
    out
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Appends a text as JSON. Nearly all names of members are letters and digits, which need no
/// escape.
pub(crate) fn push_quoted(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&quoted(text));
    }
}

/// What kind of JSON a value is, by its first byte.
pub(crate) fn first_byte(value: &RawValue) -> u8 {
    value.get().bytes().next().unwrap_or(b'n')
}
