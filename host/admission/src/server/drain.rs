//! The steps by which the server stops: [`Drain`].

/// The steps by which the server stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Drain {
    /// The server answers, and does not stop.
    No,
    /// The server answers, and asks clients to close their connections.
    Asking,
    /// The server finishes the running requests and closes the other connections.
    Closing,
}
