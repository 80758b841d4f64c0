//! Consent: a module acts as a ServiceAccount only as long as the account allows it.
//!
//! The account is asked before anything is done as it, and again whenever it changes. What serves
//! when consent is withdrawn stops at once: its sessions send nothing more, and its views are
//! closed. It serves again, without being loaded, when consent is back.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_cluster::{Account, ApiClient, Revocation};
use innkeeper_contract::{Condition, ConditionStatus};
use innkeeper_modules::consent::{NOT_ALLOWED, UNKNOWN};
use innkeeper_modules::machine::condition;
use innkeeper_modules::{Input, Rejection, RetryPolicy, Revision, module};

use super::Supervisor;
use crate::sources::{Consent, SupervisorEvent, input_of};

/// What modules may do as their accounts.
#[derive(Default)]
pub(super) struct Consents {
    /// What the sessions of each module and account hang on.
    revocations: BTreeMap<(String, String), Revocation>,
    /// Modules whose spec names an account that does not allow them, and why.
    refused: BTreeMap<String, String>,
    /// What would serve if its account allowed it, and why it does not.
    withheld: BTreeMap<String, (Arc<Revision>, Rejection)>,
}

impl Consents {
    /// A module is gone.
    pub(super) fn forget(&mut self, module: &str) {
        self.refused.remove(module);
        self.withheld.remove(module);
        self.revocations.retain(|(name, _), revocation| {
            if name == module {
                revocation.revoke();
            }
            name != module
        });
    }

    /// Nothing of a module is sent as an account any more.
    fn revoke(&mut self, module: &str, account: &str) {
        let key = (module.to_owned(), account.to_owned());
        if let Some(revocation) = self.revocations.remove(&key) {
            revocation.revoke();
        }
    }

    /// What a module serves is allowed.
    pub(super) fn grant(&mut self, module: &str) {
        self.withheld.remove(module);
    }

    /// Why the account that the spec of a module names does not allow it, if it does not.
    pub(super) fn refused(&self, module: &str) -> Option<&str> {
        self.refused.get(module).map(String::as_str)
    }

    /// Whether a module is kept from something: the reason of its conditions, and why.
    pub(super) fn missing(&self, module: &str) -> Option<(&str, &str)> {
        let withheld = self.withheld.get(module).map(|(_, why)| (&*why.reason, &*why.message));
        withheld.or_else(|| self.refused(module).map(|why| (NOT_ALLOWED, why)))
    }

    /// Puts what consent is missing into the conditions of a Module.
    pub(super) fn report(&self, module: &str, conditions: &mut Vec<Condition>) {
        let Some((reason, why)) = self.missing(module) else { return };
        let mut types = vec!["Authorized"];
        if self.withheld.contains_key(module) {
            types.extend([condition::SERVING_CONDITION, condition::READY_CONDITION]);
        }
        for type_ in types {
            conditions.retain(|one| one.type_ != type_);
            conditions.push(Condition {
                type_: type_.to_owned(),
                status: ConditionStatus::False,
                reason: reason.to_owned(),
                message: why.to_owned(),
            });
        }
        conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    }
}

impl Supervisor {
    /// Requests of a module as its ServiceAccount, as long as that allows it; as the host, where a
    /// Module of a folder names none.
    pub(super) fn client(&mut self, module: &str, account: Option<&str>) -> ApiClient {
        let Some(account) = account else { return self.shared.cluster.host().for_module() };
        let key = (module.to_owned(), account.to_owned());
        let revocation = self.consents.revocations.entry(key).or_default();
        self.shared.cluster.as_account_until(&Account::new(module::NAMESPACE, account), revocation)
    }

    /// Why a module may not act as an account now.
    ///
    /// # Errors
    /// If the account does not allow it, or cannot be read.
    pub(super) fn consent(&self, module: &str, account: Option<&str>) -> Result<(), Rejection> {
        rejection(account.map(|account| self.source.consent(module, account)))
    }

