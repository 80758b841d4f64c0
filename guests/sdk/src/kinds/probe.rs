use serde::Serialize;

use super::PortRef;

/// What the kubelet does to see how a container is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// What it tries.
    #[serde(flatten)]
    pub action: ProbeAction,
    /// Seconds between two tries; the server's default is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<i32>,
    /// Seconds until a try counts as failed; the server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
}

/// What a probe tries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum ProbeAction {
    /// To open a TCP connection.
    #[serde(rename = "tcpSocket")]
    Tcp {
        /// To this port of the container.
        port: PortRef,
    },
    /// To run a program in the container: it succeeds if it ends with 0.
    #[serde(rename = "exec")]
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
    },
}

impl Probe {
    /// Whether the container takes TCP connections at a port.
    pub fn tcp(port: impl Into<PortRef>) -> Self {
        Self::of(ProbeAction::Tcp { port: port.into() })
    }

    /// Whether a program in the container ends with 0.
    pub fn exec<S: Into<String>>(command: impl IntoIterator<Item = S>) -> Self {
        Self::of(ProbeAction::Exec { command: command.into_iter().map(Into::into).collect() })
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

    fn of(action: ProbeAction) -> Self {
        Self { action, period_seconds: None, timeout_seconds: None }
    }
}
