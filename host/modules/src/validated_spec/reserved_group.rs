//! API groups that no module defines kinds in.

use innkeeper_core::host_names;

use crate::module;

/// Groups that no module may define kinds in: ours, and all of `k8s.io` and `kubernetes.io` (which
/// the API server guards too, but only by an annotation).
pub fn is_reserved_group(group: &str) -> bool {
    let within = |parent: &str| host_names::is_within(group, parent);
    group == module::GROUP || within("k8s.io") || within("kubernetes.io")
}
