//! Pods of Innkeeper itself on the simulated cluster.

use innkeeper_simulator::{PodRule, PodScript};

/// The image that `deploy` names, there and in registries.
const IMAGES: [&str; 6] =
    ["innkeeper", "innkeeper:*", "innkeeper@*", "*/innkeeper", "*/innkeeper:*", "*/innkeeper@*"];

/// Lets all Pods start, except those of Innkeeper: no host runs in them, and a Deployment that is
/// ready would say that one does.
pub(super) fn pod_script() -> PodScript {
    let rules = IMAGES.map(|image| PodRule { start_after: None, ..PodRule::new(image) });
    PodScript { rules: rules.into(), ..PodScript::default() }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use innkeeper_simulator::{Controllers, Simulator};
    use jiff::{SignedDuration, Timestamp};
    use serde_json::{Value, json};

    use super::*;

    const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

    fn send(simulator: &Simulator, method: &str, path: &str, body: &Value) -> Value {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let response = simulator.request(request.body(Bytes::from(body.to_string())).unwrap());
        assert!(response.status().is_success(), "{path}: {}", response.status());
        serde_json::from_slice(&response.into_body().try_next().unwrap_or_default()).unwrap()
    }

    #[test]
    fn deployment_becomes_ready_unless_its_image_is_innkeeper() {
        let simulator = Simulator::with(1, Timestamp::UNIX_EPOCH, Controllers::all());
        simulator.script_pods(pod_script());
        let images = [
            ("nginx", true),
            ("quay.io/example/innkeeper-site:1", true),
            ("innkeeper", false),
            ("innkeeper:1", false),
            ("innkeeper@sha256:0123", false),
            ("localhost:5000/innkeeper", false),
            ("quay.io/example/innkeeper:1", false),
            ("quay.io/example/innkeeper@sha256:0123", false),
        ];
        for (number, (image, _)) in images.iter().enumerate() {
            let labels = json!({"app": number.to_string()});
            let containers = json!([{"name": "main", "image": image}]);
            let deployment = json!({"metadata": {"name": format!("web-{number}")}, "spec": {
                "replicas": 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}}});
            send(&simulator, "POST", DEPLOYMENTS, &deployment);
        }
        for _ in 0..10 {
            simulator.advance(SignedDuration::from_secs(1));
        }
        for (number, (image, ready)) in images.iter().enumerate() {
            let path = format!("{DEPLOYMENTS}/web-{number}");
            let found = send(&simulator, "GET", &path, &Value::Null);
            let status = &found["status"];
            assert_eq!(status["readyReplicas"] == 2, *ready, "{image}: {status}");
        }
    }
}
