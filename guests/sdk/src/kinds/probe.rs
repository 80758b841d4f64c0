use serde::Serialize;

use super::PortRef;

/// A probe: the check that the kubelet runs on a container. Set one of the actions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Opens a TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    /// Runs a program in the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// Seconds between two checks; the API server's default is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<i32>,
    /// Seconds until a check times out; the API server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// A check that succeeds if the container accepts a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TcpSocketAction {
    /// Port of the container.
    pub port: PortRef,
}

/// A check that succeeds if a program in the container exits with 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExecAction {
    /// Program and arguments.
    pub command: Vec<String>,
}

impl Probe {
    /// Creates a probe that opens a TCP connection to a port.
    pub fn tcp(port: impl Into<PortRef>) -> Self {
        Self { tcp_socket: Some(TcpSocketAction { port: port.into() }), ..Self::default() }
    }

    /// Creates a probe that runs a program in the container.
    pub fn exec<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self { exec: Some(ExecAction { command }), ..Self::default() }
    }

    /// Sets the seconds between two checks.
    pub fn period_seconds(mut self, seconds: i32) -> Self {
        self.period_seconds = Some(seconds);
        self
    }

    /// Sets the seconds until a check times out.
    pub fn timeout_seconds(mut self, seconds: i32) -> Self {
        self.timeout_seconds = Some(seconds);
        self
    }
}
