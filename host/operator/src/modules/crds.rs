//! CustomResourceDefinitions that a guest describes: installed as the module's ServiceAccount,
//! within the groups that its Module grants, before the revision is active.
//!
//! The label [`MODULE_LABEL`] names the module that installed a definition: only that module
//! changes it.

mod adoption;
mod compatibility;
mod live_definition;
mod status_schema;
mod stored_objects;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiClient, crd};
use innkeeper_core::{Manager, Object, ObjectKey, crd_compat, foreign, in_sync};
use innkeeper_modules::definitions::MODULE_LABEL;
use innkeeper_modules::machine::reason::{CRD_NOT_ADDITIVE, WOULD_LOSE_DATA};
use innkeeper_modules::{
    Adoption, CrdRefusal, CrdRequest, Example, InstalledCrds, PlannedChange, Rejection, RetryPolicy,
};
use serde_json::Value;
use tokio::sync::Mutex;

use self::adoption::Narrowing;
use self::compatibility::{
    changes_additively, check_foreign, check_shared, definition_of, not_granted, refuse_webhook,
    refused,
};
use self::live_definition::{DefinitionReader, LiveDefinition};
pub use self::status_schema::StatusSchema;
use self::stored_objects::{LossCheck, StoredObjectCheck};

/// The most changed fields that are named of one definition.
const FIELDS_MAX: usize = 5;

/// The longest refusal in a preview, in bytes.
const REFUSAL_BYTES_MAX: usize = 512;

/// Installs definitions for one module.
#[derive(Clone, Copy, Debug)]
pub struct Installer<'a> {
    /// Requests as the host: it reads installed definitions, so that a module needs no right to.
    pub host: &'a ApiClient,
    /// Requests as the module's ServiceAccount.
    pub client: &'a ApiClient,
    /// The module's name.
    pub module: &'a str,
    /// The namespaces of its primaries; empty for all.
    pub namespaces: &'a BTreeSet<String>,
    /// Whether definitions of somebody else become the module's.
    pub adoption: Option<Adoption>,
    /// Whether the spec still asks for the adoption; it may change meanwhile.
    pub adopts: &'a AtomicBool,
    /// Held while stored objects are checked, over all modules.
    pub object_checks: &'a Mutex<()>,
}

/// An installation that failed, and what it wrote before.
#[derive(Debug)]
pub struct FailedInstallation {
    /// The definitions that it wrote.
    pub installed: InstalledCrds,
    /// Why it failed.
    pub refusal: CrdRefusal,
}

impl From<Rejection> for FailedInstallation {
    fn from(rejection: Rejection) -> Self {
        Self { installed: InstalledCrds::default(), refusal: rejection.into() }
    }
}

/// The decision about one definition.
enum Decision {
    /// The installed one is used as it is.
    Keep,
    /// The installed one is used, and cannot be read.
    KeepUnread,
    /// It is applied; the fields that change are none if it is not there yet.
    Apply {
        /// What is sent.
        body: Value,
        /// Whether it is there.
        exists: bool,
        /// Fields of its spec that change.
        fields: Vec<String>,
        /// The definition of somebody else that becomes the module's.
        adopted: Option<Adopted>,
    },
}

/// A definition of somebody else.
struct Adopted {
    /// Its spec.
    spec: Value,
    /// What the module's definition takes away from it.
    narrowing: Vec<String>,
}

