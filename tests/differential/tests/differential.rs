//! The same random requests to the simulator and to a real API server.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::case::Case;
use innkeeper_differential_tests::coverage::Coverage;
use innkeeper_differential_tests::generate::{self, NAMESPACE};
use innkeeper_differential_tests::real::{Real, Server};
use innkeeper_differential_tests::run::run;
use innkeeper_differential_tests::shapes::definition;
use innkeeper_differential_tests::shrink::shrink;
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

/// Requests of one run, unless `INNKEEPER_DIFFERENTIAL_REQUESTS` says otherwise.
const REQUESTS: usize = 20_000;
/// How long a definition may take until it is served.
const BOUND: Duration = Duration::from_secs(30);

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
    let controllers = Controllers { garbage_collector: false, namespaces: false };
    let simulator = Simulator::with(1, "2026-11-22T00:00:00Z".parse().unwrap(), controllers);
    prepare(&simulator);
    simulator
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_requests_are_answered_as_a_real_api_server_answers_them() {
    let plane = ControlPlane::start(&Options::default()).unwrap();
    let real = Real::connect(plane.kubeconfig()).unwrap();
    prepare(&real);
    let simulated = simulator();
    let seed = number("INNKEEPER_SEED", 1);
    let requests =
        usize::try_from(number("INNKEEPER_DIFFERENTIAL_REQUESTS", REQUESTS as u64)).unwrap();
    let most = number("INNKEEPER_DIFFERENTIAL_MOST", 1);
    println!("INNKEEPER_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut coverage = Coverage::default();
    let mut words = 0;
    let mut word = || {
        words += 1;
        format!("r{words}")
    };
    let mut found = Vec::new();
    while coverage.total < requests {
        let case = generate::case(&mut rng);
        let difference =
            run(&case, &word(), &real, &simulated, &mut |step, reply| coverage.count(step, reply))
                .unwrap();
        let Some(difference) = difference else { continue };
        let original = difference.describe(&case);
        let mut run_again =
            |case: &Case| run(case, &word(), &real, &simulated, &mut |_, _| {}).unwrap();
        let small = shrink(case, &mut |case| run_again(case).is_some());
        let shown = run_again(&small)
            .map_or(format!("it did not show again:\n{original}"), |again| again.describe(&small));
        println!("difference after {} requests:\n{shown}\n", coverage.total);
        if std::env::var_os("INNKEEPER_DIFFERENTIAL_CASES").is_some() {
            println!("{}", serde_json::to_string(&small).unwrap());
        }
        found.push(shown);
        if found.len() as u64 >= most {
            break;
        }
    }
    println!("{coverage}");
    assert!(
        found.is_empty(),
        "{} differences with seed {seed}, the first:\n{}",
        found.len(),
        found[0]
    );
}
