use serde::Serialize;

use super::PortRef;

/// What the kubelet does to see how a container is: one of the actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// It opens a TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    /// It runs a program in the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// Seconds between two tries; the server's default is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<i32>,
    /// Seconds until a try counts as failed; the server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// Opens a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TcpSocketAction {
    /// To this port of the container.
    pub port: PortRef,
}

/// Runs a program, which succeeds if it ends with 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExecAction {
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Probe {
    /// Whether the container takes TCP connections at a port.
    pub fn tcp(port: impl Into<PortRef>) -> Self {
        Self { tcp_socket: Some(TcpSocketAction { port: port.into() }), ..Self::default() }
    }

    /// Whether a program in the container ends with 0.
    pub fn exec<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { exec: Some(ExecAction { command }), ..Self::default() }
    }

    /// Tried every so many seconds.
    pub fn period_seconds(mut self, seconds: i32) -> Self {
        self.period_seconds = Some(seconds);
        self
    }

    /// Failed after so many seconds without an answer.
    pub fn timeout_seconds(mut self, seconds: i32) -> Self {
        self.timeout_seconds = Some(seconds);
        self
    }
}