impl Installer<'_> {
    /// Installs what is granted and checks what is not; waits until all are served.
    ///
    /// # Errors
    /// The first definition that cannot be installed or used, or those that require an approval.
    pub async fn install(
        &self,
        requests: &[CrdRequest],
    ) -> Result<InstalledCrds, FailedInstallation> {
        let mut installed = InstalledCrds::default();
        match self.install_into(requests, &mut installed).await {
            Ok(()) => Ok(installed),
            Err(refusal) => Err(FailedInstallation { installed, refusal }),
        }
    }

    /// Installs, and adds each definition that it wrote to `installed`.
    async fn install_into(
        &self,
        requests: &[CrdRequest],
        installed: &mut InstalledCrds,
    ) -> Result<(), CrdRefusal> {
        // All are decided before one is written: a candidate that is held changes nothing.
        let mut decisions = Vec::new();
        for request in requests {
            decisions.push((request, self.decide(request).await?));
        }
        self.check_approval(&decisions)?;
        let mut awaited = Vec::new();
        for (request, decision) in decisions {
            if !matches!(decision, Decision::KeepUnread) {
                awaited.push(request);
            }
            let Decision::Apply { body, exists, fields, adopted } = decision else { continue };
            if adopted.is_some() && !self.adopts.load(Ordering::SeqCst) {
                return Err(withdrawn(request).into());
            }
            match self.apply(request, &body).await {
                // Only labels or descriptions would change: the account needs no right for that.
                Err(rejection)
                    if exists
                        && adopted.is_none()
                        && fields.is_empty()
                        && rejection.reason == "CRDForbidden" =>
                {
                    tracing::warn!(crd = %request.name, module = self.module, "{}", rejection.message);
                }
                result => result?,
            }
            if adopted.is_some() {
                installed.adopted.push(request.name.clone());
            } else if !exists {
                installed.created.push(request.name.clone());
            }
        }
        for request in awaited {
            self.definitions().established(request).await?;
        }
        Ok(())
    }

    /// Refuses to take something away from definitions of somebody else without an approval.
    fn check_approval(&self, decisions: &[(&CrdRequest, Decision)]) -> Result<(), CrdRefusal> {
        let narrowings: Vec<Narrowing<'_>> = decisions
            .iter()
            .filter_map(|(request, decision)| match decision {
                Decision::Apply { adopted: Some(Adopted { spec, narrowing }), .. }
                    if !narrowing.is_empty() =>
                {
                    Some(Narrowing { request, installed: spec, changes: narrowing })
                }
                _ => None,
            })
            .collect();
        if narrowings.is_empty() {
            return Ok(());
        }
        let held = adoption::held(&narrowings);
        if self.adoption.and_then(|adoption| adoption.approved) == Some(held.approval) {
            return Ok(());
        }
        Err(CrdRefusal::Held(Box::new(held)))
    }

    /// The changes and refusals of an installation. Nothing is written.
    pub async fn preview(&self, requests: &[CrdRequest]) -> Vec<Example> {
        let mut changes = Vec::new();
        for request in requests {
            let (change, fields) = match self.decide(request).await {
                Ok(Decision::Apply { exists: false, .. }) => (PlannedChange::Create, Vec::new()),
                Ok(Decision::Apply { adopted: Some(Adopted { narrowing, .. }), .. })
                    if !narrowing.is_empty() =>
                {
                    (PlannedChange::Change, narrowing.into_iter().take(FIELDS_MAX).collect())
                }
                Ok(Decision::Apply { fields, .. }) if fields.is_empty() => continue,
                Ok(Decision::Apply { fields, .. }) => (PlannedChange::Change, fields),
                Err(refused) if [CRD_NOT_ADDITIVE, WOULD_LOSE_DATA].contains(&&*refused.reason) => {
                    (
                        PlannedChange::Change,
                        vec![foreign::one_line(&refused.message, REFUSAL_BYTES_MAX)],
                    )
                }
                // Installing reports the other errors.
                Ok(Decision::Keep | Decision::KeepUnread) | Err(_) => continue,
            };
            let object = format!(
                "{} {}",
                crd::kind().kind,
                foreign::one_line(&request.name, REFUSAL_BYTES_MAX)
            );
            changes.push(Example { change, object, fields });
        }
        changes
    }

    async fn decide(&self, request: &CrdRequest) -> Result<Decision, Rejection> {
        let live = match self.definitions().read(request).await? {
            LiveDefinition::Found(live) => live,
            LiveDefinition::Served => return Ok(Decision::KeepUnread),
            LiveDefinition::Absent if !request.granted => return Err(not_granted(request)),
            LiveDefinition::Absent => {
                let body = with_metadata(self.body(request), "resourceVersion", "1");
                return Ok(Decision::Apply {
                    body,
                    exists: false,
                    fields: Vec::new(),
                    adopted: None,
                });
            }
        };
        if !is_ours(&live) || !request.granted {
            if self.adopts(request, &live) {
                return self.adopt(request, &live).await;
            }
            check_foreign(request, &live)?;
            return Ok(Decision::Keep);
        }
        let definition = definition_of(&live);
        if let Some(owner) = live.labels.get(MODULE_LABEL).filter(|owner| *owner != self.module) {
            check_shared(request, owner, &definition)?;
            return Ok(Decision::Keep);
        }
        refuse_webhook(request)?;
        let body = self.body(request);
        if in_sync::is_in_sync_after_restart(&live, &Manager::Host, &body)
            || !changes_additively(request, &definition)?
        {
            return Ok(Decision::Keep);
        }
        let fields = crd_compat::changed_fields(&definition, &request.definition, FIELDS_MAX);
        if !fields.is_empty() {
            let check = StoredObjectCheck {
                client: self.client,
                namespaces: self.namespaces,
                loss: LossCheck::First,
                lock: self.object_checks,
            };
            check.run(request, &definition).await?;
        }
        // A definition that was changed since it was read has not been compared.
        let body = with_metadata(body, "uid", &live.uid);
        let body = with_metadata(body, "resourceVersion", &live.resource_version);
        Ok(Decision::Apply { body, exists: true, fields, adopted: None })
    }

    /// Whether a definition of somebody else is to become the module's.
    fn adopts(&self, request: &CrdRequest, live: &Object) -> bool {
        let owner = live.labels.get(MODULE_LABEL);
        request.granted
            && self.adoption.is_some()
            && self.adopts.load(Ordering::SeqCst)
            && !is_ours(live)
            && owner.is_none_or(|owner| owner == self.module)
    }

    async fn adopt(&self, request: &CrdRequest, live: &Object) -> Result<Decision, Rejection> {
        refuse_webhook(request)?;
        let request = &adoption::without_unknown_fields(request);
        let definition = definition_of(live);
        adoption::check(request, live, &definition)?;
        let narrowing = crd_compat::incompatible_changes(&definition, &request.definition);
        let fields = crd_compat::changed_fields(&definition, &request.definition, FIELDS_MAX);
        if !fields.is_empty() || !narrowing.is_empty() {
            // An approval covers all objects, so all are checked.
            let everywhere = BTreeSet::new();
            let check = StoredObjectCheck {
                client: self.client,
                namespaces: if narrowing.is_empty() { self.namespaces } else { &everywhere },
                loss: LossCheck::All,
                lock: self.object_checks,
            };
            check.run(request, &definition).await?;
        }
        let mut body = self.body(request);
        // Definitions of v1beta1 have it, and v1 accepts only the other value.
        if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            body["spec"]["preserveUnknownFields"] = false.into();
        }
        let body = with_metadata(body, "uid", &live.uid);
        let body = with_metadata(body, "resourceVersion", &live.resource_version);
        let adopted = Some(Adopted { spec: definition["spec"].clone(), narrowing });
        Ok(Decision::Apply { body, exists: true, fields, adopted })
    }

    fn definitions(&self) -> DefinitionReader<'_> {
        DefinitionReader { host: self.host, account: self.client }
    }

    /// The body of the request: the definition with the module that it belongs to.
    fn body(&self, request: &CrdRequest) -> Value {
        let mut body = request.definition.clone();
        body["metadata"]["labels"][MODULE_LABEL] = self.module.into();
        in_sync::set_digest(&mut body);
        body
    }

    async fn apply(&self, request: &CrdRequest, body: &Value) -> Result<(), Rejection> {
        refuse_webhook(request)?;
        tracing::info!(crd = %request.name, module = self.module, "definition installation started");
        if !request.dropped.is_empty() {
            tracing::warn!(
                crd = %request.name, module = self.module,
                "of the definition only name, descriptive labels and spec are installed, not {}",
                request.dropped.join(", ")
            );
        }
        let key = ObjectKey::new("", &request.name);
        match self.client.apply(&crd::kind(), &key, &Manager::Host, body, Force::Yes).await {
            Ok(_) => Ok(()),
            Err(error) => Err(refused(request, &error)),
        }
    }
}

/// The Module asked for the adoption of a definition, and does not any more.
fn withdrawn(request: &CrdRequest) -> Rejection {
    let message = format!(
        "the CustomResourceDefinition {} is not changed: the Module does not ask for it any more; set spec.crds to Adopt",
        request.name
    );
    Rejection::new("AdoptionWithdrawn", message, RetryPolicy::Later)
}

/// Whether the host installed it: ours are applied by the host's manager.
fn is_ours(live: &Object) -> bool {
    live.applied_by(&Manager::Host).is_some()
}

fn with_metadata(mut body: Value, name: &str, value: &str) -> Value {
    body["metadata"][name] = value.into();
    body
}

#[cfg(test)]
mod tests;
