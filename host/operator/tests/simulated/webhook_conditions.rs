//! The requests that no webhook configuration of the host selects, as an API server evaluates its
//! selectors and conditions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use innkeeper_admission::webhook_configuration::{ClientConfig, PolicyWebhooks, configuration};
use innkeeper_admission::{FailurePolicy, Mode};
use innkeeper_contract::{Operation, PolicyKind, PolicyRule, RuleScope};
use innkeeper_lab::Setup;
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::{Value, json};

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const NODE: &str = "system:node:a";
const ADMIN: &str = "admin";

/// The configuration of a policy that reviews everything, and denies what nobody answers.
fn of_everything() -> Value {
    let rules = [PolicyRule {
        groups: vec!["*".to_owned()],
        versions: Vec::new(),
        resources: vec!["*/*".to_owned()],
        operations: vec![Operation::Create, Operation::Update, Operation::Delete],
        scope: RuleScope::All,
    }];
    configuration(&PolicyWebhooks {
        module: "all",
        module_api_version: "innkeeper.dev/v1alpha1",
        module_uid: "u",
        kind: PolicyKind::Validate,
        rules: &rules,
        match_conditions: Vec::new(),
        namespace_selector: Vec::new(),
        object_selector: Vec::new(),
        namespaces: &BTreeSet::new(),
        mode: Mode::Enforce,
        overrides: Vec::new(),
        failure_policy: FailurePolicy::Fail,
        timeout: Duration::from_secs(1),
        reinvocation: false,
        client: ClientConfig::Url("https://policies.test"),
        ca_bundle: "",
        host_namespace: "innkeeper-system",
    })
}

/// A cluster in which the policy answers.
struct Reviewed {
    simulator: Simulator,
    asked: Arc<Mutex<u32>>,
}

impl Reviewed {
    fn new() -> Self {
        let simulator = Simulator::with(1, Setup::new(1).start, Controllers::default());
        let asked = Arc::new(Mutex::new(0));
        let reviewed = Self { simulator, asked };
        for name in ["kube-system", "innkeeper-system", "default"] {
            let namespace = json!({"metadata": {"name": name}});
            reviewed.send((ADMIN, "POST", "/api/v1/namespaces"), &namespace);
        }
        let code = reviewed.send((ADMIN, "POST", WEBHOOKS), &of_everything());
        assert_eq!(code, 201);
        let asked = reviewed.asked.clone();
        reviewed.simulator.webhook("https://policies.test/v1/policies/all/0", move |review| {
            *asked.lock().unwrap() += 1;
            Some(json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                "response": {"uid": review["request"]["uid"], "allowed": true}}))
        });
        reviewed
    }

    /// Sends a request of a user; returns the HTTP status.
    fn send(&self, (user, method, path): (&str, &str, &str), body: &Value) -> u16 {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let mut request =
            Request::builder().method(method).uri(path).header("content-type", content);
        if user != ADMIN {
            request = request.header("impersonate-user", user);
            let groups: &[&str] = match user {
                NODE => &["system:nodes", "system:masters"],
                _ => &["system:serviceaccounts:kube-system", "system:masters"],
            };
            for group in groups {
                request = request.header("impersonate-group", *group);
            }
        }
        let response = self.simulator.request(request.body(body).unwrap());
        response.status().as_u16()
    }

    /// Whether the policy is asked about a request, which succeeds.
    fn asks(&self, request: (&str, &str, &str), body: &Value) -> bool {
        *self.asked.lock().unwrap() = 0;
        let code = self.send(request, body);
        assert!((200..300).contains(&code), "{request:?}: {code}");
        *self.asked.lock().unwrap() > 0
    }

    /// Whether the policy is asked about the creation of an object of this name.
    fn asks_to_create(&self, user: &str, path: &str, name: &str, members: Value) -> bool {
        let mut object = members;
        object["metadata"]["name"] = name.into();
        self.asks((user, "POST", path), &object)
    }
}

