//! ValidatingAdmissionPolicies: the simulator decides as a real API server does, in the same words.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::PathBuf;

use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::create::create;
use innkeeper_differential_tests::place::Place;
use innkeeper_differential_tests::real::Real;
use innkeeper_differential_tests::server::Server;
use innkeeper_differential_tests::{run, shorthand};
use innkeeper_simulator::Simulator;
use serde_json::json;

#[test]
fn policies_decide_as_on_a_real_server() {
    let cluster = ControlPlane::start(&Options::default()).unwrap();
    let real = Real::connect(cluster.kubeconfig(), false).unwrap();
    let simulated = Simulator::new(1, "2026-01-01T00:00:00Z".parse().unwrap());
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies.yaml");
    let cases = shorthand::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert!(!cases.is_empty(), "there are no cases");
    let mut found = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        // A policy selects the namespace of its case only.
        let mut enter = |attempt: usize| {
            let word = format!("r{index}a{attempt}");
            let place = Place { namespace: format!("policies-{word}"), word };
            let name = &place.namespace;
            let namespace = json!({"metadata": {"name": name, "labels": {"run": name}}});
            for server in [&real as &dyn Server, &simulated] {
                create(server, "/api/v1/namespaces", &namespace).unwrap();
            }
            place
        };
        let difference = run::run_in_places(case, &real, &simulated, &mut enter).unwrap();
        if let Some(difference) = difference {
            found.push(format!("{}:\n{}", case.why, difference.describe(case)));
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n\n"));
}
