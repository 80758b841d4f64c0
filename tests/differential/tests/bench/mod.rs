//! A real API server and a simulator, prepared alike.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::generate::NAMESPACE;
use innkeeper_differential_tests::real::{Real, Server};
use innkeeper_differential_tests::shapes::definition;
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

/// How long a definition may take until it is served.
const BOUND: Duration = Duration::from_secs(30);

/// Both servers.
pub(crate) struct Bench {
    pub(crate) real: Real,
    pub(crate) simulated: Simulator,
    words: AtomicUsize,
    _plane: ControlPlane,
}

impl Bench {
    pub(crate) fn start() -> Self {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        let real = Real::connect(plane.kubeconfig()).unwrap();
        prepare(&real);
        Self { real, simulated: simulator(), words: AtomicUsize::new(0), _plane: plane }
    }

    /// A word that no run had yet.
    pub(crate) fn word(&self) -> String {
        format!("r{}", self.words.fetch_add(1, Ordering::Relaxed))
    }
}

fn post(server: &dyn Server, path: &str, body: &Value) -> u16 {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_string()))
        .unwrap();
    server.send(request).unwrap().code
}

/// What both servers have before the requests begin.
fn prepare(server: &dyn Server) {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    assert_eq!(post(server, "/api/v1/namespaces", &namespace), 201);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(post(server, path, &definition()), 201);
    let deadline = Instant::now() + BOUND;
    loop {
        let path = "/apis/test.innkeeper.dev/v1/namespaces/random/gadgets";
        let request = Request::builder().uri(path).body(Bytes::new()).unwrap();
        if server.send(request).unwrap().code == 200 {
            break;
        }
        assert!(Instant::now() < deadline, "the gadgets are not served after {BOUND:?}");
        std::thread::yield_now();
    }
}

fn simulator() -> Simulator {
    let controllers =
        Controllers { garbage_collector: false, namespaces: false, ..Controllers::default() };
    // Behind the real one, whose seconds it follows.
    let simulator = Simulator::with(1, "2026-01-01T00:00:00Z".parse().unwrap(), controllers);
    prepare(&simulator);
    simulator
}

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
