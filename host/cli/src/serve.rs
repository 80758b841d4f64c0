//! Health and metrics over HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::connections::{self, Limits};
use crate::metrics_access::{Guard, Reviewer};

/// The source of health and metrics.
pub(crate) trait HealthSource: Clone + Send + Sync + 'static {
    /// Why the host is not ready, in a few words; `None` if it is. A Service sends requests to
    /// ready hosts only.
    fn unready(&self) -> Option<String>;
    /// Metrics in Prometheus' text format.
    fn metrics(&self) -> String;
    /// The part that hangs until the process restarts; `None` if no part does.
    fn stalled(&self) -> Option<String>;
}

impl HealthSource for innkeeper_operator::Operator {
    fn unready(&self) -> Option<String> {
        (!self.is_ready())
            .then(|| "the host has not read all Modules and the kinds that they read".to_owned())
    }

    fn metrics(&self) -> String {
        Self::metrics(self)
    }

    fn stalled(&self) -> Option<String> {
        Self::stalled(self)
    }
}

/// The present state of this host, for HTTP clients. Clones share it.
pub(crate) struct SharedHostState<T>(Arc<Mutex<HostState<T>>>);

/// The states of a host.
pub(crate) enum HostState<T> {
    /// The host waits for the API server: it is not ready and has no metrics.
    Starting,
    /// Another host is the leader. This one is ready to take over.
    Standby,
    /// This host is the leader.
    Leading(T),
}

impl<T> SharedHostState<T> {
    /// Whether this host is the leader.
    pub(crate) fn is_leading(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*state, HostState::Leading(_))
    }

    /// Replaces the state.
    pub(crate) fn set(&self, state: HostState<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

impl<T> Clone for SharedHostState<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for SharedHostState<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(HostState::Starting)))
    }
}

impl<T: HealthSource> HealthSource for SharedHostState<T> {
    fn unready(&self) -> Option<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            HostState::Starting => Some("the host waits for the API server".to_owned()),
            HostState::Standby => None,
            HostState::Leading(source) => source.unready(),
        }
    }

    fn stalled(&self) -> Option<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            HostState::Starting | HostState::Standby => None,
            HostState::Leading(source) => source.stalled(),
        }
    }

    fn metrics(&self) -> String {
        let (is_leader, metrics) = match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            HostState::Starting | HostState::Standby => (0, String::new()),
            HostState::Leading(source) => (1, source.metrics()),
        };
        format!(
            "# HELP innkeeper_leader_election_master_status Whether this host is the leader.\n# TYPE innkeeper_leader_election_master_status gauge\ninnkeeper_leader_election_master_status {is_leader}\n{metrics}"
        )
    }
}

/// Listens on the address, before the host starts its work.
///
/// # Errors
/// If the address is in use or not available.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address} for health and metrics; choose another address with --bind"
        )
    })
}

/// Answers requests until `stop`, and finishes running ones. With `guard` the API server decides
/// who may read the metrics; otherwise every client that reaches the port may. Health is open to
/// all.
pub(crate) async fn serve(
    listener: TcpListener,
    source: impl HealthSource,
    guard: Option<Guard<impl Reviewer>>,
    mut stop: watch::Receiver<bool>,
) {
    let stopped = async move {
        // A dropped sender is a stop as well.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    connections::accept(listener, router(source, guard), Limits::default(), stopped).await;
}

fn router<T: HealthSource>(source: T, guard: Option<Guard<impl Reviewer>>) -> Router {
    let metrics = get(metrics::<T>);
    let metrics = match guard {
        Some(guard) => guard.before(metrics),
        None => metrics,
    };
    Router::new()
        // A failing module does not fail the liveness probe: a restart would not help.
        .route("/healthz", get(alive::<T>))
        .route("/readyz", get(ready::<T>))
        .route("/metrics", metrics)
        .with_state(source)
}

/// The liveness probe: the runtime answers, and the supervisor does not hang.
async fn alive<T: HealthSource>(State(source): State<T>) -> impl IntoResponse {
    match source.stalled() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(what) => (StatusCode::SERVICE_UNAVAILABLE, format!("{what}\n")),
    }
}

async fn ready<T: HealthSource>(State(source): State<T>) -> impl IntoResponse {
    match source.unready() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
}

