//! The changes of certificates: [`Change`].

/// A change of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Make all certificates again: the authority has ended, and there is no valid next one.
    Replace,
    /// Have the authority sign another serving certificate.
    RenewServing,
    /// Make the next authority, which configurations trust from now on.
    Announce,
    /// Have the next authority sign from now on.
    Switch,
    /// Stop trusting the previous authority.
    DropPrevious,
}
