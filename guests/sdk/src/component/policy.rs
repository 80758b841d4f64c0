//! The export `policy`.

pub use super::bindings::policy as bindings;
use super::host::{Host, report_panics};
use crate::reviewer::{describe_policy_text, review_text};
use crate::{RawVerdict, Reconciler, Reviewer, describe_text};
pub use bindings::exports::innkeeper::guest::policy::{Guest, Outcome};

/// Implements the export `describe` of a guest that only reviews.
pub fn describe<P: Reviewer>() -> String {
    report_panics();
    describe_policy_text::<P>()
}

/// Implements the export `describe` of a guest that also reconciles: both exports return the same
/// document.
pub fn describe_both<R: Reconciler>() -> String {
    report_panics();
    describe_text::<R>()
}

/// Implements the export `review`: takes a `review-request` document, returns the outcome.
pub fn review<P: Reviewer>(request: &str) -> Outcome {
    report_panics();
    match review_text::<P>(&Host, request) {
        RawVerdict::Decided(verdict) => Outcome::Decided(verdict),
        RawVerdict::Failed(why) => Outcome::Failed(why),
    }
}
