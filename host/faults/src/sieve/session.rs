//! The state of a plan that is carried out: what was observed, what is paused, and the client.

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::crash_signal::CrashSignal;
use crate::request_info::RequestInfo;
use crate::restart::Restart;
use crate::sieve::action::ActionKind;
use crate::sieve::changes::Changes;
use crate::sieve::condition::Observer;
use crate::sieve::coordinator::{Coordinator, ObjectChange};
use crate::sieve::discovery::ServedKind;
use crate::sieve::pauses::Pauses;
use crate::sieve::plan::SievePlan;
use crate::sieve::resource_key::ResourceKey;

/// A plan that is carried out.
pub(crate) struct Session {
    servers: Vec<String>,
    coordinator: Coordinator,
    pub(crate) pauses: Pauses,
    pub(crate) changes: Changes,
    /// The kinds that the API server serves.
    pub(crate) kinds: Vec<ServedKind>,
    /// Says whether the client under test has crashed.
    crash_signal: CrashSignal,
    /// The API server of the client.
    server: String,
    /// Wakes whatever waits for the end of a pause.
    changed: watch::Sender<()>,
    reports: mpsc::Sender<String>,
    restarts: mpsc::UnboundedSender<Restart>,
}

impl Session {
    pub(crate) fn new(
        plan: SievePlan,
        reports: mpsc::Sender<String>,
        restarts: mpsc::UnboundedSender<Restart>,
    ) -> Self {
        let mut keys: Vec<ResourceKey> = Vec::new();
        for action in &plan.actions {
            keys.extend(action.triggers.iter().filter_map(|one| one.condition.key()).cloned());
            match &action.kind {
                ActionKind::PauseApiServer { scope: Some(scope), .. }
                | ActionKind::PauseController { scope: Some(scope), .. } => {
                    keys.push(scope.clone());
                }
                _ => {}
            }
        }
        keys.sort();
        keys.dedup();
        Self {
            servers: plan.servers(),
            coordinator: Coordinator::new(plan),
            pauses: Pauses::default(),
            changes: Changes::new(keys),
            kinds: Vec::new(),
            crash_signal: CrashSignal::default(),
            server: SievePlan::LEADING.to_owned(),
            changed: watch::Sender::new(()),
            reports,
            restarts,
        }
    }

    /// Says whether the client under test has crashed.
    pub(crate) fn crash_signal(&self) -> CrashSignal {
        self.crash_signal.clone()
    }

    /// The client was started again, at an API server.
    pub(crate) fn client_started(&mut self, server: &str) {
        self.crash_signal = CrashSignal::default();
        server.clone_into(&mut self.server);
    }

    /// The actions that have not happened, in order, as a person reads them.
    pub(crate) fn pending_lines(&self) -> Vec<String> {
        self.coordinator.pending().map(ToString::to_string).collect()
    }

    /// Becomes ready when a pause begins or ends.
    pub(crate) fn changed(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The kind of the objects of a request in lower case.
    pub(crate) fn kind_of(&self, info: &RequestInfo) -> Option<&str> {
        let is_it = |kind: &&ServedKind| kind.group == info.group && kind.plural == info.resource;
        self.kinds.iter().find(is_it).map(|kind| kind.kind.as_str())
    }

    /// Observes all changes that have happened.
    pub(crate) fn catch_up(&mut self, now: Instant) {
        for change in self.changes.take() {
            let object = ObjectChange {
                key: &change.key,
                previous: change.previous.as_ref(),
                current: change.current.as_ref(),
            };
            for before in [true, false] {
                for server in self.servers.clone() {
                    if self.pauses.frozen(&server, &change.key.kind).is_some() {
                        continue;
                    }
                    let observer = Observer::ApiServer { name: server.clone(), before };
                    self.observe(&observer, &object, now);
                    let version =
                        if before { change.version.saturating_sub(1) } else { change.version };
                    self.pauses.freeze(&server, &change.key, version);
                }
            }
            if self.pauses.frozen(&self.server, &change.key.kind).is_none() {
                for before in [true, false] {
                    self.observe(&Observer::Informer { before }, &object, now);
                }
            }
        }
        let happen = self.coordinator.advance(now);
        self.perform(happen);
    }

    /// Takes a change as somebody observes it.
    pub(crate) fn observe(&mut self, observer: &Observer, change: &ObjectChange<'_>, now: Instant) {
        let happen = self.coordinator.observe(observer, change, now);
        self.perform(happen);
    }

    /// Takes a write of the client under test, before or after it is carried out. `current` is the
    /// object as the write has it, `None` if it deletes the object.
    pub(crate) fn observe_write(
        &mut self,
        before: bool,
        key: &ResourceKey,
        previous: Option<&Value>,
        current: Option<&Value>,
        now: Instant,
    ) {
        let change = ObjectChange { key, previous, current };
        self.observe(&Observer::Write { before }, &change, now);
    }

    fn perform(&mut self, happen: Vec<ActionKind>) {
        if happen.is_empty() {
            return;
        }
        for action in happen {
            // A full channel has enough lines for a person.
            let _ = self.reports.try_send(action.to_string());
            self.pauses.apply(&action);
            let server = match &action {
                ActionKind::RestartController => self.server.clone(),
                ActionKind::ReconnectController { api_server } => api_server.clone(),
                _ => continue,
            };
            self.crash_signal.crash();
            // Without a receiver nobody starts the client again.
            let _ = self.restarts.send(Restart { api_server: server });
        }
        if self.coordinator.is_over() {
            let _ = self.reports.try_send("all actions of the plan have happened".to_owned());
        }
        self.changed.send_replace(());
    }
}
