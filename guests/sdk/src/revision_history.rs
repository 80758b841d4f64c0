use serde::Serialize;

/// Which fields of the primary the host stores, and how many earlier states of them.
///
/// The host stores each state in a `ControllerRevision`, which the manifest has to own. While an
/// update of a rolling group stops, the host creates a missing object of the group as the guest
/// desires it for the earlier state. `docs/updates.md` describes it.
///
/// ```
/// use innkeeper_sdk::kinds::{ConfigMap, ControllerRevision};
/// use innkeeper_sdk::{Desired, Describe, RevisionHistory, kind};
///
/// kind!(CatSet, "example.com/v1", "catsets");
///
/// let manifest = Describe::reconciler_of::<CatSet>("cats", "1.0.0")
///     .owns::<ConfigMap>()
///     .owns::<ControllerRevision>()
///     .manifest();
/// let desired =
///     Desired::new().revision_history(RevisionHistory::of(["spec.template"]).limit(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RevisionHistory(innkeeper_contract::RevisionHistory);

impl RevisionHistory {
    /// Creates a history of these fields: `spec`, or paths below it (`spec.template`).
    ///
    /// Users who may read `ControllerRevisions` read the fields, so leave out those with secrets.
    pub fn of<'a>(field_paths: impl IntoIterator<Item = &'a str>) -> Self {
        let field_paths = field_paths.into_iter().map(str::to_owned).collect();
        let defaults = innkeeper_contract::RevisionHistory::default();
        Self(innkeeper_contract::RevisionHistory { field_paths, ..defaults })
    }

    /// Sets how many earlier states stay stored, from 1 to 10. Default: 2.
    pub fn limit(mut self, limit: u32) -> Self {
        self.0.limit = limit;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Desired;

    #[test]
    fn history_is_written_with_what_is_set() {
        for (history, expected) in [
            (RevisionHistory::of(["spec"]), json!({})),
            (RevisionHistory::of(["spec"]).limit(2), json!({})),
            (
                RevisionHistory::of(["spec.template", "spec.mode"]).limit(3),
                json!({ "limit": 3, "fieldPaths": ["spec.template", "spec.mode"] }),
            ),
        ] {
            let text = Desired::new().revision_history(history).text().unwrap();
            let document: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(document["revisionHistory"], expected);
        }
    }
}
