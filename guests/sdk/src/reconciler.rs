use crate::outcome::failure_text;
use crate::{ClusterReader, Context, Failure, Manifest, Observed, Outcome, Primary};

/// A guest: a pure function from observed state to desired state.
///
/// # Guarantees
/// The host runs `reconcile` whenever something changes that it has read: the primary, the
/// objects it made, and whatever it got from the [`Context`], answers of "not found" included.
///
/// # Assumptions
/// The same observed state and answers give the same outcome. A guest has no state between
/// runs (each runs in a fresh instance), no clock but [`Context::now_ms`], no randomness.
pub trait Reconciler {
    /// The kind that it reconciles.
    type Primary: Primary;

    /// What the guest is and which kinds it makes and reads. A constant: called once
    /// when the component is loaded, without a cluster. See [`Describe`](crate::Describe).
    fn describe() -> Manifest;

    /// What should be, from what is.
    fn reconcile(context: &Context, observed: &Observed<Self::Primary>) -> Outcome;
}

/// How a run ended, with the document that crosses to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawOutcome {
    /// A `desired` document.
    Complete(String),
    /// A `desired` document.
    Partial(String),
    /// A `failure` document.
    Failed(String),
}

/// The `manifest` document of a guest.
pub fn describe_text<R: Reconciler>() -> String {
    // The host reads an empty text as an unreadable manifest and refuses the component;
    // a Manifest is plain data that cannot fail to be written.
    serde_json::to_string(&R::describe()).unwrap_or_default()
}

/// One run, from document to document. The component and the tests both go through it,
/// so that what is tested is what runs.
pub fn reconcile_text<R: Reconciler>(reader: &dyn ClusterReader, observed: &str) -> RawOutcome {
    let observed = match Observed::<R::Primary>::parse(observed) {
        Ok(observed) => observed,
        Err(error) => {
            return RawOutcome::Failed(failure_text(&Failure {
                reason: "UnreadablePrimary".to_owned(),
                message: format!(
                    "the {} cannot be read as this guest expects it: {error}",
                    <R::Primary as crate::Resource>::KIND
                ),
                // The object must change, or the guest: both run it again.
                permanent: true,
                ..Failure::default()
            }));
        }
    };
    R::reconcile(&Context::new(reader), &observed).into_raw()
}
