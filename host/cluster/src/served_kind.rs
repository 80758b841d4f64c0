//! How the API server serves a kind, compared with the kind as a manifest declares it.

/// How the API server serves a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServedKind {
    /// The API server serves the kind as it is declared.
    AsDeclared,
    /// The API server does not serve the kind (now).
    NotServed,
    /// The API server serves another kind, plural, scope or group than the declared one.
    Mismatched(Mismatch),
}

/// A kind that the API server serves otherwise than a manifest declares it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the manifest declares {declared}, but the API server serves {served}: nothing of it is read or written; correct the guest's manifest or the definition of the kind"
)]
pub struct Mismatch {
    pub(crate) declared: Box<str>,
    pub(crate) served: Box<str>,
}
