//! The result of a review: [`Review`].

use innkeeper_contract::Verdict;

use crate::call::Figures;

/// The result of a review, and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    /// The outcome.
    pub outcome: ReviewOutcome,
    /// The figures of the call.
    pub figures: Figures,
}

/// The outcome of a review, decoded strictly.
#[derive(Clone, Debug, PartialEq)]
pub enum ReviewOutcome {
    /// The policy decided. Its texts have any length and any characters.
    Decided(Verdict),
    /// The policy cannot decide, with the reason: at most 2,000 bytes of any characters, and dots
    /// if there were more.
    Failed(String),
}
