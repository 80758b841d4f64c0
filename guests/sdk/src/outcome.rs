use crate::reconciler::RawOutcome;
use crate::{Condition, Desired, DesiredObject, Failure, condition};

/// How a run ended.
pub enum Outcome {
    /// This is all that is desired: what was made before and is not in it goes.
    Complete(Desired),
    /// Apply this and keep the rest: something is not ready or not known yet.
    Partial(Desired),
    /// Nothing can be said: keep everything, report, try again with backoff.
    Failed(Failure),
}

impl Outcome {
    /// Nothing can be said now; the host tries again with backoff.
    ///
    /// `reason` is one CamelCase word for machines, `message` says what is wrong and what to
    /// do. Stable texts: no times, no random order.
    pub fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self::Failed(Failure {
            reason: reason.to_owned(),
            message: message.into(),
            ..Failure::default()
        })
    }

    /// Nothing can be said until something changes; the host does not try again before.
    pub fn failed_permanently(reason: &str, message: impl Into<String>) -> Self {
        Self::Failed(Failure {
            reason: reason.to_owned(),
            message: message.into(),
            permanent: true,
            ..Failure::default()
        })
    }

    /// As [`failed_permanently`](Self::failed_permanently), and the condition `Ready` says it too,
    /// so that it is seen where the Module says `manageStatus: false`.
    pub fn refused(reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::failed_permanently(reason, message.clone())
            .condition(condition::not_ready(reason, message))
    }

    /// With this condition too.
    pub fn condition(mut self, condition: Condition) -> Self {
        match &mut self {
            Self::Complete(desired) | Self::Partial(desired) => desired.add_condition(condition),
            Self::Failed(failure) => failure.conditions.push(condition),
        }
        self
    }

    /// The desired objects, to change: for a guest that builds upon another. Empty for a failure.
    pub fn objects_mut(&mut self) -> &mut [DesiredObject] {
        match self {
            Self::Complete(desired) | Self::Partial(desired) => desired.objects_mut(),
            Self::Failed(_) => &mut [],
        }
    }

    /// The document that crosses to the host.
    pub(crate) fn into_raw(self) -> RawOutcome {
        let (desired, ending): (_, fn(String) -> RawOutcome) = match self {
            Self::Complete(desired) => (desired, RawOutcome::Complete),
            Self::Partial(desired) => (desired, RawOutcome::Partial),
            Self::Failed(failure) => return RawOutcome::Failed(failure_text(&failure)),
        };
        match desired.text() {
            Ok(text) => ending(text),
            Err(error) => RawOutcome::Failed(failure_text(&Failure {
                reason: "UnwritableOutcome".to_owned(),
                message: format!("the guest's outcome cannot be written as JSON: {error}"),
                ..Failure::default()
            })),
        }
    }
}

/// The `failure` document.
pub(crate) fn failure_text(failure: &Failure) -> String {
    // Plain data: writing it cannot fail, and the host refuses an empty text loudly.
    serde_json::to_string(failure).unwrap_or_default()
}
