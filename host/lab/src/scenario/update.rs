//! Updates an assert in its file.

use jiff::Timestamp;
use serde_json::Value;

use super::case::NAMESPACE;
use super::files::DocumentLocation;
use super::matching::yaml;

/// Replaces a document by an object. The other documents of the file stay unchanged.
///
/// # Errors
/// If the file cannot be read or written.
pub(super) fn write(place: &DocumentLocation, found: &Value) -> std::io::Result<()> {
    let text = std::fs::read_to_string(&place.file)?;
    std::fs::write(&place.file, replaced(&text, place.index, &yaml(found)))
}

/// Replaces the namespace of this run by the placeholder.
pub(super) fn generalised(found: &Value, namespace: &str) -> Value {
    match found {
        Value::String(text) => with_placeholder(text, namespace).into(),
        Value::Array(list) => list.iter().map(|one| generalised(one, namespace)).collect(),
        Value::Object(map) => Value::Object(
            map.iter().map(|(name, one)| (name.clone(), generalised(one, namespace))).collect(),
        ),
        other => other.clone(),
    }
}

/// Leaves out the times that the assert does not already have: the next run has others.
pub(super) fn without_times(expected: &Value, found: &Value) -> Value {
    match found {
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, one)| {
                let is_time = one.as_str().is_some_and(|one| one.parse::<Timestamp>().is_ok());
                !is_time || expected[name.as_str()] == **one
            });
            let kept = kept
                .map(|(name, one)| (name.clone(), without_times(&expected[name.as_str()], one)));
            Value::Object(kept.collect())
        }
        Value::Array(list) => {
            let kept = list.iter().enumerate();
            kept.map(|(index, one)| without_times(&expected[index], one)).collect()
        }
        other => other.clone(),
    }
}

/// Replaces whole names only: `a` is no part of `cat`.
fn with_placeholder(text: &str, namespace: &str) -> String {
    let is_part = |one: char| one.is_ascii_alphanumeric() || one == '-';
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(namespace) {
        let (before, after) = (&rest[..at], &rest[at + namespace.len()..]);
        let alone = !before.ends_with(is_part) && !after.starts_with(is_part);
        out += before;
        out += if alone { NAMESPACE } else { namespace };
        rest = after;
    }
    out + rest
}

/// The text with another document at `index`.
fn replaced(text: &str, index: usize, document: &str) -> String {
    // A stream may begin with a separator before its first document.
    let mut parts: Vec<String> = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            let is_first = parts.len() == 1 && parts.iter().all(|part| is_blank(part));
            if !is_first {
                parts.push(String::new());
            }
            if let Some(last) = parts.last_mut() {
                last.push_str(line);
            }
        } else if let Some(last) = parts.last_mut() {
            last.push_str(line);
        }
    }
    let mut out = String::new();
    for (place, part) in parts.iter().enumerate() {
        if place != index {
            out += part;
            continue;
        }
        if let Some(at) = part.find("---\n") {
            out += &part[..at + 4];
        }
        out += document;
    }
    out
}

fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim().is_empty() || line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespace_of_a_run_is_replaced_by_the_placeholder() {
        let found =
            json!({"namespace": "test-a", "host": "www.test-a.svc", "other": ["test-ab", 1]});
        let written = json!({"namespace": "$NAMESPACE", "host": "www.$NAMESPACE.svc", "other": ["test-ab", 1]});
        assert_eq!(generalised(&found, "test-a"), written);
        assert_eq!(with_placeholder("x-test-a test-a", "test-a"), "x-test-a $NAMESPACE");
    }

    #[test]
    fn times_are_left_out_unless_the_assert_has_them() {
        let time = "2026-01-01T00:00:01Z";
        let found = json!({"status": {"conditions": [{"type": "Ready", "lastTransitionTime": time}],
            "until": time, "version": "1.2"}});
        let expected = json!({"status": {"conditions": [], "until": time}});
        let written =
            json!({"status": {"conditions": [{"type": "Ready"}], "until": time, "version": "1.2"}});
        assert_eq!(without_times(&expected, &found), written);
    }

    #[test]
    fn other_documents_stay_when_one_is_replaced() {
        let text = "# head\na: 1\n---\n# two\nb: 2\n---\nc: 3\n";
        assert_eq!(replaced(text, 1, "b: 9\n"), "# head\na: 1\n---\nb: 9\n---\nc: 3\n");
        assert_eq!(replaced("---\na: 1\n", 0, "a: 9\n"), "---\na: 9\n");
        assert_eq!(replaced("a: 1\n", 0, "a: 9\n"), "a: 9\n");
    }
}
