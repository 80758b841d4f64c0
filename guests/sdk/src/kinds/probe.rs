use serde::Serialize;

use super::PortRef;

/// A probe: the check that the kubelet runs on a container. Set one of the actions.
///
/// ```
/// use innkeeper_sdk::kinds::{Container, Probe};
///
/// let web = Container::new("web", "nginx:1")
///     .readiness_probe(Probe::http("/ready", 8080).period_seconds(2))
///     .liveness_probe(Probe::tcp("web").initial_delay_seconds(10).failure_threshold(5));
/// assert!(web.liveness_probe.is_some());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Opens a TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketAction>,
    /// Runs a program in the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// Sends an HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpGetAction>,
    /// Calls the gRPC health service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc: Option<GrpcAction>,
    /// Seconds from the start of the container to the first check; the API server's default is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_delay_seconds: Option<i32>,
    /// Seconds between two checks; the API server's default is 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<i32>,
    /// Seconds until a check times out; the API server's default is 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// Failures in a row after which the probe has failed; the API server's default is 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<i32>,
    /// Successes in a row after which the probe has succeeded again; the API server's default is
    /// 1, which liveness and startup probes must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_threshold: Option<i32>,
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

/// A check that succeeds if the response has a status from 200 to 399.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpGetAction {
    /// Path.
    pub path: String,
    /// Port of the container.
    pub port: PortRef,
    /// `HTTP` or `HTTPS`; `HTTP` if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
}

/// A check that succeeds if the gRPC health service reports `SERVING`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrpcAction {
    /// Port of the container.
    pub port: u16,
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

    /// Creates a probe that sends an HTTP request.
    pub fn http(path: impl Into<String>, port: impl Into<PortRef>) -> Self {
        let action = HttpGetAction { path: path.into(), port: port.into(), scheme: None };
        Self { http_get: Some(action), ..Self::default() }
    }

    /// Creates a probe that sends an HTTPS request. The kubelet does not verify the certificate.
    pub fn https(path: impl Into<String>, port: impl Into<PortRef>) -> Self {
        let scheme = Some("HTTPS".to_owned());
        let action = HttpGetAction { path: path.into(), port: port.into(), scheme };
        Self { http_get: Some(action), ..Self::default() }
    }

    /// Creates a probe that calls the gRPC health service.
    pub fn grpc(port: u16) -> Self {
        Self { grpc: Some(GrpcAction { port }), ..Self::default() }
    }

    setters! {
        /// Sets the seconds from the start of the container to the first check.
        initial_delay_seconds(initial_delay_seconds: i32);
        /// Sets the seconds between two checks.
        period_seconds(period_seconds: i32);
        /// Sets the seconds until a check times out.
        timeout_seconds(timeout_seconds: i32);
        /// Sets the failures in a row after which the probe has failed.
        failure_threshold(failure_threshold: i32);
        /// Sets the successes in a row after which the probe has succeeded again.
        success_threshold(success_threshold: i32);
    }
}
