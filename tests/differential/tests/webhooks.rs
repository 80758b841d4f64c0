//! Admission webhooks: the simulator asks them as a real API server does, and reports their
//! answers alike.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::PathBuf;

use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::hooks::{Hooks, PATHS, answer};
use innkeeper_differential_tests::place::Place;
use innkeeper_differential_tests::real::Real;
use innkeeper_differential_tests::server::Server;
use innkeeper_differential_tests::{run, shorthand};
use innkeeper_simulator::Simulator;

#[test]
fn webhooks_are_called_and_obeyed_as_by_a_real_server() {
    let cluster = ControlPlane::start(&Options::default()).unwrap();
    let real = Real::connect(cluster.kubeconfig(), false).unwrap();
    let simulated = Simulator::new(1, "2026-01-01T00:00:00Z".parse().unwrap());
    let hooks = Hooks::start().unwrap();
    for path in PATHS {
        simulated.webhook(&format!("{}{path}", hooks.url), move |review| answer(path, review));
    }
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("webhooks.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replace("{url}", &hooks.url).replace("{ca}", &hooks.bundle);
    let cases = shorthand::parse(&text).unwrap();
    assert!(!cases.is_empty(), "there are no cases");
    let mut found = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        // Webhooks are of the cluster, so one case follows the other, each in a namespace of its
        // own.
        let place = Place { word: format!("r{index}"), namespace: format!("hooks{index}") };
        for server in [&real as &dyn Server, &simulated] {
            let body = serde_json::json!({"metadata": {"name": place.namespace, "labels": {"run": place.namespace}}});
            let request = http::Request::builder()
                .method("POST")
                .uri("/api/v1/namespaces")
                .header("content-type", "application/json")
                .body(bytes::Bytes::from(body.to_string()))
                .unwrap();
            assert_eq!(server.send(request).unwrap().code, 201);
        }
        let difference = run::run(case, &place, &real, &simulated, &mut |_, _| {}).unwrap();
        if let Some(difference) = difference {
            found.push(format!("{}:\n{}", case.why, difference.describe(case)));
            // What the case would have taken away would be asked by the others too.
            for server in [&real as &dyn Server, &simulated] {
                for kind in ["validating", "mutating"] {
                    let path = format!(
                        "/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
                    );
                    let request = http::Request::builder().method("DELETE").uri(path);
                    server.send(request.body(bytes::Bytes::new()).unwrap()).unwrap();
                }
            }
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n\n"));
}
