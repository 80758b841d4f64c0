use innkeeper_sdk::{Condition, condition};

/// Why a volume is not as the spec says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// One CamelCase word.
    pub(crate) reason: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
    /// Whether no server can start on the volumes.
    pub(crate) stops: bool,
    /// Whether the guest knows volumes to desire all the same.
    pub(crate) has_volumes: bool,
}

impl Problem {
    /// A problem with which the guest knows no volumes.
    pub(crate) fn stops(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stops: true, has_volumes: false }
    }

    /// A problem with which the pod waits until a person acts; the volumes stay desired.
    pub(crate) fn waits(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stops: true, has_volumes: true }
    }

    /// A problem with which the server runs, on other volumes than the spec says.
    pub(crate) fn remains(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), stops: false, has_volumes: true }
    }

    /// Returns the condition of this type.
    pub(crate) fn condition(&self, type_: &str) -> Condition {
        condition::is_false(type_, self.reason, self.message.clone())
    }
}
