//! Fields of a Module, and names on ConfigMaps, that have another name now.
//!
//! The CustomResourceDefinition still has the old names: the API server would drop a field that it
//! does not know, and a stored Module with `suspend` would then write. A rule refuses them instead.

use serde_json::{Value, json};

/// The object that has the field, as a JSON pointer below `spec`; the old name; the new name.
const FIELDS: [(&str, &str, &str); 6] = [
    ("", "crdGroups", "allowedCRDGroups"),
    ("", "readSecrets", "secretNames"),
    ("", "suspend", "paused"),
    ("/limits", "objects", "maxObjects"),
    ("/limits", "reads", "maxReads"),
    ("/rollout", "probation", "rollbackWindow"),
];

/// The old name of the annotation [`ANNOTATION`](crate::chunks::ANNOTATION), which the host still
/// reads.
pub(crate) const PARTS_ANNOTATION: &str = "innkeeper.dev/parts";

/// What stands between the names of ConfigMaps with [`PARTS_ANNOTATION`] and their numbers.
pub(crate) const PART_INFIX: &str = "-part-";

/// Finds the first field of a Module with an old name: its path, and a message that names the new
/// one.
pub(crate) fn find(module: &Value) -> Option<(String, String)> {
    let spec = module.get("spec")?;
    let is_used =
        |parent: &str, old: &str| spec.pointer(parent).is_some_and(|it| it.get(old).is_some());
    let (parent, old, new) = FIELDS.into_iter().find(|(parent, old, _)| is_used(parent, old))?;
    Some((path(parent, old), message(parent, new)))
}

/// Adds the old names to the schema of `spec`, each with a rule that refuses it.
pub(crate) fn refuse(spec: &mut Value) {
    for (parent, old, new) in FIELDS {
        let pointer = parent.replace('/', "/properties/");
        let Some(schema) = spec.pointer_mut(&pointer) else { continue };
        let mut field = schema["properties"][new].clone();
        field["description"] = format!("Not accepted: use {new}.").into();
        schema["properties"][old] = field;
        if !schema["x-kubernetes-validations"].is_array() {
            schema["x-kubernetes-validations"] = json!([]);
        }
        if let Some(rules) = schema["x-kubernetes-validations"].as_array_mut() {
            rules.push(json!({
                "rule": format!("!has(self.{old})"),
                "message": message(parent, new),
                "fieldPath": format!(".{old}"),
                "reason": "FieldValueForbidden",
            }));
        }
    }
}

/// Whether a field of `spec` is an old name.
#[cfg(test)]
pub(crate) fn is_old(field: &str) -> bool {
    FIELDS.iter().any(|(parent, old, _)| parent.is_empty() && *old == field)
}

fn path(parent: &str, name: &str) -> String {
    format!("spec{}.{name}", parent.replace('/', "."))
}

fn message(parent: &str, new: &str) -> String {
    format!("renamed: use {}", path(parent, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_name_is_found_with_the_new_one() {
        for (parent, old, new) in FIELDS {
            let mut module = json!({"spec": {"limits": {}, "rollout": {}}});
            module["spec"].pointer_mut(parent).unwrap()[old] = true.into();
            let (path, message) = find(&module).unwrap();
            assert!(path.ends_with(old) && message.ends_with(new), "{path}: {message}");
        }
        let used = json!({"spec": {"rollout": {"probation": "1m"}}});
        let expected = ("spec.rollout.probation", "renamed: use spec.rollout.rollbackWindow");
        assert_eq!(find(&used), Some((expected.0.into(), expected.1.into())));
    }

    #[test]
    fn new_names_are_not_refused() {
        assert_eq!(find(&json!({"spec": {"paused": true, "limits": {"maxReads": 1}}})), None);
        assert_eq!(find(&json!({})), None);
    }
}
