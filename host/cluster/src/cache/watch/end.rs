//! The reason why a client stopped filling a cache: [`WatchEnd`].

use crate::{ApiError, Denial, Mismatch};

/// The reason why a client stopped filling a cache.
pub(super) enum WatchEnd {
    /// Another member is the holder now, or the cache is closed.
    Unsubscribed,
    /// The server does not have the client's version any more, or its versions went back, or a list
    /// of fields has not shown a cached object: the cache lists again.
    Expired,
    /// The server does not serve the kind.
    NotServed,
    /// The server serves the kind otherwise than it is declared.
    Mismatched(Mismatch),
    /// Discovery did not answer: the cache lists nothing.
    Unverified(ApiError),
    /// The client's identity may not list or watch the kind.
    Forbidden(Denial),
}
