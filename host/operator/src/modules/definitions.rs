//! Changes of CustomResourceDefinitions: they may make a candidate's kinds fit, and change what a
//! status may hold.

use std::collections::BTreeSet;

use innkeeper_cluster::{ApiClient, ApiError, KindState, crd};
use innkeeper_contract::{Kind, KindRole, Manifest};
use innkeeper_core::ObjectKey;
use innkeeper_modules::Event;
use serde_json::Value;

use super::crds::{StatusSchema, definition_of};
use super::event::SupervisorEvent;
use super::supervisor::Supervisor;

impl Supervisor {
    /// A CustomResourceDefinition was created, changed or deleted; `owner` is the module that
    /// installed it, and `spec_changed` says whether its spec may be another one.
    pub(super) async fn crd_changed(
        &mut self,
        name: &str,
        owner: Option<&str>,
        spec_changed: bool,
    ) {
        if let Some((_, group)) = name.split_once('.') {
            self.cluster.kinds_changed(group);
            self.caches.kind_may_be_served(group);
            self.retry_mismatched(group).await;
        }
        self.read_status_schema(name);
        self.tell_modules_of_definition(name, owner, spec_changed).await;
    }

    /// Tries candidates again that were refused for a kind of a group.
    async fn retry_mismatched(&mut self, group: &str) {
        let of_group = |(_, groups): &(&String, &BTreeSet<String>)| groups.contains(group);
        let names: Vec<String> =
            self.mismatched.iter().filter(of_group).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.mismatched.remove(&name);
            self.handle(&name, Event::Retry).await;
        }
    }

    /// Looks the kinds of a module's parameters up again, if the API server serves one otherwise
    /// than the active revision uses it. Kinds that the guest declares itself stay closed.
    pub(super) async fn resolve_kinds_again(&mut self, name: &str) {
        let Some(active) = self.shared.module(name) else { return };
        let described = active.guest().described();
        if described.kind_parameters.is_empty() {
            return;
        }
        let states = active.view.states();
        let has_changed = active.kinds().any(|kind| {
            matches!(states.get(kind), Some(KindState::Mismatched(_)))
                && !is_declared(described, kind)
        });
        if has_changed {
            self.handle(name, Event::KindsChanged).await;
        }
    }

    /// Reads the schema of the status from a CustomResourceDefinition, if it is of an active
    /// module's primary: members that the API server would prune are not sent.
    pub(super) fn read_status_schema(&mut self, name: &str) {
        let modules = self.shared.modules();
        let Some(active) = modules.into_iter().find(|one| one.primary_kind.resource() == name)
        else {
            return;
        };
        let (client, kind) = (self.cluster.host(), active.primary_kind.clone());
        let (outbox, name) = (self.outbox.clone(), name.to_owned());
        let number = self.schema_reads.begin();
        let reads_definitions = self.host.reads_definitions();
        self.spawn("definition", async move {
            let definition = if reads_definitions {
                read_definition(&client, &kind, &name).await
            } else {
                client.published_definition(&kind).await
            };
            let schema = match definition {
                Ok(Some(definition)) => StatusSchema::of(&definition, &kind),
                Ok(None) => StatusSchema::Whole,
                Err(error) => {
                    tracing::info!(
                        definition = %name,
                        "cannot be read, so statuses are sent whole: {error}"
                    );
                    StatusSchema::Whole
                }
            };
            let kind = (*kind).clone();
            let _ = outbox.send(SupervisorEvent::StatusSchema { kind, number, schema });
        });
    }

    /// Reads the schema of the status again after a change of the kinds that a module can read, if
    /// the host does not watch definitions.
    pub(super) fn read_published_schema(&mut self, module: &str) {
        if !self.host.reads_definitions()
            && let Some(active) = self.shared.module(module)
        {
            self.read_status_schema(&active.primary_kind.resource());
        }
    }
}

/// Whether a guest describes a kind itself. The kind of a parameter replaces a default primary.
fn is_declared(described: &Manifest, kind: &Kind) -> bool {
    let mut roles = described.kind_parameters.iter().map(|parameter| parameter.role);
    let primary = (!roles.any(|role| role == KindRole::Primary)).then_some(&described.primary);
    let primary = primary.into_iter().flatten();
    let owned = described.owned.iter().map(|owned| &owned.kind);
    owned.chain(&described.reads).chain(primary).any(|declared| declared == kind)
}

/// The definition of a kind, or what the API server publishes of it if the host may not read it.
async fn read_definition(
    client: &ApiClient,
    kind: &Kind,
    name: &str,
) -> Result<Option<Value>, ApiError> {
    match client.get(&crd::kind(), &ObjectKey::new("", name)).await {
        Ok(object) => Ok(Some(definition_of(&object))),
        Err(ApiError::Forbidden { .. }) => client.published_definition(kind).await,
        Err(error) => Err(error),
    }
}
