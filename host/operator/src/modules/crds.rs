//! CustomResourceDefinitions that a guest describes: installed as the module's ServiceAccount,
//! within the groups that its Module grants, before the revision is active.
//!
//! The label [`MODULE_LABEL`] names the module that installed a definition: only that module
//! changes it.

mod adoption;
mod compatibility;
mod decision;
mod live_definition;
mod loss;
mod status_schema;
mod stored_objects;

use std::collections::BTreeSet;

use innkeeper_cluster::client::Force;
use innkeeper_cluster::{ApiClient, crd};
use innkeeper_core::{Manager, Object, ObjectKey, crd_compat, foreign, in_sync};
use innkeeper_modules::definitions::MODULE_LABEL;
use innkeeper_modules::machine::reason::{CRD_NOT_ADDITIVE, WOULD_LOSE_DATA};
use innkeeper_modules::{
    AdoptedCrd, CrdGrant, CrdRefusal, CrdRequest, Example, HeldCrds, InstalledCrds, PlannedChange,
    Rejection, RetryPolicy,
};
use serde_json::Value;
use tokio::sync::{Mutex, watch};

use self::adoption::Narrowing;
pub(super) use self::compatibility::definition_of;
use self::compatibility::{
    changes_additively, check_foreign, check_shared, not_granted, refuse_webhook, refused,
};
use self::decision::{Decision, ForeignDefinition, Write};
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
    /// Whether foreign definitions become the module's.
    pub adopts: bool,
    /// What the present spec and approval allow; it may change meanwhile.
    pub grant: &'a watch::Receiver<CrdGrant>,
    /// Held while stored objects are checked, over all modules.
    pub object_checks: &'a Mutex<()>,
}

