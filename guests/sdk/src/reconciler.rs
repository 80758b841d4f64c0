use crate::Resource as _;
use crate::outcome::failure_text;
use crate::read_fields::ReadFieldsRecord;
use crate::{ClusterReader, Context, Failure, Manifest, Observed, Outcome, Primary, RawOutcome};

/// A guest: a pure function from observed state to desired state.
///
/// # When it runs
/// The host runs `reconcile` when the primary changes, when an object that the primary owns
/// changes, and when the answer of a read through the [`Context`] changes ("not found" is an
/// answer too). A change of a field that the types of the last run do not have does not count,
/// unless the host itself needs the field: so let types have the fields that the guest uses, and no
/// others. A type that takes everything ([`Raw`](crate::Raw), `serde_json::Value`) reads
/// everything.
///
/// # Requirements
/// The same observed state and the same answers must give the same outcome. A guest keeps no
/// state between runs (each run has a fresh instance), and has no clock but [`Context::now_ms`]
/// and no randomness.
pub trait Reconciler {
    /// The kind that the guest reconciles.
    type Primary: Primary;

    /// Returns the manifest: the kinds that the guest creates and reads. The host calls it once,
    /// when it loads the component, and answers no reads. See [`Describe`](crate::Describe).
    fn describe() -> Manifest;

    /// Computes the desired state from the observed state of one primary.
    fn reconcile(context: &Context, observed: &Observed<Self::Primary>) -> Outcome;
}

/// Returns the `manifest` document of a guest as JSON text.
pub fn describe_text<R: Reconciler>() -> String {
    manifest_text(&R::describe())
}

/// Writes a `manifest` document as JSON text.
pub(crate) fn manifest_text(manifest: &Manifest) -> String {
    // Serializing plain data cannot fail, and the host rejects a component whose manifest is empty.
    serde_json::to_string(manifest).unwrap_or_default()
}

/// Runs the guest once. `observed` is an `observed` document as JSON text; `reader` answers the
/// guest's reads.
///
/// The component and `testing::Scenario` both call it. A primary that cannot be deserialized
/// gives a failure with the reason `UnreadablePrimary`.
pub fn reconcile_text<R: Reconciler>(reader: &dyn ClusterReader, observed: &str) -> RawOutcome {
    let observed = match Observed::<R::Primary>::parse(observed) {
        Ok(observed) => observed,
        Err(error) => {
            return RawOutcome::Failed(failure_text(&Failure {
                reason: "UnreadablePrimary".to_owned(),
                message: format!(
                    "the {} cannot be deserialized into the type that this guest expects: {error}",
                    <R::Primary as crate::Resource>::KIND
                ),
                // Only another object or another component helps: both run the guest again.
                permanent: true,
                ..Failure::default()
            }));
        }
    };
    let fields = observed.read_fields();
    if let Some(fields) = fields {
        type P<R> = <R as Reconciler>::Primary;
        fields.add::<P<R>>(P::<R>::API_VERSION, P::<R>::KIND);
    }
    let outcome = R::reconcile(&Context::recording(reader, fields), &observed);
    outcome.into_raw(fields.map(ReadFieldsRecord::list))
}
