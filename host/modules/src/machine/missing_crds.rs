//! CustomResourceDefinitions of the active revision that somebody deleted.

use std::collections::BTreeSet;

use super::reason;
use super::rejection::Rejection;

/// The definitions of the active revision that do not exist any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MissingCrds {
    /// Their names.
    pub(super) names: BTreeSet<String>,
    /// The host installs them at present.
    pub(super) is_installing: bool,
    /// Some were deleted while the host installed them.
    pub(super) is_deleted_again: bool,
    /// Why the last installation failed.
    pub(super) rejection: Option<Rejection>,
}

impl MissingCrds {
    /// The reason and the message for users.
    pub(super) fn describe(&self, is_paused: bool) -> (&str, String) {
        let names = listed(self.names.iter());
        let next = match &self.rejection {
            _ if is_paused => {
                ": the Module is paused, so the host does not install it again".to_owned()
            }
            Some(rejection) => format!(": it is not installed again: {}", rejection.message),
            None => ": the host installs it again".to_owned(),
        };
        let reason = self
            .rejection
            .as_ref()
            .filter(|_| !is_paused)
            .map_or(reason::CRD_DELETED, |rejection| &rejection.reason);
        (
            reason,
            format!(
                "The CustomResourceDefinition {names} was deleted, with all its objects{next}."
            ),
        )
    }
}

/// Names in one line.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}
