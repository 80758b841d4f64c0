use innkeeper_sdk::{Condition, condition};

/// Why a volume is not as the spec says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// One CamelCase word.
    pub(crate) reason: &'static str,
    /// What is wrong, and what to do.
    pub(crate) message: String,
    /// What it means for the server.
    pub(crate) effect: Effect,
}

/// What a problem means for the server, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// No volume can be used: no server starts, and one that runs keeps the volumes it has.
    NoVolume,
    /// The volume is desired, and the pod is `Pending` until a person acts.
    PodPending,
    /// The server runs, on another volume than the spec says.
    OtherVolume,
}

impl Problem {
    /// A problem with the effect [`Effect::NoVolume`].
    pub(crate) fn no_volume(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), effect: Effect::NoVolume }
    }

    /// A problem with the effect [`Effect::PodPending`].
    pub(crate) fn pod_pending(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), effect: Effect::PodPending }
    }

    /// A problem with the effect [`Effect::OtherVolume`].
    pub(crate) fn other_volume(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), effect: Effect::OtherVolume }
    }

    /// Returns whether a new server cannot start.
    pub(crate) fn prevents_start(&self) -> bool {
        self.effect < Effect::OtherVolume
    }

    /// Returns the condition of this type.
    pub(crate) fn condition(&self, type_: &str) -> Condition {
        condition::is_false(type_, self.reason, self.message.clone())
    }
}
