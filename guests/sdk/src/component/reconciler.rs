//! The export `reconciler`.

use self::bindings::innkeeper::guest::log;
pub use super::bindings::reconciler as bindings;
use super::host::{Host, report_panics};
use crate::reconciler::{describe_text, reconcile_text};
use crate::{RawOutcome, Reconciler, type_fields};
pub use bindings::exports::innkeeper::guest::reconciler::{Guest, Outcome};

/// Implements the export `describe`: returns the `manifest` document.
pub fn describe<R: Reconciler>() -> String {
    report_panics();
    if let Some(line) = type_fields::warning::<R::Primary>(&R::describe()) {
        log::write(log::Level::Warn, &line);
    }
    describe_text::<R>()
}

/// Implements the export `reconcile`: takes an `observed` document, returns the outcome.
pub fn reconcile<R: Reconciler>(observed: &str) -> Outcome {
    report_panics();
    match reconcile_text::<R>(&Host, observed) {
        RawOutcome::Complete(desired) => Outcome::Complete(desired),
        RawOutcome::Partial(desired) => Outcome::Partial(desired),
        RawOutcome::Failed(failure) => Outcome::Failed(failure),
    }
}
