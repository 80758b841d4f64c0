//! A scripted server, caches of it, and a listener that records its notices.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectKey};
use serde_json::{Value, json};

use crate::KindState;
use crate::cache::{CacheLookup, Caches, Change, Listener, Namespaces, StateChange, View};
use crate::scripted::{Server, eventually, list};

pub(super) const MAPS: &str = "/api/v1/configmaps";
pub(super) const REVIEW: &str = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

pub(super) fn maps() -> Kind {
    Kind::namespaced("v1", "ConfigMap", "configmaps")
}

pub(super) fn map(name: &str, uid: &str, version: u64) -> Value {
    json!({ "metadata": {
        "namespace": "n", "name": name, "uid": uid, "resourceVersion": version.to_string(),
    }})
}

pub(super) fn object(value: &Value) -> Object {
    Object::decode(&maps(), &value.to_string(), None).unwrap()
}

pub(super) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

/// A listener that records its notices, a line each.
#[derive(Default)]
pub(super) struct NoticeLog(Mutex<Vec<String>>);

impl NoticeLog {
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Listener for NoticeLog {
    fn changed(&self, change: &Change) {
        let version = |object: &Option<Arc<Object>>| {
            object.as_ref().map_or("-".into(), |o| format!("{}@{}", o.uid, o.resource_version))
        };
        let line = format!(
            "{} {} -> {} {:?}",
            change.key,
            version(&change.before),
            version(&change.after),
            change.source
        );
        self.0.lock().unwrap().push(line);
    }

    fn state_changed(&self, change: &StateChange) {
        let state = match &change.state {
            KindState::Forbidden(denial) => format!("Forbidden: {denial}"),
            state => format!("{state:?}"),
        };
        self.0.lock().unwrap().push(format!("{}: {} {state}", change.module, change.kind.kind));
    }
}

pub(super) struct Test {
    pub(super) server: Server,
    pub(super) caches: Caches,
    pub(super) notices: Arc<NoticeLog>,
}

impl Test {
    pub(super) fn new() -> Self {
        let server = Server::new();
        let notices = Arc::new(NoticeLog::default());
        let caches = Caches::new(Server::env(), notices.clone());
        Self { server, caches, notices }
    }

    pub(super) fn open(&self, module: &str) -> View {
        let client = self.server.client(module);
        self.caches.open(&client, module, &[maps()], &Namespaces::All)
    }

    /// A view that has synced, with one open watch and no notices.
    pub(super) async fn synced(items: &[Value]) -> (Self, View, crate::scripted::Watch) {
        let test = Self::new();
        test.server.always(&format!("GET {MAPS}"), list(10, items));
        let view = test.open("a");
        let watch = test.server.watch(MAPS).await;
        assert_eq!(test.notices.take(), ["a: ConfigMap Synced"]);
        (test, view, watch)
    }

    pub(super) async fn expect_notices(&self, lines: &[&str]) {
        eventually(&format!("{} notices arrive", lines.len()), || {
            self.notices.count() >= lines.len()
        })
        .await;
        assert_eq!(self.notices.take(), lines);
    }

    /// Waits, on virtual time, until everything in flight has arrived.
    pub(super) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(super) fn cached(view: &View, name: &str) -> String {
    match view.snapshot().get(&maps(), &key(name)) {
        CacheLookup::Found(object) => format!("{}@{}", object.uid, object.resource_version),
        other => format!("{other:?}"),
    }
}
