//! A real API server and simulators, prepared alike.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::case::{Case, Place, Step};
use innkeeper_differential_tests::real::{Real, Reply, Server};
use innkeeper_differential_tests::run::{Difference, run};
use innkeeper_differential_tests::shapes::{definition, ruled_definition};
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

/// How long a definition may take until it is served.
const BOUND: Duration = Duration::from_secs(30);
/// Runs in one namespace: a list looks at all that is there.
const RUNS: usize = 25;

/// The real server.
pub(crate) struct Bench {
    plane: ControlPlane,
    words: AtomicUsize,
}

/// A connection to the real server and a simulator, for one thread.
pub(crate) struct Lane<'b> {
    bench: &'b Bench,
    real: Real,
    simulated: Simulator,
    namespace: String,
    runs: usize,
}

impl Bench {
    pub(crate) fn start() -> Self {
        let plane = ControlPlane::start(&Options::default()).unwrap();
        let real = Real::connect(plane.kubeconfig()).unwrap();
        define(&real);
        Self { plane, words: AtomicUsize::new(0) }
    }

    /// Another lane.
    pub(crate) fn lane(&self) -> Lane<'_> {
        Lane {
            bench: self,
            real: Real::connect(self.plane.kubeconfig()).unwrap(),
            simulated: simulator(),
            namespace: String::new(),
            runs: 0,
        }
    }

    /// A number that nobody had yet.
    fn number(&self) -> usize {
        self.words.fetch_add(1, Ordering::Relaxed)
    }
}

impl Lane<'_> {
    /// Runs a case. `seen` is told each step with the real answer.
    pub(crate) fn run(
        &mut self,
        case: &Case,
        seen: &mut dyn FnMut(&Step, &Reply),
    ) -> Option<Difference> {
        if self.runs % RUNS == 0 {
            self.namespace = format!("random{}", self.bench.number());
            self.simulated = simulator();
            let namespace = json!({"metadata": {"name": self.namespace}});
            let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace);
            // Pods need one; without a token, since nobody makes tokens.
            let account =
                json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
            for server in [&self.real as &dyn Server, &self.simulated] {
                post(server, "/api/v1/namespaces", &namespace);
                post(server, &accounts, &account);
            }
        }
        self.runs += 1;
        let place =
            Place { word: format!("r{}", self.bench.number()), namespace: self.namespace.clone() };
        run(case, &place, &self.real, &self.simulated, seen).unwrap()
    }
}

fn post(server: &dyn Server, path: &str, body: &Value) {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_string()))
        .unwrap();
    let reply = server.send(request).unwrap();
    assert_eq!(reply.code, 201, "{path}: {}", reply.body);
}

/// Defines the custom kinds, and waits until they are served.
fn define(server: &dyn Server) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(server, path, &definition());
    post(server, path, &ruled_definition());
    let deadline = Instant::now() + BOUND;
    for path in ["namespaces/default/gadgets", "gizmos"] {
        let path = format!("/apis/test.innkeeper.dev/v1/{path}");
        let asked = || Request::builder().uri(path.as_str()).body(Bytes::new()).unwrap();
        while server.send(asked()).unwrap().code != 200 {
            assert!(Instant::now() < deadline, "{path} is not served after {BOUND:?}");
            std::thread::yield_now();
        }
    }
}

fn simulator() -> Simulator {
    let controllers =
        Controllers { garbage_collector: false, namespaces: false, ..Controllers::default() };
    // Behind the real one, whose seconds it follows.
    let simulator = Simulator::with(1, "2026-01-01T00:00:00Z".parse().unwrap(), controllers);
    define(&simulator);
    simulator
}

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
