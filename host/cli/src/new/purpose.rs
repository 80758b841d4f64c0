//! What a new guest does.

/// What a new guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// It reconciles a kind of its own.
    Reconciles,
    /// It adds to objects of a kind that another controller owns.
    Decorates,
    /// It reviews requests.
    Reviews,
}