    /// A Module was seen: whether its account allows it, and the account of what serves. `None` if
    /// that is not known yet: the Module is seen again when it is.
    pub(super) fn ask_account(&mut self, name: &str, input: Input) -> Option<Input> {
        let Input::Module(module) = input else { return Some(input) };
        let serving = self.shared.module(name).map(|active| active.revision().clone());
        let withheld = self.consents.withheld.get(name).map(|(revision, _)| revision.clone());
        if let Some(revision) = withheld.or(serving) {
            let account = revision.settings.service_account.as_deref();
            let consent = account.map(|account| self.source.consent(name, account));
            // What is not known for a moment stops nothing that was allowed before.
            if consent != Some(Consent::Pending) {
                self.serve_if_allowed(&revision);
            }
        }
        let Some(account) = module.spec.service_account_name.clone() else {
            self.consents.refused.remove(name);
            return Some(Input::Module(module));
        };
        match self.source.consent(name, &account) {
            Consent::Pending => None,
            Consent::Given => {
                if self.consents.refused.remove(name).is_some() {
                    // What waited for it is tried at once, and soon again.
                    self.retries.remove(name);
                    let retry = Box::new(Input::Retry);
                    let module = name.to_owned();
                    let _ = self.outbox.send(SupervisorEvent::Input { module, input: retry });
                }
                Some(Input::Module(module))
            }
            Consent::Missing(why) => {
                self.consents.revoke(name, &account);
                let rejection = Rejection::new(NOT_ALLOWED, &why, RetryPolicy::Later);
                self.consents.refused.insert(name.to_owned(), why);
                self.end_preview(name, &rejection);
                // One that is being deleted leaves as soon as its account allows that.
                if module.metadata.deletion_timestamp.is_some() {
                    return Some(Input::Module(module));
                }
                Some(Input::NotAllowed { module, rejection })
            }
        }
    }

    /// From now on this serves, if its account allows it.
    pub(super) fn swap(&mut self, revision: &Arc<Revision>) {
        match self.consent(&revision.module, revision.settings.service_account.as_deref()) {
            Ok(()) => {
                self.consents.grant(&revision.module);
                self.serve(revision);
            }
            Err(_) => self.serve_if_allowed(revision),
        }
    }

    /// Serves what its account allows; stops what it does not.
    fn serve_if_allowed(&mut self, revision: &Arc<Revision>) {
        let name = &*revision.module;
        let account = revision.settings.service_account.as_deref();
        match self.consent(name, account) {
            Ok(()) => {
                let was_withheld = self.consents.withheld.remove(name).is_some();
                if was_withheld || self.shared.module(name).is_none() {
                    self.serve(revision);
                }
            }
            Err(rejection) => {
                if let Some(account) = account {
                    self.consents.revoke(name, account);
                }
                // What served before, and what may serve next, read as the account too.
                self.rollback_targets.remove(name);
                self.end_preview(name, &rejection);
                if self.shared.module(name).is_some() {
                    tracing::warn!(module = name, "module stopped: {}", rejection.message);
                    self.shared.stop(name);
                    self.count_serving();
                }
                self.consents.withheld.insert(name.to_owned(), (revision.clone(), rejection));
            }
        }
    }

    /// Ends the preview of a module's candidate, if one is under way.
    fn end_preview(&mut self, name: &str, rejection: &Rejection) {
        if let Some((digest, _)) = self.previews.remove(name) {
            let input = Box::new(Input::Previewed { digest, result: Err(rejection.clone()) });
            let _ = self.outbox.send(SupervisorEvent::Input { module: name.to_owned(), input });
        }
    }

    /// A ServiceAccount came, changed or went: the consent of the modules that name it, or act as
    /// it, is checked again.
    pub(super) async fn account_changed(&mut self, account: &str) {
        for object in self.source.module_objects() {
            let SupervisorEvent::Input { module, input } = input_of(&object) else { continue };
            let named = match &*input {
                Input::Module(module) => module.spec.service_account_name.as_deref(),
                _ => None,
            };
            let withheld =
                self.consents.withheld.get(&module).map(|(revision, _)| revision.clone());
            let active = self.shared.module(&module).map(|active| active.revision().clone());
            let revision = withheld.or(active);
            let acts_as = revision.as_ref().and_then(|one| one.settings.service_account.as_deref());
            if named == Some(account) || acts_as == Some(account) {
                self.handle(&module, *input).await;
            }
        }
    }
}

/// Why what an account says keeps a module from acting as it.
fn rejection(consent: Option<Consent>) -> Result<(), Rejection> {
    let (reason, why) = match consent {
        None | Some(Consent::Given) => return Ok(()),
        Some(Consent::Missing(why)) => (NOT_ALLOWED, why),
        Some(Consent::Pending) => {
            (UNKNOWN, "its ServiceAccount has not been read yet; it is asked again".to_owned())
        }
    };
    Err(Rejection::new(reason, why, RetryPolicy::Later))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_that_has_not_been_read_is_unknown_and_does_not_refuse() {
        let reason =
            |consent| rejection(Some(consent)).map_err(|rejection| rejection.reason.clone());
        assert_eq!(reason(Consent::Pending), Err("AccountUnknown".into()));
        assert_eq!(reason(Consent::Missing("no".to_owned())), Err("AccountNotAllowed".into()));
        assert_eq!(reason(Consent::Given), Ok(()));
    }
}
