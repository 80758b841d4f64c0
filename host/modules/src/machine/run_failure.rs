//! Why the runs of a module fail.

use super::Rejection;

/// Why the runs of a module fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// Reason and message.
    pub rejection: Rejection,
    /// Whether the module's ServiceAccount lacks a right to write. The reason does not say it:
    /// guests choose reasons.
    pub lacks_right: bool,
}

impl From<Rejection> for RunFailure {
    /// The failure of a guest.
    fn from(rejection: Rejection) -> Self {
        Self { rejection, lacks_right: false }
    }
}
