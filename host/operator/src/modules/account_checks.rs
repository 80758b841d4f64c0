//! A module acts as a ServiceAccount only as long as the account allows it.
//!
//! The host checks the account before it sends anything as it, and again whenever the account
//! changes. A withdrawn permission stops the active revision at once: its clients send nothing
//! more, and its views are closed. When the permission is back, the revision becomes active again
//! without being loaded.

use std::sync::Arc;

use innkeeper_cluster::{Account, ApiClient};
use innkeeper_modules::account_annotation::NOT_ALLOWED;
use innkeeper_modules::{Event, Input, Rejection, RetryPolicy, Revision};

use super::account_access::AccountAccess;
use super::event::{SupervisorEvent, input_of};
use super::module_client;
use super::supervisor::Supervisor;

impl Supervisor {
    /// A client that sends as a module's ServiceAccount, as long as the account allows it; as the
    /// host, where a Module of a folder names none.
    pub(super) fn client(&mut self, module: &str, account: Option<&str>) -> ApiClient {
        let Some(account) = account else { return self.cache_reader(None) };
        let key = (module.to_owned(), account.to_owned());
        let revocation = self.accounts.revocations.entry(key).or_default();
        let account = Account::new(self.host.account_namespace(), account);
        module_client::client(&self.cluster, Some(&account), revocation)
    }

    /// The client that fills the caches of the modules of a ServiceAccount: see
    /// [`module_client::cache_reader`].
    pub(super) fn cache_reader(&self, account: Option<&str>) -> ApiClient {
        let namespace = self.host.account_namespace();
        let account = account.map(|name| Account::new(namespace, name));
        module_client::cache_reader(&self.cluster, account.as_ref())
    }

    /// Checks that a module may act as an account now.
    ///
    /// # Errors
    /// If the account does not allow it, or cannot be read.
    pub(super) fn account_result(
        &self,
        module: &str,
        account: Option<&str>,
    ) -> Result<(), Rejection> {
        match account {
            Some(account) => self.source.account_access(module, account).into_result(),
            None => Ok(()),
        }
    }

    /// Checks the account that a Module names, and that of its active revision. `None` if that is
    /// not known yet: the Module is listed again when it is.
    pub(super) fn check_account(&mut self, name: &str, input: Input) -> Option<Input> {
        let Input::Module(module) = input else { return Some(input) };
        if let Some(revision) = self.driver.active_revision(name).cloned() {
            let account = revision.spec.service_account.as_deref();
            let access = account.map(|account| self.source.account_access(name, account));
            // An account that is unknown for a moment stops no active revision.
            if access != Some(AccountAccess::Unknown) {
                self.activate_or_stop(&revision);
            }
        }
        let Some(account) = module.spec.service_account_name.clone() else {
            self.accounts.denied.remove(name);
            return Some(Input::Module(module));
        };
        match self.source.account_access(name, &account) {
            AccountAccess::Unknown => None,
            AccountAccess::Allowed => {
                if self.accounts.denied.remove(name).is_some() {
                    // What the account delayed is tried at once, and soon again.
                    self.retries.remove(name);
                    self.send(name, Event::Retry);
                    self.send(name, Event::ReinstallCrds);
                }
                Some(Input::Module(module))
            }
            AccountAccess::Denied(why) => {
                self.accounts.revoke(name, &account);
                let rejection = Rejection::new(NOT_ALLOWED, &why, RetryPolicy::Later);
                self.accounts.denied.insert(name.to_owned(), why);
                self.end_preview(name, &rejection);
                // The teardown of a deleted Module starts as soon as its account allows it.
                if module.metadata.deletion_timestamp.is_some() {
                    return Some(Input::Module(module));
                }
                Some(Input::NotAllowed { module, rejection })
            }
        }
    }

    /// Makes a revision active, if its account allows it.
    pub(super) fn activate_if_allowed(&mut self, revision: &Arc<Revision>) {
        let account = revision.spec.service_account.as_deref();
        if self.account_result(&revision.module, account).is_ok() {
            self.accounts.stopped.remove(&*revision.module);
            self.activate(revision);
        } else {
            self.activate_or_stop(revision);
        }
    }

    /// Activates a stopped revision that its account allows again; stops one that it does not
    /// allow.
    fn activate_or_stop(&mut self, revision: &Arc<Revision>) {
        let name = &*revision.module;
        let account = revision.spec.service_account.as_deref();
        match self.account_result(name, account) {
            Ok(()) => {
                let was_stopped = self.accounts.stopped.remove(name).is_some();
                // A revision that only reviews requests is never open.
                let is_closed =
                    revision.guest.has_reconciler() && self.shared.module(name).is_none();
                if was_stopped || is_closed {
                    self.activate(revision);
                }
            }
            Err(rejection) => {
                if let Some(account) = account {
                    self.accounts.revoke(name, account);
                }
                // The previous revision, the candidate and settings that wait read as it too.
                self.rollback.previous.remove(name);
                self.latest.rollback_checks.remove(name);
                self.latest.policy_windows.remove(name);
                self.policies.settings.forget(name);
                self.end_preview(name, &rejection);
                if self.shared.module(name).is_some() {
                    tracing::warn!(module = name, "module stopped: {}", rejection.message);
                    self.shared.deactivate(name);
                    self.count_active();
                }
                self.accounts.stopped.insert(name.to_owned(), rejection);
            }
        }
    }

    /// Ends the preview of a module's candidate, if one is under way.
    fn end_preview(&mut self, name: &str, rejection: &Rejection) {
        if let Some((digest, _)) = self.latest.previews.remove(name) {
            self.send(name, Input::Previewed { digest, result: Err(rejection.clone()) });
        }
    }

    /// Checks the modules that name a ServiceAccount, or act as it, after it was created, changed
    /// or deleted.
    pub(super) async fn account_changed(&mut self, account: &str) {
        for object in self.source.module_objects() {
            let SupervisorEvent::Input { module, input } = input_of(&object) else { continue };
            let named = match &*input {
                Input::Module(module) => module.spec.service_account_name.as_deref(),
                _ => None,
            };
            let revision = self.driver.active_revision(&module);
            let acts_as = revision.and_then(|one| one.spec.service_account.as_deref());
            if named == Some(account) || acts_as == Some(account) {
                self.handle(&module, *input).await;
            }
        }
    }
}