impl Installer<'_> {
    /// Installs what is granted and checks what is not; waits until all are served. Adds each
    /// definition that it wrote to `written`, also if it fails then.
    ///
    /// # Errors
    /// The first definition that cannot be installed or used, or those that require an approval.
    pub async fn install(
        &self,
        requests: &[CrdRequest],
        written: &mut InstalledCrds,
    ) -> Result<(), CrdRefusal> {
        // All are decided before one is written: a candidate that is held changes nothing.
        let mut decisions = Vec::new();
        for request in requests {
            decisions.push((request, self.decide(request).await?));
        }
        let held = held(&decisions);
        if let Some(held) = held.clone().filter(|held| !self.is_approved(held)) {
            return Err(CrdRefusal::Held(Box::new(held)));
        }
        let mut awaited = Vec::new();
        for (request, decision) in decisions {
            if !matches!(decision, Decision::KeepUnreadable) {
                awaited.push(request);
            }
            if let Decision::Write(write) = decision {
                self.write(request, *write, held.as_ref(), written).await?;
            }
        }
        for request in awaited {
            self.definitions().established(request).await?;
        }
        Ok(())
    }

    /// Writes one definition, if the spec still allows it; one that takes something away, if `held`
    /// is still approved.
    async fn write(
        &self,
        request: &CrdRequest,
        write: Write,
        held: Option<&HeldCrds>,
        written: &mut InstalledCrds,
    ) -> Result<(), Rejection> {
        let Write { body, exists, fields, foreign } = write;
        let held = held.filter(|_| foreign.as_ref().is_some_and(ForeignDefinition::is_narrowed));
        self.check_grant(request, foreign.is_some(), held)?;
        match self.apply(request, &body).await {
            // Only labels or descriptions would change: the account needs no right for that.
            Err(rejection)
                if exists
                    && foreign.is_none()
                    && fields.is_empty()
                    && rejection.reason == "CRDForbidden" =>
            {
                tracing::warn!(crd = %request.name, module = self.module, "{}", rejection.message);
            }
            result => result?,
        }
        let name = request.name.clone();
        if let Some(ForeignDefinition { display_losses, .. }) = foreign {
            written.adopted.push(AdoptedCrd { name, display_losses });
        } else if !exists {
            written.created.push(name);
        }
        Ok(())
    }

    /// Checks that spec and approval still allow what they allowed when the installation began.
    fn check_grant(
        &self,
        request: &CrdRequest,
        is_adoption: bool,
        held: Option<&HeldCrds>,
    ) -> Result<(), Rejection> {
        let grant = self.grant.borrow();
        if !grant.groups.contains(&request.group) {
            return Err(withdrawn(
                request,
                &format!("add {} to spec.allowedCRDGroups", request.group),
            ));
        }
        if is_adoption && !grant.adopts {
            return Err(withdrawn(request, "set spec.crds to Adopt, and spec.paused to false"));
        }
        if held.is_some_and(|held| grant.approved != Some(held.approval)) {
            return Err(withdrawn(request, "approve the change again"));
        }
        Ok(())
    }

    fn is_approved(&self, held: &HeldCrds) -> bool {
        self.grant.borrow().approved == Some(held.approval)
    }

    /// The changes and refusals of an installation. Nothing is written.
    pub async fn preview(&self, requests: &[CrdRequest]) -> Vec<Example> {
        let mut changes = Vec::new();
        for request in requests {
            let (change, fields) = match self.decide(request).await {
                Ok(Decision::Write(write)) if !write.exists => (PlannedChange::Create, Vec::new()),
                Ok(Decision::Write(write)) => {
                    let Write { fields, foreign, .. } = *write;
                    let narrowing = foreign.map(|foreign| foreign.narrowing).unwrap_or_default();
                    match (narrowing.is_empty(), fields.is_empty()) {
                        (true, true) => continue,
                        (true, false) => (PlannedChange::Change, fields),
                        (false, _) => {
                            let narrowing = narrowing.into_iter().take(FIELDS_MAX);
                            (PlannedChange::Change, narrowing.collect())
                        }
                    }
                }
                Err(refused) if [CRD_NOT_ADDITIVE, WOULD_LOSE_DATA].contains(&&*refused.reason) => {
                    (
                        PlannedChange::Change,
                        vec![foreign::one_line(&refused.message, REFUSAL_BYTES_MAX)],
                    )
                }
                // Installing reports the other errors.
                Ok(Decision::Keep | Decision::KeepUnreadable) | Err(_) => continue,
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
            LiveDefinition::ServedOnly => return Ok(Decision::KeepUnreadable),
            LiveDefinition::Absent if !request.granted => return Err(not_granted(request)),
            LiveDefinition::Absent => return Ok(Decision::Write(Write::new(self.body(request)))),
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
            self.object_check(false, LossCheck::First).run(request, &definition).await?;
        }
        Ok(Decision::Write(Write::over(&live, body, fields, None)))
    }

    /// Whether a foreign definition is to become the module's.
    fn adopts(&self, request: &CrdRequest, live: &Object) -> bool {
        let owner = live.labels.get(MODULE_LABEL);
        request.granted
            && self.adopts
            && self.grant.borrow().adopts
            && !is_ours(live)
            && owner.is_none_or(|owner| owner == self.module)
    }

    async fn adopt(&self, request: &CrdRequest, live: &Object) -> Result<Decision, Rejection> {
        refuse_webhook(request)?;
        let request = &adoption::without_unknown_fields(request);
        let definition = definition_of(live);
        adoption::check(request, live, &definition)?;
        let foreign = ForeignDefinition::new(&definition, request);
        let fields = crd_compat::changed_fields(&definition, &request.definition, FIELDS_MAX);
        let is_narrowed = foreign.is_narrowed();
        if !fields.is_empty() || is_narrowed {
            // An approval covers all objects, so all are checked.
            self.object_check(is_narrowed, LossCheck::All).run(request, &definition).await?;
        }
        let mut body = self.body(request);
        // Definitions of v1beta1 have it, and v1 accepts only the other value.
        if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            body["spec"]["preserveUnknownFields"] = false.into();
        }
        Ok(Decision::Write(Write::over(live, body, fields, Some(foreign))))
    }

    /// A check of the objects that the module's account may list; `is_whole` if it must list all.
    fn object_check(&self, is_whole: bool, loss: LossCheck) -> StoredObjectCheck<'_> {
        StoredObjectCheck {
            client: self.client,
            namespaces: self.namespaces,
            is_whole,
            loss,
            lock: self.object_checks,
        }
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

/// What takes something away from foreign definitions, and needs an approval; `None` if nothing
/// does.
fn held(decisions: &[(&CrdRequest, Decision)]) -> Option<HeldCrds> {
    let narrowings = decisions.iter().filter_map(|(request, decision)| match decision {
        Decision::Write(write) => {
            let foreign = write.foreign.as_ref().filter(|foreign| foreign.is_narrowed())?;
            Some(Narrowing { request, foreign })
        }
        _ => None,
    });
    let narrowings: Vec<Narrowing<'_>> = narrowings.collect();
    (!narrowings.is_empty()).then(|| adoption::held(&narrowings))
}

/// The Module allowed to write a definition, and does not any more.
fn withdrawn(request: &CrdRequest, next: &str) -> Rejection {
    let message = format!(
        "the CustomResourceDefinition {} is not changed: the Module does not allow it any more; {next}",
        request.name
    );
    Rejection::new("CRDGrantWithdrawn", message, RetryPolicy::Later)
}

/// Whether the host installed it: ours are applied by the host's manager.
fn is_ours(live: &Object) -> bool {
    live.is_applied_by(&Manager::Host)
}

#[cfg(test)]
mod tests;
