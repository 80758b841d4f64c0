//! The changes of certificates.

/// The next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The authority has ended and no next one is valid: all certificates are made again.
    Replace,
    /// The authority signs another serving certificate.
    RenewServing,
    /// Another authority is made, for configurations to trust.
    Announce,
    /// The next authority signs from now on.
    Switch,
    /// The previous authority is trusted no more.
    DropPrevious,
}
