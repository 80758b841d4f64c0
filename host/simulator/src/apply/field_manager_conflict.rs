//! The error for an apply without force of fields that other managers own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::apply::fieldset::{FieldSet, path_text};
use crate::apply::managed_fields::Manager;
use crate::types::status_error::StatusError;

/// The fields in dispute, by owner.
pub(crate) type Conflicts = BTreeMap<Manager, FieldSet>;

/// The response.
pub(crate) fn error(conflicts: &Conflicts) -> StatusError {
    let mut causes = Vec::new();
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for (manager, set) in conflicts {
        let shown = manager.shown();
        let mut paths = Vec::new();
        set.each(&mut |path| paths.push(path_text(path)));
        for path in &paths {
            causes.push(json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {shown}"),
                "field": path,
            }));
        }
        lines.push((shown, paths));
    }
    let message = match (causes.len(), lines.as_slice()) {
        (1, [(manager, paths)]) => {
            format!("Apply failed with 1 conflict: conflict with {manager}: {}", paths.concat())
        }
        (count, _) => {
            let parts: Vec<String> = lines
                .iter()
                .flat_map(|(manager, paths)| {
                    std::iter::once(format!("conflicts with {manager}:"))
                        .chain(paths.iter().map(|path| format!("- {path}")))
                })
                .collect();
            format!("Apply failed with {count} conflicts: {}", parts.join("\n"))
        }
    };
    StatusError::new(409, "Conflict", message).details(json!({ "causes": Value::Array(causes) }))
}
