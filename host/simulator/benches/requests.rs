//! Requests a second of the simulator, in process, and the memory of a small object.

#![allow(clippy::print_stdout, reason = "it is the result")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use http::Request;
use innkeeper_simulator::Simulator;
use peak_alloc::PeakAlloc;
use serde_json::json;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Objects that are counted together.
const OBJECTS: usize = 10_000;

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn apply(simulator: &Simulator, name: usize, value: usize) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("a{name}")}, "data": {"x": value.to_string()}});
    let request = Request::builder()
        .method("PATCH")
        .uri(format!("{PATH}/a{name}?fieldManager=bench&force=true"))
        .header("content-type", "application/apply-patch+yaml")
        .body(Bytes::from(object.to_string()));
    if let Ok(request) = request {
        black_box(simulator.request(request));
    }
}

fn get(simulator: &Simulator, name: usize) {
    if let Ok(request) = Request::builder().uri(format!("{PATH}/a{name}")).body(Bytes::new()) {
        black_box(simulator.request(request).into_body().try_next());
    }
}

fn requests(criterion: &mut Criterion) {
    let Ok(now) = "2026-11-22T00:00:00Z".parse() else { return };
    let simulator = Simulator::new(1, now);
    for name in 0..1000 {
        apply(&simulator, name, 0);
    }
    let before = HEAP.current_usage();
    for name in 10_000..10_000 + OBJECTS {
        apply(&simulator, name, 0);
    }
    let bytes = HEAP.current_usage().saturating_sub(before) / OBJECTS;
    println!("{bytes} bytes for each of {OBJECTS} small ConfigMaps, with what watches may ask for");
    let mut count = 0;
    criterion.bench_function("get of 1000 ConfigMaps", |bencher| {
        bencher.iter(|| {
            count += 1;
            get(&simulator, count % 1000);
        });
    });
    criterion.bench_function("apply that changes one of 1000 ConfigMaps", |bencher| {
        bencher.iter(|| {
            count += 1;
            apply(&simulator, count % 1000, count);
        });
    });
    let mut fresh = 100_000;
    criterion.bench_function("apply that makes a ConfigMap", |bencher| {
        bencher.iter(|| {
            fresh += 1;
            apply(&simulator, fresh, 0);
        });
    });
}

criterion_group!(benches, requests);
criterion_main!(benches);
