//! The limits of our dealings with the API server, in one place.

use std::time::Duration;

/// How long one attempt of a get or a write may take, body included.
///
/// Above the API server's own limit for a mutating webhook (30 s), so that the server's
/// answer comes first.
pub const UNARY_TIMEOUT: Duration = Duration::from_secs(35);

/// How long one page of a list may take, body included.
pub const LIST_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the server is asked to keep a watch open, in whole seconds. When it is opened again,
/// the server looks whether that is still allowed: with [`REFUSALS`], a right that is taken away
/// ends the reads within a minute.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(45);

/// How long after [`WATCH_TIMEOUT`] a watch that the server has not ended is cut.
pub const WATCH_GRACE: Duration = Duration::from_secs(4);

/// How often a request that is safe to repeat is repeated.
pub const RETRIES: u32 = 4;

/// The first wait before a repeat; each next one is twice as long.
pub const RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest wait before a repeat. A server that asks for more with `Retry-After` is
/// waited for this long, and then the caller is told.
pub const RETRY_MAX: Duration = Duration::from_secs(5);

/// Objects in one page of a list.
pub const LIST_PAGE: u32 = 250;

/// The first wait of a watch that failed; doubles up to [`WATCH_RETRY_MAX`].
pub const WATCH_RETRY_MIN: Duration = Duration::from_millis(500);

/// The longest wait of a watch that failed. What was changed while the server was away is seen
/// at most this long after it is back.
pub const WATCH_RETRY_MAX: Duration = Duration::from_secs(10);

/// How often a watch is refused in a row before it is believed that the right to it was
/// taken away: an API server that has just started refuses everybody for a moment, until it
/// has read its roles.
pub const REFUSALS: u32 = 4;

/// The first wait before looking again for a kind that is not served; doubles up to
/// [`UNSERVED_MAX`].
pub const UNSERVED_MIN: Duration = Duration::from_secs(1);

/// The longest wait before looking again for a kind that is not served.
pub const UNSERVED_MAX: Duration = Duration::from_secs(30);

/// How old an answer of discovery may be: a kind that is read is compared with it again after this
/// time. Definitions that change are noticed at once; this is for API servers behind an
/// `APIService`.
pub const DISCOVERY_PERIOD: Duration = Duration::from_mins(5);

/// How long after a definition changed its kinds are compared with discovery once more: a server
/// tells of the change before its discovery shows it.
pub const DISCOVERY_SETTLES: Duration = Duration::from_secs(5);

/// The first wait before a right that was denied is asked for again; doubles up to
/// [`DENIED_MAX`]. Short, since a module and its rights are often applied together.
pub const DENIED_MIN: Duration = Duration::from_secs(1);

/// The longest wait before a right that was denied is asked for again.
pub const DENIED_MAX: Duration = Duration::from_secs(30);

/// How often a right that was granted is asked for again, for those who share a cache
/// that another module's session fills.
pub const GRANTED_PERIOD: Duration = Duration::from_secs(45);

/// How often it is asked for again for the one whose session fills the cache. Its watch tells too,
/// but only when it is opened: the server ends no watch when a right goes.
pub const HOLDER_PERIOD: Duration = Duration::from_mins(2);

/// How long a right that was granted counts without being answered again; then nothing is read
/// until a review is answered.
pub const GRANT_VALID: Duration = Duration::from_mins(5);

/// How long after a relist an object that only a write response vouches for may stay
/// without an event, before it is looked up.
pub const UNCONFIRMED: Duration = Duration::from_secs(5);

/// How long the uid of a deleted object is remembered, so that the late response of a write
/// does not bring it back. Longer than a write with all its repeats takes.
pub const TOMBSTONE_TTL: Duration = Duration::from_mins(4);

/// The limits of our dealings with the API server. [`Settings::default`] gives the
/// constants of this module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// See [`UNARY_TIMEOUT`].
    pub unary_timeout: Duration,
    /// See [`LIST_TIMEOUT`].
    pub list_timeout: Duration,
    /// See [`WATCH_TIMEOUT`].
    pub watch_timeout: Duration,
    /// See [`WATCH_GRACE`].
    pub watch_grace: Duration,
    /// See [`RETRIES`].
    pub retries: u32,
    /// See [`LIST_PAGE`].
    pub list_page: u32,
}

impl Settings {
    /// After how many seconds the server is asked to end a watch.
    pub(crate) fn watch_seconds(&self) -> u32 {
        u32::try_from(self.watch_timeout.as_secs()).unwrap_or(u32::MAX)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            unary_timeout: UNARY_TIMEOUT,
            list_timeout: LIST_TIMEOUT,
            watch_timeout: WATCH_TIMEOUT,
            watch_grace: WATCH_GRACE,
            retries: RETRIES,
            list_page: LIST_PAGE,
        }
    }
}
