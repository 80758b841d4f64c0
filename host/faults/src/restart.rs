//! The request to start the client under test again.

/// The client has to be killed, and started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// The name of the API server to which it has to connect.
    pub api_server: String,
}
