//! How far the end of the server is.

/// How far the end of the server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Drain {
    /// It answers.
    No,
    /// It answers, and asks clients to close their connections.
    Asking,
    /// It finishes the running requests and closes the other connections.
    Closing,
}
