//! The kinds that random requests are about.

use crate::builtin;
use crate::custom::{gadget, gizmo};
use crate::shapes::Subject;

/// The kinds, in a namespace.
pub fn subjects(namespace: &str) -> Vec<Subject> {
    let mut all = vec![gadget(namespace), builtin::config_map(namespace), gizmo(), gizmo()];
    all.extend(builtin::subjects(namespace));
    all
}
