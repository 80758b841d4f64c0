//! A guard of the limit of an update group: it looks at each write of the host before the API
//! server carries it out, and may have requests fail.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use innkeeper_simulator::Simulator;
use serde_json::Value;

use super::proxy::{Reply, Sent};
use super::script::GROUP;
use super::stage::Stage;
use super::stage_objects::NAMESPACE;

/// What the guard has seen, and what it does with the next writes.
#[derive(Default)]
struct State {
    violations: Vec<String>,
    faults: VecDeque<Reply>,
}

/// A guard over all Widgets of the namespace of the primaries. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Guard {
    simulator: Simulator,
    max: usize,
    count: usize,
    state: Arc<Mutex<State>>,
}

impl Guard {
    /// A guard of a group with `count` Widgets, of which `max` may be unavailable.
    pub(crate) fn new(stage: &Stage, max: usize, count: usize) -> Self {
        Self { simulator: stage.simulator().clone(), max, count, state: Arc::default() }
    }

    /// Looks at all requests that this host sends from here on.
    pub(crate) fn watch(&self, stage: &Stage) {
        let guard = self.clone();
        stage.proxy().intercept(move |sent| guard.reply(sent));
    }

    /// Answers the next writes of the module like this, one after the other.
    pub(crate) fn fail(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state().faults = replies.into_iter().collect();
    }

    /// The writes that made one Widget too many unavailable.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.state().violations.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, sent: &Sent) -> Reply {
        if !sent.is_write() || sent.user.is_empty() {
            return Reply::Forward;
        }
        let reply = self.state().faults.pop_front().unwrap_or(Reply::Forward);
        if !matches!(reply, Reply::Refuse(_)) {
            self.check(sent);
        }
        reply
    }

    fn check(&self, sent: &Sent) {
        let Some(name) = sent.path.strip_prefix(&format!("{}/", widgets_path())) else { return };
        if sent.query.contains("dryRun") || name.contains('/') {
            return;
        }
        let widgets = self.widgets();
        let available: Vec<&Value> = widgets.iter().filter(|one| is_available(one)).collect();
        let Some(target) = available.iter().find(|one| one["metadata"]["name"] == name) else {
            return;
        };
        let is_unavailable_now = sent.method == "DELETE" || sent.body["spec"] != target["spec"];
        let unavailable = self.count - available.len();
        if is_unavailable_now && unavailable >= self.max {
            let names: Vec<&Value> = available.iter().map(|one| &one["metadata"]["name"]).collect();
            self.state().violations.push(format!("{} while {names:?} are available", sent.line()));
        }
    }

    fn widgets(&self) -> Vec<Value> {
        let request = http::Request::builder().uri(widgets_path()).body(Bytes::new()).unwrap();
        let text = self.simulator.request(request).into_body().try_next().unwrap_or_default();
        let list: Value = serde_json::from_slice(&text).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }
}

fn widgets_path() -> String {
    format!("/apis/{GROUP}/v1/namespaces/{NAMESPACE}/widgets")
}

/// Whether a Widget is ready in its present generation.
fn is_available(widget: &Value) -> bool {
    let generation = &widget["metadata"]["generation"];
    let conditions = widget["status"]["conditions"].as_array().into_iter().flatten();
    let is_ready = |one: &Value| {
        one["type"] == "Ready"
            && one["status"] == "True"
            && one["observedGeneration"] == *generation
    };
    widget["metadata"]["deletionTimestamp"].is_null() && conditions.into_iter().any(is_ready)
}