fn pod(annotations: &Value) -> Value {
    json!({"metadata": {"annotations": annotations},
        "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn reviews_of_tokens_and_rights_and_leases_are_not_reviewed() {
    let reviewed = Reviewed::new();
    let none = || json!({});
    for (path, body) in [
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            json!({"spec": {"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        ("/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": {"token": "t"}})),
    ] {
        assert!(!reviewed.asks((ADMIN, "POST", path), &body), "{path}");
    }
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    assert!(!reviewed.asks_to_create(ADMIN, leases, "a", none()));
    let maps = "/api/v1/namespaces/default/configmaps";
    assert!(reviewed.asks_to_create(ADMIN, maps, "a", none()));
    assert!(reviewed.asks((ADMIN, "DELETE", &format!("{maps}/a")), &Value::Null));
    assert!(
        !reviewed
            .asks((ADMIN, "DELETE", &format!("{WEBHOOKS}/innkeeper-policy-all")), &Value::Null)
    );
}

#[test]
fn objects_of_system_namespaces_and_these_namespaces_are_not_reviewed() {
    let reviewed = Reviewed::new();
    for namespace in ["kube-system", "innkeeper-system"] {
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        assert!(!reviewed.asks_to_create(ADMIN, &maps, "a", json!({})), "{namespace}");
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let path = format!("/api/v1/namespaces/{namespace}");
        assert!(!reviewed.asks((ADMIN, "PATCH", &path), &labels), "{namespace}");
    }
    assert!(!reviewed.asks_to_create(ADMIN, "/api/v1/namespaces", "innkeeper-modules", json!({})));
    assert!(reviewed.asks_to_create(ADMIN, "/api/v1/namespaces", "shop", json!({})));
}

#[test]
fn mirror_pods_of_kubelets_are_not_reviewed_and_imitations_are() {
    let reviewed = Reviewed::new();
    let pods = "/api/v1/namespaces/default/pods";
    let mirror = || pod(&json!({"kubernetes.io/config.mirror": "x"}));
    reviewed.send(
        (ADMIN, "POST", "/api/v1/namespaces/default/serviceaccounts"),
        &json!({"metadata": {"name": "default"}}),
    );
    assert!(!reviewed.asks_to_create(NODE, pods, "mirror", mirror()));
    assert!(reviewed.asks_to_create(ADMIN, pods, "imitation", mirror()));
    assert!(reviewed.asks_to_create(NODE, pods, "plain", pod(&json!({}))));
    assert!(reviewed.asks_to_create(NODE, pods, "other", pod(&Value::Null)));
    let status = json!({"status": {"phase": "Running"}});
    assert!(!reviewed.asks((NODE, "PATCH", &format!("{pods}/mirror/status")), &status));
    assert!(reviewed.asks((NODE, "PATCH", &format!("{pods}/plain/status")), &status));
    assert!(!reviewed.asks((NODE, "DELETE", &format!("{pods}/mirror")), &Value::Null));
    assert!(reviewed.asks((ADMIN, "DELETE", pods), &Value::Null), "all of them");
}

#[test]
fn nodes_join_and_stay_without_a_review() {
    let reviewed = Reviewed::new();
    let nodes = "/api/v1/nodes";
    let controller = "system:serviceaccount:kube-system:node-controller";
    assert!(!reviewed.asks_to_create(NODE, nodes, "a", json!({})));
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    assert!(!reviewed.asks((ADMIN, "PATCH", &format!("{nodes}/a/status")), &status));
    let taint = json!({"metadata": {"labels": {"zone": "b"}}});
    assert!(!reviewed.asks((controller, "PATCH", &format!("{nodes}/a")), &taint));
    assert!(reviewed.asks_to_create(ADMIN, nodes, "b", json!({})));
    let maps = "/api/v1/namespaces/default/configmaps";
    assert!(reviewed.asks_to_create(NODE, maps, "a", json!({})), "nothing else of a node");
}

#[test]
fn object_that_the_host_needs_to_start_again_is_not_reviewed() {
    let reviewed = Reviewed::new();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert!(!reviewed.asks_to_create(ADMIN, roles, "innkeeper", json!({"rules": []})));
    assert!(reviewed.asks_to_create(ADMIN, roles, "other", json!({"rules": []})));
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |group: &str| {
        json!({"spec": {"group": group, "scope": "Cluster",
            "names": {"plural": "modules", "kind": "Module"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    };
    for (group, expected) in [("innkeeper.dev", false), ("a.innkeeper.dev", true)] {
        let name = format!("modules.{group}");
        let asks = reviewed.asks_to_create(ADMIN, definitions, &name, definition(group));
        assert_eq!(asks, expected, "{group}");
    }
}
