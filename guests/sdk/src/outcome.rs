use innkeeper_contract::ReadFields;

use crate::{Condition, Desired, DesiredObject, Failure, Observed, Primary, ReadError, condition};

/// The result of a run.
pub enum Outcome {
    /// The whole desired state: the host applies it and deletes earlier objects that are not in it.
    Complete(Desired),
    /// A part of the desired state: the host applies it and deletes nothing.
    Partial(Desired),
    /// The guest cannot compute the desired state: the host changes no object, reports the
    /// failure and retries with backoff.
    Failed(Failure),
}

/// An [`Outcome`] as the JSON document that the host receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawOutcome {
    /// A `desired` document, for [`Outcome::Complete`].
    Complete(String),
    /// A `desired` document, for [`Outcome::Partial`].
    Partial(String),
    /// A `failure` document.
    Failed(String),
}

impl Desired {
    /// Returns this as the whole desired state: the host deletes objects that an earlier run
    /// desired and this one does not.
    pub fn complete(self) -> Outcome {
        Outcome::Complete(self)
    }

    /// Returns this as a part of the desired state: the host deletes nothing. For a guest that
    /// waits for something that is not ready or not known yet.
    pub fn partial(self) -> Outcome {
        Outcome::Partial(self)
    }

    /// Returns [`complete`](Self::complete) if all desired objects exist and are ready, otherwise
    /// [`partial`](Self::partial), so that the host deletes the objects that these replace only
    /// when these are ready.
    pub fn complete_when_ready<P: Primary>(self, observed: &Observed<P>) -> Outcome {
        if self.first_unready(observed).is_none() { self.complete() } else { self.partial() }
    }
}

impl Outcome {
    /// Fails the run; the host retries with backoff.
    ///
    /// `reason` is one CamelCase word for programs; `message` names, for people, what failed, why,
    /// and what to do. The same state gives the same text: no times, no random order.
    pub fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self::Failed(Failure {
            reason: reason.to_owned(),
            message: message.into(),
            ..Failure::default()
        })
    }

    /// Fails the run; the host retries only when the primary, an object that the guest read, or
    /// the component changes. Arguments as for [`failed`](Self::failed).
    pub fn failed_permanently(reason: &str, message: impl Into<String>) -> Self {
        Self::Failed(Failure {
            reason: reason.to_owned(),
            message: message.into(),
            permanent: true,
            ..Failure::default()
        })
    }

    /// Fails the run like [`failed_permanently`](Self::failed_permanently) and sets the condition
    /// `Ready` to `False` with the same reason and message, which a Module with
    /// `manageStatus: false` shows too.
    pub fn refused(reason: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::failed_permanently(reason, message.clone())
            .condition(condition::not_ready(reason, message))
    }

    /// Adds a condition of the primary.
    pub fn condition(mut self, condition: Condition) -> Self {
        match &mut self {
            Self::Complete(desired) | Self::Partial(desired) => desired.add_condition(condition),
            Self::Failed(failure) => failure.conditions.push(condition),
        }
        self
    }

    /// Returns the desired objects for changes, for a guest that extends another guest. Empty for
    /// a failure.
    pub fn objects_mut(&mut self) -> &mut [DesiredObject] {
        match self {
            Self::Complete(desired) | Self::Partial(desired) => desired.objects_mut(),
            Self::Failed(_) => &mut [],
        }
    }

    /// Returns the document that the host receives. It has the fields that the run read, if they
    /// are given.
    pub(crate) fn into_raw(self, read_fields: Option<Vec<ReadFields>>) -> RawOutcome {
        let (mut desired, wrap): (_, fn(String) -> RawOutcome) = match self {
            Self::Complete(desired) => (desired, RawOutcome::Complete),
            Self::Partial(desired) => (desired, RawOutcome::Partial),
            Self::Failed(failure) => return RawOutcome::Failed(failure_text(&failure)),
        };
        desired.set_read_fields(read_fields);
        match desired.text() {
            Ok(text) => wrap(text),
            Err(error) => RawOutcome::Failed(failure_text(&Failure {
                reason: "UnwritableOutcome".to_owned(),
                message: format!("the guest's outcome cannot be serialized as JSON: {error}"),
                ..Failure::default()
            })),
        }
    }
}

/// A read that failed fails the run, with the reason `ReadFailed`.
impl From<ReadError> for Outcome {
    fn from(error: ReadError) -> Self {
        Self::failed("ReadFailed", error.to_string())
    }
}

/// Returns the `failure` document.
pub(crate) fn failure_text(failure: &Failure) -> String {
    // Serializing plain data cannot fail, and the host rejects an empty text with an error.
    serde_json::to_string(failure).unwrap_or_default()
}
