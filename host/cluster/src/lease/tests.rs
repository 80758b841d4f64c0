use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::BoxError;

use super::*;
use crate::SecretDigestKey;
use crate::scripted::{Server, status};

type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;
type Line = Result<Frame<Bytes>, BoxError>;

/// An API server with one Lease.
#[derive(Clone, Default)]
struct Leases(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    watches: Vec<mpsc::UnboundedSender<Line>>,
    writes: usize,
    /// For how many seconds each watch was asked.
    asked: Vec<u64>,
    /// Candidates that get no answer.
    cut_off: Vec<&'static str>,
}

impl Leases {
    /// Writes as another client would.
    fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut lease = self.0.lock().unwrap().lease.clone().unwrap();
        change(&mut lease);
        self.put(Some(lease));
    }

    fn put(&self, lease: Option<Value>) {
        let mut state = self.0.lock().unwrap();
        state.version += 1;
        let (event, mut object) = match (&state.lease, lease) {
            (None, Some(lease)) => ("ADDED", lease),
            (Some(_), Some(lease)) => ("MODIFIED", lease),
            (Some(lease), None) => ("DELETED", lease.clone()),
            (None, None) => return,
        };
        object["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.lease = Some(object.clone()).filter(|_| event != "DELETED");
        let line = format!("{{\"type\":\"{event}\",\"object\":{object}}}\n");
        state.watches.retain(|watch| watch.send(Ok(Frame::data(line.clone().into()))).is_ok());
    }

    fn spec(&self) -> Value {
        self.0.lock().unwrap().lease.clone().unwrap_or_default()["spec"].clone()
    }

    fn writes(&self) -> usize {
        self.0.lock().unwrap().writes
    }

    fn cut_off(&self, who: &'static str) {
        let mut state = self.0.lock().unwrap();
        state.cut_off.push(who);
        state.watches.clear();
    }

    fn restore(&self) {
        self.0.lock().unwrap().cut_off.clear();
    }

    async fn serve(self, who: &'static str, request: Request<Body>) -> Result<Reply, BoxError> {
        if self.0.lock().unwrap().cut_off.contains(&who) {
            return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
        }
        let query = request.uri().query().unwrap_or_default().to_owned();
        if query.contains("watch=true") {
            let (lines, mut open) = mpsc::unbounded_channel::<Line>();
            let asked = query.split('&').find_map(|one| one.strip_prefix("timeoutSeconds="));
            let asked = asked.expect("a watch has an end").parse().unwrap();
            let mut state = self.0.lock().unwrap();
            state.asked.push(asked);
            state.watches.push(lines);
            let end = Box::pin(tokio::time::sleep(Duration::from_secs(asked)));
            let stream = stream::poll_fn(move |cx| open.poll_recv(cx)).take_until(end);
            return Ok(Response::new(StreamBody::new(stream).boxed_unsync()));
        }
        if request.method() == Method::GET {
            let state = self.0.lock().unwrap();
            let name = request.uri().path().ends_with("/leases/innkeeper");
            let items: Vec<&Value> = state.lease.iter().collect();
            return Ok(match &state.lease {
                _ if !name => reply(
                    200,
                    &json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1",
                    "metadata": {"resourceVersion": state.version.to_string()}, "items": items}),
                ),
                Some(lease) => reply(200, lease),
                None => {
                    let details = json!({"name": "innkeeper", "kind": "leases"});
                    reply(404, &status(404, "NotFound", "not found", &details))
                }
            });
        }
        assert_eq!(request.method(), Method::PATCH);
        let body = request.into_body().collect_bytes().await?;
        let body: Value = serde_json::from_slice(&body)?;
        let code = {
            let mut state = self.0.lock().unwrap();
            state.writes += 1;
            let guard = body["metadata"]["resourceVersion"].as_str().unwrap();
            match &state.lease {
                None if guard == "1" => 201,
                Some(lease) if lease["metadata"]["resourceVersion"] == guard => 200,
                _ => 409,
            }
        };
        if code == 409 {
            let text = "Operation cannot be fulfilled on leases.coordination.k8s.io \"innkeeper\": the object has been modified; please apply your changes to the latest version and try again";
            let details =
                json!({"name": "innkeeper", "group": "coordination.k8s.io", "kind": "leases"});
            return Ok(reply(409, &status(409, "Conflict", text, &details)));
        }
        let mut lease = body;
        lease["metadata"]["uid"] = "u".into();
        self.put(Some(lease));
        let lease = self.0.lock().unwrap().lease.clone().unwrap_or_default();
        Ok(reply(code, &lease))
    }

    fn candidate(&self, env: &Env, who: &'static str) -> LeaderElector {
        let leases = self.clone();
        let service = tower::service_fn(move |request| leases.clone().serve(who, request));
        let terms = LeaseConfig::default();
        let cluster =
            Cluster::over(service, env.clone(), terms.settings(), SecretDigestKey::new(b"k"));
        let at = ("sys", "innkeeper");
        LeaderElector::new(&cluster, at, who, terms)
    }
}

