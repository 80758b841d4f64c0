//! A real API server and simulators, prepared alike.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::case::{Case, Step};
use innkeeper_differential_tests::create::create;
use innkeeper_differential_tests::custom::{definition, ruled_definition};
use innkeeper_differential_tests::outcome::{ATTEMPTS, is_unknown};
use innkeeper_differential_tests::place::Place;
use innkeeper_differential_tests::real::Real;
use innkeeper_differential_tests::run::{Difference, run};
use innkeeper_differential_tests::server::{Failure, Reply, Server};
use innkeeper_differential_tests::subjects::subjects;
use innkeeper_differential_tests::types::Types;
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

/// How long a definition may take until it is served.
const BOUND: Duration = Duration::from_mins(2);
/// Random cases in one namespace, one after the other: a list looks at all that is there. They are
/// the same ones in every run, and however fast.
pub(crate) const TOGETHER: usize = 25;
/// Who writes Events on a real server even if nobody asks for any: it looks after the addresses of
/// Services, and an address that it has not seen yet is one that is missing.
const OWN_WRITER: &str = "ipallocator-repair-controller";

/// The real server.
pub(crate) struct Bench {
    plane: ControlPlane,
    controllers: bool,
    words: AtomicUsize,
}

/// A connection to the real server and a simulator, for one thread.
pub(crate) struct Lane<'b> {
    bench: &'b Bench,
    real: Real,
    simulated: Simulator,
    namespace: String,
}

impl Bench {
    /// Without controllers on either side.
    pub(crate) fn start() -> Self {
        Self::with(false)
    }

    /// With or without controllers on both sides.
    pub(crate) fn with(controllers: bool) -> Self {
        // The collector's calls are not to be what all wait for.
        let flags = ["--kube-api-qps=200", "--kube-api-burst=400"].map(str::to_owned);
        let options = Options {
            controller_manager: controllers,
            controller_manager_flags: flags.into(),
            ..Options::default()
        };
        let plane = ControlPlane::start(&options).unwrap();
        let real = Real::connect(plane.kubeconfig(), controllers).unwrap();
        define(&real);
        Self { plane, controllers, words: AtomicUsize::new(0) }
    }

    fn simulator(&self) -> Simulator {
        let controllers = Controllers {
            garbage_collector: self.controllers,
            namespaces: self.controllers,
            ..Controllers::default()
        };
        // Behind the real one, whose seconds it follows.
        let simulator = Simulator::with(1, "2026-01-01T00:00:00Z".parse().unwrap(), controllers);
        define(&simulator);
        simulator
    }

    /// Another lane, in a place of its own.
    pub(crate) fn lane(&self) -> Lane<'_> {
        let real = Real::connect(self.plane.kubeconfig(), self.controllers).unwrap();
        let mut lane =
            Lane { bench: self, real, simulated: self.simulator(), namespace: String::new() };
        lane.enter();
        lane
    }

    /// What the real server publishes of the kinds that random requests are about.
    #[allow(dead_code, reason = "not every program reports what it reached")]
    pub(crate) fn types(&self) -> Types {
        let real = Real::connect(self.plane.kubeconfig(), self.controllers).unwrap();
        let mut types = Types::default();
        let subjects = subjects("{n}");
        let versions: BTreeSet<&str> = subjects.iter().map(|one| one.api_version).collect();
        for version in versions.into_iter().filter(|version| !version.contains("innkeeper")) {
            let root = if version.contains('/') { "apis" } else { "api" };
            let path = format!("/openapi/v3/{root}/{version}");
            let reply = real.send(Request::builder().uri(path).body(Bytes::new()).unwrap());
            types.read(&reply.unwrap().body);
        }
        let custom = [definition(), ruled_definition()];
        for subject in &subjects {
            let definition = custom.iter().find(|one| one["spec"]["names"]["kind"] == subject.kind);
            types.name(subject.api_version, subject.kind, definition);
            assert!(
                types.has(subject.api_version, subject.kind),
                "{} is not published",
                subject.kind
            );
        }
        types
    }

    /// A number that nobody had yet.
    fn number(&self) -> usize {
        self.words.fetch_add(1, Ordering::Relaxed)
    }
}

impl Lane<'_> {
    /// Goes where nothing is yet: another namespace, another simulator.
    pub(crate) fn enter(&mut self) {
        self.namespace = format!("random{}", self.bench.number());
        self.simulated = self.bench.simulator();
        let namespace = json!({"metadata": {"name": self.namespace}});
        let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", self.namespace);
        // Pods need one; without a token, since nobody makes tokens.
        let account =
            json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
        for server in [&self.real as &dyn Server, &self.simulated] {
            post(server, "/api/v1/namespaces", &namespace);
            if !self.bench.controllers {
                post(server, &accounts, &account);
            }
        }
    }

    /// What the real server has written into the namespace by itself, if there is anything: a list
    /// of Events shows it, or goes on because of it.
    pub(crate) fn disturbance(&self) -> Option<String> {
        let path = format!("/api/v1/namespaces/{}/events", self.namespace);
        let request = Request::builder().uri(path).body(Bytes::new()).unwrap();
        let reply = self.real.send(request).unwrap();
        let events = reply.body["items"].as_array().cloned().unwrap_or_default();
        let own = events.iter().find(|event| {
            event["reportingComponent"] == OWN_WRITER || event["source"]["component"] == OWN_WRITER
        });
        own.map(|event| format!("{}: {}", event["reason"], event["message"]))
    }

    /// Runs a case, and again elsewhere if the outcome of a write on the real server is unknown.
    /// `seen` gets each step with the real answer.
    #[allow(dead_code, reason = "not every program runs a case again by itself")]
    pub(crate) fn run(
        &mut self,
        case: &Case,
        seen: &mut dyn FnMut(&Step, &Reply),
    ) -> Option<Difference> {
        for _ in 1..ATTEMPTS {
            match self.try_run(case, seen) {
                Err(failure) if is_unknown(&failure) => self.enter(),
                found => return found.unwrap(),
            }
        }
        self.try_run(case, seen).unwrap()
    }

    /// Runs a case.
    ///
    /// # Errors
    /// If a server does not answer, or the outcome of a write on the real one is unknown: the two
    /// may differ from then on, so [`enter`](Self::enter) elsewhere.
    pub(crate) fn try_run(
        &self,
        case: &Case,
        seen: &mut dyn FnMut(&Step, &Reply),
    ) -> Result<Option<Difference>, Failure> {
        let place =
            Place { word: format!("r{}", self.bench.number()), namespace: self.namespace.clone() };
        run(case, &place, &self.real, &self.simulated, seen)
    }
}

fn post(server: &dyn Server, path: &str, body: &Value) {
    create(server, path, body).unwrap();
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

/// A number from the environment.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
