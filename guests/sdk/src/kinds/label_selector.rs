use serde::Serialize;

use crate::Labels;

/// Selects objects by their labels (`LabelSelector` of `meta/v1`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// An object matches if it carries all of these labels.
    pub match_labels: Labels,
}
