//! The kinds that only administrators write: certificates, flow control, priorities, devices.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

// Each test file uses a part of it.
#[allow(dead_code)]
mod cluster;

use cluster::Cluster;
use innkeeper_simulator::Controllers;
use serde_json::{Value, json};

const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn cluster() -> Cluster {
    Cluster::with(Controllers::default())
}

fn create(cluster: &Cluster, path: &str, object: &Value) -> Value {
    let (code, answer) = cluster.send("POST", path, object);
    assert_eq!(code, 201, "{answer}");
    answer
}

#[test]
fn discovery_names_the_groups_of_a_real_server() {
    let cluster = cluster();
    for (group, resource) in [
        ("apiregistration.k8s.io", "apiservices"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
        ("node.k8s.io", "runtimeclasses"),
        ("resource.k8s.io", "resourceclaims"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("storage.k8s.io", "csinodes"),
    ] {
        let list = cluster.get(&format!("/apis/{group}/v1")).unwrap();
        let names = list["resources"].as_array().unwrap();
        assert!(names.iter().any(|one| one["name"] == resource), "{group}: {list}");
        let found = cluster.get(&format!("/apis/{group}")).unwrap();
        assert_eq!(found["preferredVersion"]["version"], "v1", "{found}");
    }
}

#[test]
fn kinds_of_administrators_get_their_defaults() {
    let cluster = cluster();
    let schema = json!({"metadata": {"name": "a"},
        "spec": {"priorityLevelConfiguration": {"name": "b"}}});
    let schema = create(&cluster, &format!("{FLOW_CONTROL}/flowschemas"), &schema);
    assert_eq!(schema["spec"]["matchingPrecedence"], 1000, "{schema}");
    assert_eq!(schema["metadata"]["generation"], 1, "{schema}");
    let level = json!({"metadata": {"name": "b"}, "spec": {"type": "Limited",
        "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}}});
    let level = create(&cluster, &format!("{FLOW_CONTROL}/prioritylevelconfigurations"), &level);
    let limited = &level["spec"]["limited"];
    assert_eq!(limited["nominalConcurrencyShares"], 30, "{level}");
    assert_eq!(limited["limitResponse"]["queuing"]["queues"], 64, "{level}");
    let class = json!({"metadata": {"name": "c"}, "value": 5});
    let class = create(&cluster, "/apis/scheduling.k8s.io/v1/priorityclasses", &class);
    assert_eq!(class["preemptionPolicy"], "PreemptLowerPriority", "{class}");
    let request = json!({"name": "d", "exactly": {"deviceClassName": "e"}});
    let claim = json!({"metadata": {"name": "d"}, "spec": {"devices": {"requests": [request]}}});
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim = create(&cluster, claims, &claim);
    assert_eq!(claim["spec"]["devices"]["requests"][0]["exactly"]["count"], 1, "{claim}");
}

#[test]
fn only_the_approval_of_a_certificate_request_changes_its_decision() {
    let cluster = cluster();
    let spec = json!({"request": "YQ==", "signerName": "x.dev/y", "usages": ["client auth"],
        "username": "somebody else"});
    let made = create(&cluster, REQUESTS, &json!({"metadata": {"name": "a"}, "spec": spec}));
    assert_eq!(made["spec"]["username"], "admin", "{made}");
    let path = format!("{REQUESTS}/a");
    let condition = json!({"type": "Approved", "status": "True", "reason": "r", "message": "m"});
    let mut approved = made.clone();
    approved["status"] = json!({"certificate": "YQ==", "conditions": [condition]});
    let put = |path: &str, object: &Value| {
        let (code, answer) = cluster.send("PUT", path, object);
        assert_eq!(code, 200, "{answer}");
        answer
    };
    assert_eq!(put(&path, &approved)["status"], json!({}), "the spec's path leaves the status");
    approved["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let decided = put(&format!("{path}/approval"), &approved);
    assert_eq!(decided["status"]["conditions"][0]["lastUpdateTime"], "2026-11-22T00:00:00Z");
    assert_eq!(decided["status"].get("certificate"), None, "{decided}");
    let mut issued = decided.clone();
    issued["status"]["certificate"] = "YQ==".into();
    issued["status"]["conditions"][0]["message"] = "another".into();
    let issued = put(&format!("{path}/status"), &issued);
    assert_eq!(issued["status"]["certificate"], "YQ==", "{issued}");
    assert_eq!(issued["status"]["conditions"][0]["message"], "m", "{issued}");
}

#[test]
fn kinds_of_administrators_have_as_many_cells_as_columns() {
    let cluster = cluster();
    let spec = json!({"request": "YQ==", "signerName": "x.dev/y", "usages": ["client auth"]});
    create(&cluster, REQUESTS, &json!({"metadata": {"name": "a"}, "spec": spec}));
    let service = json!({"metadata": {"name": "v1.x.dev"}, "spec": {"group": "x.dev",
        "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}});
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    create(&cluster, services, &service);
    for (path, cells) in [
        (REQUESTS, json!(["a", "0s", "x.dev/y", "admin", "<none>", "Pending"])),
        (services, json!(["v1.x.dev", "Local", "Unknown", "0s"])),
    ] {
        let request = http::Request::get(path)
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
            .body(bytes::Bytes::new());
        let response = cluster.simulator.request(request.unwrap());
        let table: Value =
            serde_json::from_slice(&response.into_body().try_next().unwrap()).unwrap();
        assert_eq!(table["rows"][0]["cells"], cells, "{table}");
        let columns = table["columnDefinitions"].as_array().unwrap();
        assert_eq!(columns.len(), cells.as_array().unwrap().len(), "{table}");
    }
}
