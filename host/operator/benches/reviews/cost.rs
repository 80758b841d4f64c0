//! The steps of a review in the host, without connection and TLS.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use innkeeper_admission::{AdmissionRequest, Reviewed, Reviewer as _, WebhookRef};
use innkeeper_cluster::{Account, Cluster, Env, SecretDigestKey, Settings};
use innkeeper_contract::{Operation, User};
use innkeeper_core::review::{Gvk, Gvr, ReviewInput, document};
use innkeeper_lab::Setup;
use innkeeper_modules::{Digest, Module, SourceKind, ValidatedSpec};
use innkeeper_operator::policies::{ActivePolicy, PolicyRecord, PolicyReviewer};
use innkeeper_operator::{Execution, ReplicaPolicies};
use innkeeper_sandbox::{
    Engine, Guest, Host, Level, Limits, ReadError, ResourceKind, ReviewOutcome,
};
use innkeeper_simulator::{Controllers, Simulator};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The time of a request.
const TIME: Duration = Duration::from_secs(10);

/// The measured steps. The third is all that the host does between the parsed request and the
/// answer; the first two are what of it makes the document and calls the guest.
pub(crate) const STEPS: [&str; 5] = [
    "document of the request",
    "call of the guest",
    "review, all of it",
    "JSON read",
    "JSON written",
];

/// The times of each of [`STEPS`].
#[derive(Default)]
pub(crate) struct Costs(pub(crate) [Vec<Duration>; 5]);

/// Reviews requests by turns in hosts with these numbers of policies. Gives what it cost in each.
pub(crate) fn measure(policies: &[u32], rounds: usize) -> Vec<Costs> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let policies = policies.to_vec();
    // On a worker of the runtime, as the server's connections.
    let all = runtime.spawn(async move {
        let hosts: Vec<ReviewingHost> =
            policies.iter().map(|&count| ReviewingHost::new(count)).collect();
        let mut costs: Vec<Costs> = hosts.iter().map(|_| Costs::default()).collect();
        let body = review();
        for round in 0..rounds {
            for (host, costs) in hosts.iter().zip(&mut costs) {
                host.time(round, &body, costs).await;
            }
        }
        costs
    });
    runtime.block_on(all).unwrap()
}

/// A host with active policies, each of another component.
struct ReviewingHost {
    reviewer: PolicyReviewer,
    guests: Vec<Guest>,
}

impl ReviewingHost {
    fn new(count: u32) -> Self {
        let engine = Engine::builder().build().unwrap();
        let simulator = Simulator::with(1, Setup::new(1).start, Controllers::default());
        let env = Env::real();
        let cluster =
            Cluster::over(simulator, env.clone(), Settings::default(), SecretDigestKey::new(b"k"));
        let policies = ReplicaPolicies::new(env, &engine, Execution::Threads).unwrap();
        let mut guests = Vec::new();
        for number in 0..count {
            let component = component(number);
            let guest = engine.load(&component, &Limits::default()).unwrap();
            let name = name(number);
            let object = json!({"apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
                "metadata": {"name": name}, "spec": {"policy": {}, "parameters": parameters(),
                    "serviceAccountName": name, "source": {"configMap": {"name": name}}}});
            let module = Module::from_value(&object).unwrap();
            let settings =
                ValidatedSpec::new(&module, SourceKind::Cluster, Limits::default(), None).unwrap();
            let digest = Digest::of(&component);
            let record =
                PolicyRecord::new(&name, "u", digest, guest.manifest(), &settings).unwrap();
            let client = cluster.as_account(&Account::new("innkeeper-modules", &name));
            let policy = ActivePolicy::new(&record, &guest, client, None).unwrap();
            policies.active().swap(&Arc::new(policy));
            guests.push(guest);
        }
        Self { reviewer: PolicyReviewer::new(policies), guests }
    }

