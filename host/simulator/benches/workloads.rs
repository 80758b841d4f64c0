//! How long 10,000 Deployments take to become ready, in wall time.

#![allow(clippy::print_stdout, reason = "it is the result")]

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use innkeeper_simulator::{Controllers, Simulator, Workload};
use jiff::SignedDuration;
use serde_json::{Value, json};

/// How many are made.
const DEPLOYMENTS: usize = 10_000;
/// Seconds of the cluster that it may take.
const SECONDS_MAX: usize = 60;

const PATH: &str = "/apis/apps/v1/namespaces/default/deployments";

fn create(simulator: &Simulator, name: usize) {
    let labels = json!({"app": format!("web-{name}")});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("web-{name}")},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}},
    });
    let request = Request::builder()
        .method("POST")
        .uri(PATH)
        .header("content-type", "application/json")
        .header("user-agent", "bench")
        .body(Bytes::from(object.to_string()));
    if let Ok(request) = request {
        simulator.request(request);
    }
}

fn ready(simulator: &Simulator) -> usize {
    let Ok(request) = Request::builder().uri(PATH).body(Bytes::new()) else { return 0 };
    let body = simulator.request(request).into_body().try_next().unwrap_or_default();
    let list: Value = serde_json::from_slice(&body).unwrap_or_default();
    let items = list["items"].as_array().into_iter().flatten();
    items.filter(|one| one["status"]["readyReplicas"] == 1).count()
}

/// The CPU time of this thread, which counts on a busy machine. On Linux, in hundredths of a
/// second.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|text| text.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

fn measure(what: &str, controllers: Controllers) {
    let Ok(now) = "2026-11-22T00:00:00Z".parse() else { return };
    let simulator = Simulator::with(1, now, controllers);
    let (begun, worked_before) = (Instant::now(), worked());
    for name in 0..DEPLOYMENTS {
        create(&simulator, name);
    }
    let created = begun.elapsed();
    let mut seconds = 0;
    while seconds < SECONDS_MAX && ready(&simulator) < DEPLOYMENTS {
        simulator.advance(SignedDuration::from_secs(1));
        seconds += 1;
    }
    println!(
        "{DEPLOYMENTS} Deployments of one Pod, {what}: {:.1} s, {:.1} s of a core, creating them {:.1} s; {seconds} s of the cluster, {} writes, {} ready",
        begun.elapsed().as_secs_f64(),
        worked().saturating_sub(worked_before).as_secs_f64(),
        created.as_secs_f64(),
        simulator.version(),
        ready(&simulator)
    );
}

fn main() {
    // Only `cargo bench` passes this argument.
    if std::env::args().all(|argument| argument != "--bench") {
        return;
    }
    let all = Controllers::all();
    measure("with Events", all);
    let workloads = all.workloads.without(Workload::Events);
    measure("without Events", Controllers { workloads, ..all });
}
