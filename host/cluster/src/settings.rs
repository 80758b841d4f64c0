//! The limits of the requests to the API server, in one place.

use std::time::Duration;

/// How long one attempt of a get or a write may take, body included.
///
/// Above the API server's own limit for a mutating webhook (30 s), so that the server's response
/// comes first.
pub const UNARY_TIMEOUT: Duration = Duration::from_secs(35);

/// How long one page of a list may take, body included.
pub const LIST_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the host asks the server to keep a watch open, in whole seconds. The server checks the
/// right when the host opens the next watch: with [`REFUSALS`], the reads end within a minute after
/// the right is gone.
pub const WATCH_TIMEOUT: Duration = Duration::from_secs(45);

/// How long after [`WATCH_TIMEOUT`] the host ends a watch that the server has not ended.
pub const WATCH_GRACE: Duration = Duration::from_secs(4);

/// How often the host repeats a request that is safe to repeat.
pub const RETRIES: u32 = 4;

/// The first wait before a repeat; each next one is twice as long.
pub const RETRY_MIN: Duration = Duration::from_millis(100);

/// The longest wait before a repeat. If the server asks for a longer one with `Retry-After`, the
/// caller gets the error instead.
pub const RETRY_MAX: Duration = Duration::from_secs(5);

/// Objects in one page of a list.
pub const LIST_PAGE: u32 = 250;

/// The first wait of a watch that failed; doubles up to [`WATCH_RETRY_MAX`].
pub const WATCH_RETRY_MIN: Duration = Duration::from_millis(500);

/// The longest wait of a watch that failed. The host sees the changes of an outage at most this
/// long after the server is back.
pub const WATCH_RETRY_MAX: Duration = Duration::from_secs(10);

/// The number of lists and watches of one cache that may begin within [`WATCH_BURST_PERIOD`]. A
/// server that ends each watch at once gets no more of them.
pub const WATCH_BURST: usize = 6;

/// See [`WATCH_BURST`].
pub const WATCH_BURST_PERIOD: Duration = Duration::from_secs(10);

/// A watch that ends more than this before or after its time shows that the server may have started
/// again, or that the host stood still: the host then compares its version with the server's.
pub const WATCH_END_TOLERANCE: Duration = Duration::from_secs(2);

/// How long after all caches had to list again, since an answer contradicted them, further such
/// answers cause no list: they belong to requests from before.
pub const CONTRADICTION_PAUSE: Duration = Duration::from_secs(10);

/// How long after an answer of a kind contradicted the caches further ones of the kind cause no
/// list: the versions of its API server may have no order.
pub const CONTRADICTION_PERIOD: Duration = Duration::from_mins(10);

/// How long the server may take to answer with its version. Without it no watch begins.
pub const WATCH_PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// After so many refusals of a watch in a row the host takes the right as gone: an API server that
/// has just started refuses all requests until it has read its roles.
pub const REFUSALS: u32 = 4;

/// The first wait before the next list of a kind that is not served; doubles up to
/// [`UNSERVED_MAX`].
pub const UNSERVED_MIN: Duration = Duration::from_secs(1);

/// The longest wait before the next list of a kind that is not served.
pub const UNSERVED_MAX: Duration = Duration::from_secs(30);

/// How old an answer of discovery may be: after this time the host compares a watched kind with it
/// again. The host learns of a changed definition at once; this is for API servers behind an
/// `APIService`.
pub const DISCOVERY_PERIOD: Duration = Duration::from_mins(5);

/// How long after a change of a definition the host compares its kinds with discovery once more: a
/// server reports the change before its discovery shows it.
pub const DISCOVERY_SETTLES: Duration = Duration::from_secs(5);

/// The first wait before the next review of a denied right; doubles up to [`DENIED_MAX`]. Short,
/// since users often apply a module and its rights together.
pub const DENIED_MIN: Duration = Duration::from_secs(1);

/// The longest wait before the next review of a denied right.
pub const DENIED_MAX: Duration = Duration::from_secs(30);

/// How often the host reviews a granted right again, for members of a cache that another member's
/// client fills.
pub const GRANTED_PERIOD: Duration = Duration::from_secs(45);

/// How often the host reviews the right of the member whose client fills the cache. The watch shows
/// the right too, but only when the host opens it: the server ends no watch when a right goes.
pub const HOLDER_PERIOD: Duration = Duration::from_mins(2);

/// How long a granted right counts without another answered review; after that the identity reads
/// nothing until the server answers one.
pub const GRANT_VALID: Duration = Duration::from_mins(5);

/// How long after a relist the host waits for an event of an object that only a write response
/// confirms, before it gets the object; and after a list of fields, for the deletion of an
/// object that it has not shown.
pub const UNCONFIRMED: Duration = Duration::from_secs(5);

/// How long a cache remembers the uid of a deleted object, so that the late response of a write
/// does not bring the object back. Longer than a write with all its repeats takes.
pub const TOMBSTONE_TTL: Duration = Duration::from_mins(4);

/// The limits of the requests to the API server. [`Settings::default`] has the constants of this
/// module.
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
    /// The `timeoutSeconds` of a watch.
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
