//! Removes owner references that an object names twice.

use serde_json::Value;

/// Removes duplicates. Returns the warning, if there were any; `late` if the object has passed
/// admission.
pub(crate) fn once(object: &mut Value, late: bool) -> Option<String> {
    let Some(Value::Array(owners)) = object.pointer_mut("/metadata/ownerReferences") else {
        return None;
    };
    let mut left: Vec<Value> = Vec::new();
    let mut twice = Vec::new();
    for owner in owners.drain(..) {
        if left.contains(&owner) {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            left.push(owner);
        }
    }
    *owners = left;
    if twice.is_empty() {
        return None;
    }
    let when = if late { " after mutating admission happens" } else { "" };
    Some(format!(
        ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        twice.join(", ")
    ))
}
