//! A simulated cluster whose requests a hostile policy and its neighbour review.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use innkeeper_lab::{Guests, Lab, Modules, Setup};
use innkeeper_simulator::Body;
use innkeeper_tiny_guests::{ALLOWED, Tiny};
use serde_json::{Value, json};

/// How long the policies may take to become active, in virtual time.
const LIMIT: Duration = Duration::from_mins(3);

/// The resource whose requests both policies review.
const PATH: &str = "/api/v1/namespaces/ns/configmaps";

/// A simulated cluster with the real operator, a Module `hostile` and a Module `neighbour`.
pub struct PolicyArena {
    lab: Lab,
    _components: tempfile::TempDir,
}

/// The answer to a request of a user.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The message of a refusal.
    pub message: String,
    /// The header of each warning.
    pub warnings: Vec<String>,
    /// Whether an object of the name is stored.
    pub is_stored: bool,
    /// The stored object; null if there is none.
    pub stored: Value,
}

impl PolicyArena {
    /// A cluster that sends requests for ConfigMaps to both policies. `spec` are further fields of
    /// the Module `hostile`, which reviews the namespace `ns` unless they select others. Its
    /// neighbour denies objects with the label `bad`.
    pub async fn start(component: &[u8], spec: &Value) -> Self {
        let neighbour = Tiny::policy(ALLOWED)
            .verdict_for(&[r#""bad":"true""#], r#"{"allowed":false,"message":"it is bad"}"#);
        let components = tempfile::tempdir().unwrap();
        let module = |name: &str, component: &[u8], spec: &Value| {
            let file = components.path().join(format!("{name}.wasm"));
            std::fs::write(&file, component).unwrap();
            let mut spec = spec.clone();
            spec["source"] = json!({"file": file});
            json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": name}, "spec": spec})
        };
        // The neighbour reviews a namespace of its own, so that only its answer counts there.
        let of_neighbour = json!({"policy": {"failurePolicy": "Fail", "namespaceSelector": {
            "matchLabels": {"kubernetes.io/metadata.name": "calm"}}}});
        let mut spec = spec.clone();
        if spec["policy"]["namespaceSelector"].is_null() {
            spec["policy"]["namespaceSelector"] =
                json!({"matchLabels": {"kubernetes.io/metadata.name": "ns"}});
        }
        let mut setup = Setup::new(11);
        setup.modules = Modules::Given(vec![
            module("hostile", component, &spec),
            module("neighbour", &neighbour.component(), &of_neighbour),
        ]);
        let namespaces = ["ns", "calm", "innkeeper-system"].map(
            |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        setup.objects = namespaces.to_vec();
        let lab = Lab::start(&Guests::new().unwrap(), setup).await.unwrap();
        lab.serves(LIMIT).await.unwrap();
        Self { lab, _components: components }
    }

    /// The simulated cluster and the operator.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Creates a ConfigMap as a user.
    pub fn create(&self, object: &Value) -> Answer {
        self.answer("POST", PATH, object)
    }

    /// Replaces a ConfigMap as a user.
    pub fn update(&self, object: &Value) -> Answer {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.answer("PUT", &format!("{PATH}/{name}"), object)
    }

    /// Fails the test unless the neighbour allows and denies as it should.
    pub fn neighbour_reviews(&self) {
        let path = PATH.replace("/ns/", "/calm/");
        let object = |label: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"generateName": "calm-", "labels": {"bad": label}}})
        };
        let (code, body) = read(self.send("POST", &path, &object("false")));
        assert_eq!(code, 201, "{body}");
        let (code, body) = read(self.send("POST", &path, &object("true")));
        assert_eq!(code, 403, "{body}");
        let denial = "\"neighbour.policy.innkeeper.dev\" denied the request: it is bad";
        assert!(body["message"].as_str().unwrap().ends_with(denial), "{body}");
    }

    /// Sends a request of a user with these groups; gives the HTTP status and the body. A user of
    /// no name is an administrator.
    pub fn send_as(
        &self,
        (user, groups): (&str, &[&str]),
        (method, path): (&str, &str),
        body: &Value,
    ) -> (u16, Value) {
        let mut request = request(method, path, body);
        let headers = request.headers_mut();
        if !user.is_empty() {
            headers.insert("impersonate-user", user.parse().unwrap());
        }
        for group in groups {
            headers.append("impersonate-group", group.parse().unwrap());
        }
        read(self.lab.simulator().request(request))
    }

    /// Stops the operator, which has to end on request.
    pub async fn end(self) {
        assert!(self.lab.end().await, "the operator ends on request");
    }

    fn answer(&self, method: &str, path: &str, object: &Value) -> Answer {
        let response = self.send(method, path, object);
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings.map(|one| String::from_utf8_lossy(one.as_bytes()).into_owned());
        let warnings = warnings.collect();
        let (code, body) = read(response);
        let name = object["metadata"]["name"].as_str().unwrap();
        let (found, stored) = read(self.send("GET", &format!("{PATH}/{name}"), &Value::Null));
        let is_stored = found == 200;
        let stored = if is_stored { stored } else { Value::Null };
        let message = body["message"].as_str().unwrap_or_default().to_owned();
        Answer { code, message, warnings, is_stored, stored }
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Response<Body> {
        self.lab.simulator().request(request(method, path, body))
    }
}

fn request(method: &str, path: &str, body: &Value) -> Request<Bytes> {
    let content = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    request.body(body).unwrap()
}

fn read(mut response: Response<Body>) -> (u16, Value) {
    let body = response.body_mut().try_next().unwrap_or_default();
    (response.status().as_u16(), serde_json::from_slice(&body).unwrap_or_default())
}