async fn metrics<T: HealthSource>(State(source): State<T>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], source.metrics())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use innkeeper_cluster::ApiError;

    use super::*;
    use crate::metrics_access::Access;

    #[derive(Clone)]
    struct Fake {
        ready: bool,
        hangs: bool,
    }

    /// Allows nobody to read the metrics.
    #[derive(Clone)]
    struct Nobody;

    impl Reviewer for Nobody {
        async fn review(&self, _: &str) -> Result<Access, ApiError> {
            Ok(Access::Unknown)
        }
    }

    const OPEN: Option<Guard<Nobody>> = None;

    impl HealthSource for Fake {
        fn unready(&self) -> Option<String> {
            (!self.ready).then(|| "it waits".to_owned())
        }

        fn metrics(&self) -> String {
            "innkeeper_x 1\n".to_owned()
        }

        fn stalled(&self) -> Option<String> {
            self.hangs.then(|| "it hangs".to_owned())
        }
    }

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        format!("{} {body}", head.split(' ').nth(1).unwrap())
    }

    #[tokio::test]
    async fn server_answers_with_health_and_metrics_until_it_stops() {
        for (is_ready, expected) in [(true, "200 ok\n"), (false, "503 not ready: it waits\n")] {
            let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let address = listener.local_addr().unwrap();
            let (stop, stopped) = watch::channel(false);
            let serving = tokio::spawn(serve(
                listener,
                Fake { ready: is_ready, hangs: false },
                OPEN,
                stopped,
            ));
            assert_eq!(ask(address, "/healthz").await, "200 ok\n");
            assert!(ask(address, "/readyz").await.starts_with(expected));
            assert_eq!(ask(address, "/metrics").await, "200 innkeeper_x 1\n");
            assert!(ask(address, "/other").await.starts_with("404"));
            stop.send(true).unwrap();
            serving.await.unwrap();
            assert!(TcpStream::connect(address).await.is_err());
        }
    }

    #[tokio::test]
    async fn metrics_are_refused_and_health_is_open_without_a_token() {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_stop, stopped) = watch::channel(false);
        tokio::spawn(serve(
            listener,
            Fake { ready: true, hangs: false },
            Some(Guard::new(Nobody)),
            stopped,
        ));
        assert_eq!(ask(address, "/healthz").await, "200 ok\n");
        assert_eq!(ask(address, "/readyz").await, "200 ok\n");
        for path in ["/metrics", "/metrics?x=/healthz"] {
            let answer = ask(address, path).await;
            assert!(answer.starts_with("401 metrics not shown: the request has no token"));
        }
        for path in ["/metrics/", "//metrics", "/healthz/../metrics", "/%6Detrics"] {
            let answer = ask(address, path).await;
            assert!(!answer.starts_with("200") && !answer.contains("innkeeper_x"), "{answer}");
        }
    }

    #[test]
    fn standby_is_ready_and_leader_is_ready_when_its_operator_is() {
        let state = SharedHostState::default();
        assert!(state.unready().unwrap().contains("waits for the API server"));
        state.set(HostState::Standby);
        assert_eq!(state.unready(), None);
        assert!(state.metrics().ends_with("\ninnkeeper_leader_election_master_status 0\n"));
        state.set(HostState::Leading(Fake { ready: false, hangs: false }));
        assert_eq!(state.unready().as_deref(), Some("it waits"));
        assert!(
            state
                .metrics()
                .ends_with("\ninnkeeper_leader_election_master_status 1\ninnkeeper_x 1\n")
        );
    }

    #[tokio::test]
    async fn liveness_fails_with_what_hangs() {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let state = SharedHostState::default();
        let serving = tokio::spawn(serve(listener, state.clone(), OPEN, stopped));
        state.set(HostState::Standby);
        assert_eq!(ask(address, "/healthz").await, "200 ok\n");
        state.set(HostState::Leading(Fake { ready: true, hangs: true }));
        assert_eq!(ask(address, "/healthz").await, "503 it hangs\n");
        stop.send(true).unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn bind_fails_with_advice_when_the_address_is_in_use() {
        let taken = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = bind(taken.local_addr().unwrap()).await.unwrap_err();
        assert!(format!("{error:#}").contains("choose another address with --bind"), "{error:#}");
    }
}
