//! Admission webhooks: the simulator asks them as a real API server does, and reports their
//! answers alike.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::path::PathBuf;

use innkeeper_controlplane::{ControlPlane, Options};
use innkeeper_differential_tests::create::create;
use innkeeper_differential_tests::hooks::{Hooks, PATHS, STATUS_PATH, answer, status};
use innkeeper_differential_tests::place::Place;
use innkeeper_differential_tests::real::Real;
use innkeeper_differential_tests::server::Server;
use innkeeper_differential_tests::{run, shorthand};
use innkeeper_simulator::{Simulator, WebhookReply};

#[test]
fn webhooks_are_called_and_obeyed_as_by_a_real_server() {
    let cluster = ControlPlane::start(&Options::default()).unwrap();
    let real = Real::connect(cluster.kubeconfig(), false).unwrap();
    let simulated = Simulator::new(1, "2026-01-01T00:00:00Z".parse().unwrap());
    let hooks = Hooks::start().unwrap();
    for path in PATHS {
        simulated.webhook(&format!("{}{path}", hooks.url), move |review| answer(path, review));
    }
    simulated.webhooks_below(&format!("{}{STATUS_PATH}", hooks.url), |path, _| {
        status(path)
            .map_or(WebhookReply::Timeout, |(code, body)| WebhookReply::Error { code, body })
    });
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("webhooks.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replace("{url}", &hooks.url).replace("{ca}", &hooks.bundle);
    let cases = shorthand::parse(&text).unwrap();
    assert!(!cases.is_empty(), "there are no cases");
    let mut found = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        // Webhooks are of the cluster, so one case follows the other, each in a namespace of its
        // own.
        let mut enter = |attempt: usize| {
            if attempt > 0 {
                remove_webhooks(&[&real, &simulated]);
            }
            let word = format!("r{index}a{attempt}");
            let place = Place { namespace: format!("hooks-{word}"), word };
            let name = &place.namespace;
            let namespace =
                serde_json::json!({"metadata": {"name": name, "labels": {"run": name}}});
            for server in [&real as &dyn Server, &simulated] {
                create(server, "/api/v1/namespaces", &namespace).unwrap();
            }
            place
        };
        let difference = run::run_in_places(case, &real, &simulated, &mut enter).unwrap();
        if let Some(difference) = difference {
            found.push(format!("{}:\n{}", case.why, difference.describe(case)));
            // What the case would have taken away would be asked by the others too.
            remove_webhooks(&[&real, &simulated]);
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n\n"));
}

/// Removes what a case that did not end has left.
fn remove_webhooks(servers: &[&dyn Server]) {
    for server in servers {
        for kind in ["validating", "mutating"] {
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            let request = http::Request::builder().method("DELETE").uri(path);
            server.send(request.body(bytes::Bytes::new()).unwrap()).unwrap();
        }
    }
}
