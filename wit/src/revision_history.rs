use serde::{Deserialize, Serialize};

/// Which fields of the primary the host stores, and how many earlier states of them.
///
/// The host stores each state in a `ControllerRevision` that the primary owns, so the manifest has
/// to own `apps/v1` `ControllerRevision`. While an update of a rolling group stops, is paused or
/// has no place for another object, the host creates a missing object of the group as the guest
/// desires it for the earlier state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RevisionHistory {
    /// How many earlier states stay stored, from 1 to 10. Default: 2.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10)))]
    #[serde(default = "default_limit", skip_serializing_if = "is_default_limit")]
    pub limit: u32,
    /// Fields of the primary that the host stores: `spec`, or names joined by dots below it
    /// (`spec.template`). Users who may read `ControllerRevisions` read these fields. Default:
    /// spec. Limits: 1 to 8 paths of at most 253 bytes, none a part of another.
    #[serde(default = "default_field_paths", skip_serializing_if = "is_default_field_paths")]
    pub field_paths: Vec<String>,
}

impl Default for RevisionHistory {
    fn default() -> Self {
        Self { limit: default_limit(), field_paths: default_field_paths() }
    }
}

fn default_limit() -> u32 {
    2
}

fn default_field_paths() -> Vec<String> {
    vec!["spec".to_owned()]
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_default_limit(limit: &u32) -> bool {
    *limit == default_limit()
}

fn is_default_field_paths(paths: &[String]) -> bool {
    matches!(paths, [path] if path == "spec")
}
