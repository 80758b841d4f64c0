//! The last client-side apply of kubectl, as its annotation has it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::apply::compare::compare;
use crate::apply::field_manager_conflict::Conflicts;
use crate::apply::fieldset::FieldSet;
use crate::apply::node::Node;
use crate::apply::owned::fields;
use crate::apply::shape;

/// The field manager whose applies use the annotation.
pub(crate) const KUBECTL: &str = "kubectl";
/// The annotation.
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many bytes all annotations may have.
const BYTES_MAX: usize = 256 * 1024;

fn noted(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][ANNOTATION].as_str().filter(|text| !text.is_empty())
}

/// The conflicts with fields that no client-side apply of kubectl has set. All conflicts, if the
/// annotation cannot be parsed.
pub(crate) fn not_noted(
    node: Node<'_>,
    version: &str,
    live: &Value,
    conflicts: Conflicts,
) -> Conflicts {
    let Some(set) = allowed(node, version, live) else { return conflicts };
    conflicts
        .into_iter()
        .map(|(manager, paths)| (manager, paths.difference(&set)))
        .filter(|(_, paths)| !paths.is_empty())
        .collect()
}

/// The fields of the annotation that still have their values.
fn allowed(node: Node<'_>, version: &str, live: &Value) -> Option<FieldSet> {
    let noted: Value = serde_json::from_str(noted(live)?).ok()?;
    if noted["apiVersion"] != version || !shape::problems(node, &noted, false).is_empty() {
        return None;
    }
    let comparison = compare(node, &noted, live);
    let changed = comparison.modified.union(&comparison.added).union(&comparison.removed);
    Some(fields(node, &noted).difference(&changed))
}

/// Updates the annotation after a server-side apply of kubectl, if the object has it.
pub(crate) fn note(object: &mut Value, applied: &Value) {
    if noted(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let mut text = String::new();
    spell(&applied, &mut text);
    text.push('\n');
    let annotations = &mut object["metadata"]["annotations"];
    annotations[ANNOTATION] = text.into();
    let all = annotations.as_object_mut().into_iter().flatten();
    let bytes: usize =
        all.map(|(name, value)| name.len() + value.as_str().unwrap_or_default().len()).sum();
    if bytes > BYTES_MAX
        && let Some(annotations) = annotations.as_object_mut()
    {
        annotations.remove(ANNOTATION);
    }
}

/// Prints JSON as Go does: names sorted, HTML characters escaped.
fn spell(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            text.push('{');
            let ordered: BTreeMap<&String, &Value> = map.iter().collect();
            for (index, (name, value)) in ordered.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                escaped(&Value::from(name.as_str()), text);
                text.push(':');
                spell(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                spell(item, text);
            }
            text.push(']');
        }
        other => escaped(other, text),
    }
}

fn escaped(value: &Value, text: &mut String) {
    for one in value.to_string().chars() {
        match one {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // A text can always be written to.
                let _ = write!(text, "\\u{:04x}", u32::from(one));
            }
            one => text.push(one),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn last_applied_annotation_is_written_as_by_go() {
        let mut object = json!({"metadata": {"annotations": {ANNOTATION: "old"}}});
        note(&mut object, &json!({"kind": "A", "apiVersion": "v1", "x": ["<&>", 1]}));
        assert_eq!(
            object["metadata"]["annotations"][ANNOTATION],
            "{\"apiVersion\":\"v1\",\"kind\":\"A\",\"x\":[\"\\u003c\\u0026\\u003e\",1]}\n"
        );
        note(&mut object, &json!({"x": "y".repeat(BYTES_MAX)}));
        assert_eq!(object["metadata"]["annotations"], json!({}));
        note(&mut object, &json!({"x": 1}));
        assert_eq!(object["metadata"]["annotations"], json!({}));
    }
}