    /// Reviews a request with the policy whose turn it is. The guest runs once in a round, so that
    /// each of its times is one after the other policies have had the caches of the processor: in
    /// the step that makes the document and calls the guest, and in the next turn in a review.
    async fn time(&self, round: usize, body: &str, costs: &mut Costs) {
        let turn = round % self.guests.len();
        let (request, read) = timed(|| AdmissionRequest::read(body.as_bytes()).unwrap());
        let [documents, calls, reviews, reads, writes] = &mut costs.0;
        reads.push(read);
        if (round / self.guests.len()).is_multiple_of(2) {
            let (text, documented) = timed(|| shown(request.object.unwrap()));
            let (called, call) = timed(|| self.guests[turn].review(&text, &mut NoWorld).unwrap());
            let ReviewOutcome::Decided(verdict) = called.outcome else { panic!("it failed") };
            assert!(verdict.allowed, "{verdict:?}");
            documents.push(documented);
            calls.push(call);
            return;
        }
        let webhook = WebhookRef { module: name(u32::try_from(turn).unwrap()), index: 0 };
        let started = Instant::now();
        let reviewed = self.reviewer.review(webhook, request, started + TIME).await;
        reviews.push(started.elapsed());
        let Reviewed::Answer(response) = reviewed else { panic!("{reviewed:?}") };
        assert_eq!(response.denial, None);
        let (_, written) = timed(|| black_box(response.review("u").to_string()));
        writes.push(written);
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed())
}

fn name(number: u32) -> String {
    format!("labels-{number}")
}

fn parameters() -> Value {
    json!({"labels": [{"name": "team"}, {"name": "tier", "values": ["back", "front"]}]})
}

/// The document of the request, as the reviewer makes it.
fn shown(object: &RawValue) -> String {
    let user = User { username: "ann".to_owned(), ..User::default() };
    let parameters = parameters().to_string();
    let input = ReviewInput {
        operation: Operation::Create,
        kind: Gvk { group: "", version: "v1", kind: "Pod" },
        resource: Gvr { group: "", version: "v1", resource: "pods" },
        subresource: "",
        request_kind: None,
        request_resource: None,
        name: "shop",
        namespace: "shop",
        user: &user,
        object: Some(object),
        old_object: None,
        options: None,
        dry_run: false,
        background: false,
        parameters: &parameters,
    };
    document(&input, &|_, _, _| String::new(), 64 << 20).unwrap().text
}

fn review() -> String {
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    let resource = json!({"group": "", "version": "v1", "resource": "pods"});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource,
        "name": "shop", "namespace": "shop", "operation": "CREATE", "object": pod(),
        "userInfo": {"username": "ann", "groups": ["dev", "system:authenticated"]}}})
    .to_string()
}

/// A Pod of 3 KB.
pub(crate) fn pod() -> Value {
    let container = |name: &str| {
        let probe = json!({"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "initialDelaySeconds": 5, "periodSeconds": 10, "timeoutSeconds": 1,
            "successThreshold": 1, "failureThreshold": 3});
        json!({"name": name,
            "image": format!("registry.example.com/shop/{name}@sha256:{}", "0a1b2c3d".repeat(8)),
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
            "livenessProbe": probe, "readinessProbe": probe,
            "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true,
                "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop", "readOnly": true}]})
    };
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shop", "namespace": "shop",
            "labels": {"app": "shop", "team": "shop", "tier": "front"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}},
        "spec": {"containers": [container("shop"), container("proxy"), container("reload")],
            "volumes": [{"name": "settings", "configMap": {"name": "shop", "defaultMode": 420}}],
            "serviceAccountName": "shop", "restartPolicy": "Always",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}})
}

/// The component of a policy with a section that holds a number: other code for each.
fn component(number: u32) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/target/components/required-labels.wasm");
    let mut bytes = std::fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo xtask guests` builds it", path.display())
    });
    // Kind 0, its length, the length of its name, name and contents.
    bytes.extend([0, 9, 4]);
    bytes.extend(b"copy");
    bytes.extend(number.to_le_bytes());
    bytes
}

/// Nothing to read.
struct NoWorld;

impl Host for NoWorld {
    fn get(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::NotFound)
    }

    fn list(&mut self, _: &ResourceKind, _: &str, _: &str, _: usize) -> Result<String, ReadError> {
        Err(ReadError::NotFound)
    }

    fn now_ms(&mut self) -> u64 {
        0
    }

    fn log(&mut self, _: Level, _: &str) {}
}
