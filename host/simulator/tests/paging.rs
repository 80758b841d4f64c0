//! Lists in pages whose version is compacted.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod cluster;

use cluster::Cluster;
use innkeeper_simulator::Controllers;
use jiff::SignedDuration;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn create(cluster: &Cluster, name: &str) {
    let (code, answer) = cluster.send("POST", MAPS, &json!({"metadata": {"name": name}}));
    assert_eq!(code, 201, "{answer}");
}

fn page(cluster: &Cluster, token: &Value) -> (u16, Value) {
    let token = token.as_str().unwrap();
    cluster.send("GET", &format!("{MAPS}?limit=2&continue={token}"), &Value::Null)
}

#[test]
fn continue_token_expires_after_two_compaction_intervals() {
    let cluster = Cluster::with(Controllers::default());
    let minutes = |count| cluster.simulator.advance(SignedDuration::from_mins(count));
    cluster.simulator.compact_every(SignedDuration::from_mins(5));
    for name in ["a", "b", "c", "d", "e"] {
        create(&cluster, name);
    }
    let (_, first) = cluster.send("GET", &format!("{MAPS}?limit=2"), &Value::Null);
    let token = &first["metadata"]["continue"];
    minutes(6);
    create(&cluster, "f");
    let (code, second) = page(&cluster, token);
    assert_eq!((code, &second["metadata"]["remainingItemCount"]), (200, &json!(1)), "{second}");
    minutes(5);
    let (code, status) = page(&cluster, token);
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")), "{status}");
    // The response has a token that continues at the current version.
    let (code, rest) = page(&cluster, &status["metadata"]["continue"]);
    let items = rest["items"].as_array().unwrap().iter();
    let names: Vec<&Value> = items.map(|item| &item["metadata"]["name"]).collect();
    assert_eq!((code, names), (200, vec![&json!("c"), &json!("d")]), "{rest}");
    assert_eq!(rest["metadata"]["remainingItemCount"], 2, "{rest}");
    assert_ne!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

#[test]
fn watch_continues_at_an_expired_version() {
    let cluster = Cluster::with(Controllers::default());
    cluster.simulator.compact_every(SignedDuration::from_mins(5));
    create(&cluster, "a");
    let since = cluster.simulator.version();
    for _ in 0..3 {
        cluster.simulator.advance(SignedDuration::from_mins(5));
    }
    create(&cluster, "b");
    let path = format!("{MAPS}?watch=true&resourceVersion={since}");
    let (code, event) = cluster.send("GET", &path, &Value::Null);
    assert_eq!((code, &event["object"]["metadata"]["name"]), (200, &json!("b")), "{event}");
    let exact = format!("{MAPS}?resourceVersionMatch=Exact&resourceVersion={since}");
    assert_eq!(cluster.send("GET", &exact, &Value::Null).0, 410);
}
