//! Health and figures over HTTP: `/healthz`, `/readyz`, `/metrics`.

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

/// What is told over HTTP.
pub(crate) trait HealthSource: Clone + Send + Sync + 'static {
    /// Whether work is being done; until then a Service sends nobody here.
    fn is_ready(&self) -> bool;
    /// Figures in Prometheus' text format.
    fn metrics(&self) -> String;
    /// What hangs, so that only another process helps; `None` if nothing does.
    fn stalled(&self) -> Option<String>;
}

impl HealthSource for innkeeper_operator::Operator {
    fn is_ready(&self) -> bool {
        Self::is_ready(self)
    }

    fn metrics(&self) -> String {
        Self::metrics(self)
    }

    fn stalled(&self) -> Option<String> {
        Self::stalled(self)
    }
}

/// What this host does at present, for whoever asks over HTTP. Clones share it.
pub(crate) struct SharedHostState<T>(Arc<Mutex<HostState<T>>>);

/// What a host does.
pub(crate) enum HostState<T> {
    /// It waits for what it needs: nothing is ready, and there are no figures.
    Starting,
    /// Another host works. This one is ready to take over.
    Standby,
    /// It works.
    Leading(T),
}

impl<T> SharedHostState<T> {
    pub(crate) fn set(&self, doing: HostState<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = doing;
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
    fn is_ready(&self) -> bool {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            HostState::Starting => false,
            HostState::Standby => true,
            HostState::Leading(told) => told.is_ready(),
        }
    }

    fn stalled(&self) -> Option<String> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            HostState::Starting | HostState::Standby => None,
            HostState::Leading(told) => told.stalled(),
        }
    }

    fn metrics(&self) -> String {
        let (works, metrics) = match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            HostState::Starting | HostState::Standby => (0, String::new()),
            HostState::Leading(told) => (1, told.metrics()),
        };
        format!(
            "# HELP innkeeper_leader_election_master_status Whether this host is the leader.\n# TYPE innkeeper_leader_election_master_status gauge\ninnkeeper_leader_election_master_status {works}\n{metrics}"
        )
    }
}

/// Takes the address, so that one in use is an error of the start.
pub(crate) async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!(
            "cannot listen on {address} for health and metrics; choose another address with --bind"
        )
    })
}

/// Answers until `stop` says so; requests under way are finished. With `guard` the API server
/// decides who may read the figures; otherwise every client that reaches the port may. Health is
/// open to all.
pub(crate) async fn serve(
    listener: TcpListener,
    told: impl HealthSource,
    guard: Option<Guard<impl Reviewer>>,
    mut stop: watch::Receiver<bool>,
) {
    let stopped = async move {
        // A sender that is gone stops us as well.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    connections::accept(listener, router(told, guard), Limits::default(), stopped).await;
}

fn router<T: HealthSource>(told: T, guard: Option<Guard<impl Reviewer>>) -> Router {
    let metrics = get(metrics::<T>);
    let metrics = match guard {
        Some(guard) => guard.before(metrics),
        None => metrics,
    };
    Router::new()
        // A module that fails is no reason to restart the host.
        .route("/healthz", get(alive::<T>))
        .route("/readyz", get(ready::<T>))
        .route("/metrics", metrics)
        .with_state(told)
}

/// Alive: the runtime answers, and the supervisor takes its turns.
async fn alive<T: HealthSource>(State(told): State<T>) -> impl IntoResponse {
    match told.stalled() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(what) => (StatusCode::SERVICE_UNAVAILABLE, format!("{what}\n")),
    }
}

async fn ready<T: HealthSource>(State(told): State<T>) -> impl IntoResponse {
    if told.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the modules and what they read are not known yet\n")
    }
}

async fn metrics<T: HealthSource>(State(told): State<T>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], told.metrics())
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

    /// Lets nobody read.
    #[derive(Clone)]
    struct Nobody;

    impl Reviewer for Nobody {
        async fn review(&self, _: &str) -> Result<Access, ApiError> {
            Ok(Access::Unknown)
        }
    }

    const OPEN: Option<Guard<Nobody>> = None;

    impl HealthSource for Fake {
        fn is_ready(&self) -> bool {
            self.ready
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
    async fn health_readiness_and_figures_are_told_until_it_stops() {
        for (is_ready, expected) in [(true, "200 ok\n"), (false, "503 the modules")] {
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
    async fn health_is_open_and_figures_are_refused_to_a_client_without_a_right() {
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
    fn a_host_that_stands_by_is_ready_and_one_that_works_when_its_work_is() {
        let present = SharedHostState::default();
        assert!(!present.is_ready());
        present.set(HostState::Standby);
        assert!(present.is_ready());
        assert!(present.metrics().ends_with("\ninnkeeper_leader_election_master_status 0\n"));
        present.set(HostState::Leading(Fake { ready: false, hangs: false }));
        assert!(!present.is_ready());
        assert!(
            present
                .metrics()
                .ends_with("\ninnkeeper_leader_election_master_status 1\ninnkeeper_x 1\n")
        );
    }

    #[tokio::test]
    async fn liveness_fails_with_what_hangs() {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let present = SharedHostState::default();
        let serving = tokio::spawn(serve(listener, present.clone(), OPEN, stopped));
        present.set(HostState::Standby);
        assert_eq!(ask(address, "/healthz").await, "200 ok\n");
        present.set(HostState::Leading(Fake { ready: true, hangs: true }));
        assert_eq!(ask(address, "/healthz").await, "503 it hangs\n");
        stop.send(true).unwrap();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn an_address_in_use_is_said() {
        let taken = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let error = bind(taken.local_addr().unwrap()).await.unwrap_err();
        assert!(format!("{error:#}").contains("choose another address with --bind"), "{error:#}");
    }
}
