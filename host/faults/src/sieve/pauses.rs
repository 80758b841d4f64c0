//! What is paused now.

use std::collections::BTreeMap;

use crate::sieve::action::{ActionKind, PausePoint};
use crate::sieve::resource_key::ResourceKey;

/// The pauses of API servers and of the client under test.
#[derive(Default)]
pub(crate) struct Pauses {
    /// The objects at whose next change an API server stops showing changes of their kind.
    servers: Vec<(String, ResourceKey)>,
    /// The version at which an API server shows a kind, by its name and the kind.
    frozen: BTreeMap<(String, String), u64>,
    client: Vec<(PausePoint, Option<ResourceKey>)>,
}

impl Pauses {
    /// Begins or ends a pause.
    pub(crate) fn apply(&mut self, action: &ActionKind) {
        match action {
            ActionKind::PauseApiServer { name, scope: Some(scope) } => {
                self.servers.push((name.clone(), scope.clone()));
            }
            ActionKind::ResumeApiServer { name, scope } => {
                let ends = |key: &ResourceKey| scope.as_ref().is_none_or(|scope| scope == key);
                self.servers.retain(|(server, key)| server != name || !ends(key));
                let Self { servers, frozen, .. } = self;
                frozen.retain(|(server, kind), _| {
                    let goes_on = |(paused, key): &(String, ResourceKey)| {
                        paused == server && key.kind == *kind
                    };
                    server != name || servers.iter().any(goes_on)
                });
            }
            ActionKind::PauseController { at, scope } => self.client.push((*at, scope.clone())),
            ActionKind::ResumeController { at, scope } => {
                self.client.retain(|pause| *pause != (*at, scope.clone()));
            }
            ActionKind::PauseApiServer { scope: None, .. }
            | ActionKind::RestartController
            | ActionKind::ReconnectController { .. } => {}
        }
    }

    /// Freezes the kind of an object at an API server that is paused for the object.
    pub(crate) fn freeze(&mut self, server: &str, key: &ResourceKey, version: u64) {
        let is_paused = self.servers.iter().any(|(name, scope)| name == server && scope.names(key));
        if is_paused {
            self.frozen.entry((server.to_owned(), key.kind.clone())).or_insert(version);
        }
    }

    /// The version at which an API server shows a kind, if it is frozen.
    pub(crate) fn frozen(&self, server: &str, kind: &str) -> Option<u64> {
        self.frozen.get(&(server.to_owned(), kind.to_owned())).copied()
    }

    /// Whether requests of the client for an object wait at a point.
    pub(crate) fn holds(&self, point: PausePoint, key: &ResourceKey) -> bool {
        self.client
            .iter()
            .any(|(at, scope)| *at == point && scope.as_ref().is_none_or(|scope| scope.names(key)))
    }

    /// Whether reads of the client of a kind wait, since they contain an object.
    pub(crate) fn holds_kind(&self, kind: &str) -> bool {
        self.client.iter().any(|(at, scope)| {
            matches!(at, PausePoint::BeforeRead | PausePoint::AfterRead)
                && scope.as_ref().is_none_or(|scope| scope.kind == kind)
        })
    }

    /// Whether reads of the client of an object wait.
    pub(crate) fn holds_reads(&self, key: &ResourceKey) -> bool {
        self.holds(PausePoint::BeforeRead, key) || self.holds(PausePoint::AfterRead, key)
    }
}
