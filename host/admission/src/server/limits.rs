//! The limits of the admission server.

use std::time::Duration;

/// The limits of the admission server.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// Maximum number of connections. A further one closes another that has no running request, or
    /// is refused if there is none.
    pub connections: usize,
    /// Maximum number of connections of one address.
    pub connections_per_address: usize,
    /// Maximum time of a TLS handshake.
    pub handshake_time: Duration,
    /// Maximum time from the first byte of a request to the end of its head.
    pub head_time: Duration,
    /// Maximum size of the head of a request, in bytes.
    pub head_bytes: usize,
    /// Maximum number of headers of a request.
    pub headers: usize,
    /// Maximum size of a body, in bytes.
    pub body_bytes: usize,
    /// Maximum time in which a body arrives.
    pub body_time: Duration,
    /// Maximum size of the bodies of all running requests, in bytes.
    pub all_bodies_bytes: usize,
    /// Maximum size of the bodies of all running requests of one address, in bytes.
    pub all_bodies_bytes_per_address: usize,
    /// The time of a request that names none by `?timeout=`.
    pub request_time: Duration,
    /// Maximum time of a request, also if it names a longer one.
    pub request_time_max: Duration,
    /// Maximum time of a connection between two requests. The API server closes its connections
    /// after 90 s: if the server did it first, a request could be under way.
    pub idle_time: Duration,
    /// Maximum time for the last response of a connection to arrive.
    pub close_time: Duration,
    /// The time after the stop in which the server still accepts connections: until no client is
    /// sent to this replica any more.
    pub drain_time: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_address: 512,
            handshake_time: Duration::from_secs(5),
            head_time: Duration::from_secs(5),
            head_bytes: 16 << 10,
            headers: 64,
            body_bytes: 8 << 20,
            body_time: Duration::from_secs(5),
            all_bodies_bytes: 64 << 20,
            all_bodies_bytes_per_address: 32 << 20,
            request_time: Duration::from_secs(10),
            request_time_max: Duration::from_secs(30),
            idle_time: Duration::from_mins(2),
            close_time: Duration::from_secs(2),
            drain_time: Duration::from_secs(10),
        }
    }
}