fn reply(code: u16, body: &Value) -> Reply {
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
    Response::builder().status(code).body(body.boxed_unsync()).unwrap()
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Waits for something, on virtual time, and gives how long that was.
async fn took<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let output = tokio::time::timeout(Duration::from_mins(5), future).await.expect("it comes");
    (output, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn free_lease_is_acquired_at_once_and_renewed() {
    let (env, leases) = (Server::env(), Leases::default());
    let mut a = leases.candidate(&env, "a");
    let (fence, waited) = took(a.acquire()).await;
    assert_eq!(waited, Duration::ZERO);
    assert_eq!(
        leases.spec(),
        json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"})
    );
    assert_eq!(fence.left(), seconds(10.0));
    let held = tokio::time::timeout(seconds(61.0), a.hold()).await;
    assert!(held.is_err(), "{held:?}");
    assert!(fence.left() >= seconds(7.5), "{:?}", fence.left());
    assert_eq!(leases.writes(), 25, "one in 2.5 s");
    assert_eq!(leases.spec()["acquireTime"], "2026-01-01T00:00:00.000000Z");
    assert_eq!(leases.spec()["renewTime"], "2026-01-01T00:01:00.000000Z");
}

#[tokio::test(start_paused = true)]
async fn released_lease_is_acquired_at_once_by_a_waiting_candidate() {
    let (env, leases) = (Server::env(), Leases::default());
    let (mut a, mut b) = (leases.candidate(&env, "a"), leases.candidate(&env, "b"));
    let first = a.acquire().await;
    let waiting = tokio::time::timeout(Duration::from_mins(2), async {
        tokio::select! { _ = b.acquire() => panic!("two"), lost = a.hold() => panic!("{lost}") }
    });
    assert!(waiting.await.is_err());
    a.release().await;
    assert!(first.is_closed());
    assert_eq!(leases.spec().get("holderIdentity"), None);
    let (_, waited) = took(b.acquire()).await;
    assert!(waited < seconds(0.1), "{waited:?}");
    assert_eq!(leases.spec()["leaseTransitions"], 1);
    // A candidate does not release the Lease of another one.
    a.release().await;
    assert_eq!(leases.spec()["holderIdentity"], "b");
}

#[tokio::test(start_paused = true)]
async fn standby_lets_the_server_end_each_watch() {
    let (env, leases) = (Server::env(), Leases::default());
    let (mut a, mut b) = (leases.candidate(&env, "a"), leases.candidate(&env, "b"));
    a.acquire().await;
    leases.0.lock().unwrap().asked.clear();
    let waiting = tokio::time::timeout(Duration::from_mins(2), async {
        tokio::select! { _ = b.acquire() => panic!("two"), lost = a.hold() => panic!("{lost}") }
    });
    assert!(waiting.await.is_err());
    let seconds = crate::settings::WATCH_TIMEOUT.as_secs();
    assert_eq!(leases.0.lock().unwrap().asked, [seconds; 3], "one after the other for two minutes");
}

#[tokio::test(start_paused = true)]
async fn lease_of_a_dead_holder_is_acquired_after_its_duration() {
    let (env, leases) = (Server::env(), Leases::default());
    let mut a = leases.candidate(&env, "a");
    a.acquire().await;
    drop(a);
    env.sleep(seconds(60.0)).await;
    // Clocks need not agree: the candidate counts from its own observation.
    let mut b = leases.candidate(&env, "b");
    let (_, waited) = took(b.acquire()).await;
    assert!(waited >= seconds(15.0) && waited < seconds(15.1), "{waited:?}");
    // The same name again is the same pod after a restart.
    let mut b = leases.candidate(&env, "b");
    let (_, waited) = took(b.acquire()).await;
    assert_eq!(waited, Duration::ZERO);
    assert_eq!(leases.spec()["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn holder_cut_off_from_the_server_stops_before_another_one_acquires() {
    let (env, leases) = (Server::env(), Leases::default());
    let (mut a, mut b) = (leases.candidate(&env, "a"), leases.candidate(&env, "b"));
    let first = a.acquire().await;
    let waiting = tokio::spawn(async move { (b.acquire().await, Instant::now()) });
    assert!(tokio::time::timeout(seconds(30.0), a.hold()).await.is_err());
    leases.cut_off("a");
    let lost = a.hold().await;
    let ended = Instant::now();
    assert!(first.is_closed());
    assert!(lost.to_string().starts_with("it was not renewed for 10 s: "), "{lost}");
    let (second, began) = waiting.await.unwrap();
    assert!(began - ended >= seconds(4.0), "{:?}", began - ended);
    assert!(!second.is_closed());
    leases.restore();
    assert!(tokio::time::timeout(seconds(10.0), a.acquire()).await.is_err());
    assert!(first.is_closed());
}

#[tokio::test(start_paused = true)]
async fn short_outage_does_not_lose_the_lease() {
    let (env, leases) = (Server::env(), Leases::default());
    let mut a = leases.candidate(&env, "a");
    let fence = a.acquire().await;
    leases.cut_off("a");
    assert!(tokio::time::timeout(seconds(7.0), a.hold()).await.is_err());
    leases.restore();
    assert!(tokio::time::timeout(seconds(30.0), a.hold()).await.is_err());
    assert!(!fence.is_closed());
}

#[tokio::test(start_paused = true)]
async fn paused_holder_finds_its_fence_closed_and_loses_the_lease_at_once() {
    let (env, leases) = (Server::env(), Leases::default());
    let mut a = leases.candidate(&env, "a");
    let fence = a.acquire().await;
    let before = leases.writes();
    // `hold` does not run in this time.
    tokio::time::advance(seconds(12.0)).await;
    assert!(fence.is_closed(), "the fence closes by its clock alone");
    let (lost, waited) = took(a.hold()).await;
    assert_eq!(lost.to_string(), "it was not renewed for 10 s: this host was paused");
    assert_eq!((waited, leases.writes()), (Duration::ZERO, before));
    // No other candidate acquired it, so the same one does.
    let (again, _) = took(a.acquire()).await;
    assert!(!again.is_closed());
    assert!(fence.is_closed(), "the fence of the term before stays closed");
}

#[tokio::test(start_paused = true)]
async fn edited_lease_is_kept_and_one_with_another_holder_is_lost() {
    let (env, leases) = (Server::env(), Leases::default());
    let mut a = leases.candidate(&env, "a");
    let fence = a.acquire().await;
    leases.edit(|lease| lease["metadata"]["labels"] = json!({"a": "b"}));
    assert!(tokio::time::timeout(seconds(20.0), a.hold()).await.is_err());
    leases.put(None);
    assert!(tokio::time::timeout(seconds(20.0), a.hold()).await.is_err());
    assert_eq!(leases.spec()["holderIdentity"], "a", "created again");
    assert!(!fence.is_closed());
    leases.edit(|lease| lease["spec"]["holderIdentity"] = "b".into());
    let (lost, waited) = took(a.hold()).await;
    assert_eq!(lost, LeaseLost::Taken("b".into()));
    assert!(waited <= seconds(2.5), "{waited:?}");
    assert!(fence.is_closed());
}

#[tokio::test(start_paused = true)]
async fn requests_behind_a_closed_fence_are_neither_sent_nor_repeated() {
    let server = Server::new();
    let env = Server::env();
    let fence = Fence::closed(&env);
    let client = server.cluster().behind(fence.clone()).host();
    let (kind, key) = (kind(), ObjectKey::new("sys", "innkeeper"));
    let error = client.get(&kind, &key).await.unwrap_err();
    assert!(error.to_string().contains("this host's Lease has expired"), "{error}");
    assert_eq!(server.log(), Vec::<String>::new());
    // The client waits for the response only while the Lease lasts, and then repeats nothing.
    fence.extend(env.uptime() + seconds(3.0));
    server.always(
        "GET /apis/coordination.k8s.io/v1/namespaces/sys/leases/innkeeper",
        crate::scripted::Reply::Hang,
    );
    let (result, waited) = took(client.get(&kind, &key)).await;
    assert!(waited >= seconds(3.0) && waited < seconds(4.0), "{waited:?}");
    assert!(
        matches!(result, Err(ApiError::Timeout { .. } | ApiError::Unavailable { .. })),
        "{result:?}"
    );
    assert_eq!(server.log().len(), 1);
}
