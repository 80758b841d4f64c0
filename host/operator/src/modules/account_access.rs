//! Whether modules may act as the ServiceAccounts that they name, as the host last learned it.

use std::collections::BTreeMap;

use innkeeper_cluster::cache::CacheReadError;
use innkeeper_cluster::{CacheLookup, Revocation, View};
use innkeeper_core::ObjectKey;
use innkeeper_modules::account_annotation::{
    self, ALLOWED_MODULES_ANNOTATION, NOT_ALLOWED, UNKNOWN,
};
use innkeeper_modules::module::NAMESPACE;
use innkeeper_modules::{Rejection, RetryPolicy};

use super::event::SERVICE_ACCOUNT;

/// Whether a ServiceAccount allows a module to act as it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountAccess {
    /// The account allows it.
    Allowed,
    /// The accounts have not been read yet.
    Unknown,
    /// The account does not allow it, or cannot be read: why, and what to do.
    Denied(String),
}

impl AccountAccess {
    /// Whether an account allows a module to act as it. `accounts` has the metadata of the
    /// ServiceAccounts in the namespace of the modules.
    pub fn of(accounts: &View, module: &str, account: &str) -> Self {
        match accounts.snapshot().get(&SERVICE_ACCOUNT, &ObjectKey::new(NAMESPACE, account)) {
            CacheLookup::Found(object) => {
                let annotation = object.annotation(ALLOWED_MODULES_ANNOTATION);
                let annotation = annotation.as_deref();
                if account_annotation::allows(annotation, module) {
                    Self::Allowed
                } else {
                    Self::Denied(account_annotation::not_allowed(account, annotation, module))
                }
            }
            CacheLookup::Absent => Self::Denied(account_annotation::no_account(account, module)),
            CacheLookup::Unknown | CacheLookup::Unreadable(CacheReadError::NotSynced(_)) => {
                Self::Unknown
            }
            CacheLookup::Unreadable(why) => Self::Denied(format!(
                "whether ServiceAccount {NAMESPACE}/{account} allows module {module} to act as it cannot be read: {why}; give the host the rights of deploy/base/roles.yaml"
            )),
        }
    }

    /// Turns everything but [`Self::Allowed`] into the reason not to act as the account.
    ///
    /// # Errors
    /// If the account does not allow it, or has not been read yet.
    pub fn into_result(self) -> Result<(), Rejection> {
        let (reason, why) = match self {
            Self::Allowed => return Ok(()),
            Self::Denied(why) => (NOT_ALLOWED, why),
            Self::Unknown => {
                (UNKNOWN, "its ServiceAccount has not been read yet; it is asked again".to_owned())
            }
        };
        Err(Rejection::new(reason, why, RetryPolicy::Later))
    }
}

/// Why a module may not act as its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Denial<'a> {
    /// The reason of the conditions.
    pub(super) reason: &'a str,
    /// The message of the conditions.
    pub(super) message: &'a str,
    /// The active revision is stopped for it.
    pub(super) is_stopped: bool,
}

/// The accounts of all modules: what acts as them, and what may not.
#[derive(Default)]
pub(super) struct AccountStates {
    /// One for each module and account: revoking it stops all requests of the module's clients.
    pub(super) revocations: BTreeMap<(String, String), Revocation>,
    /// Modules whose spec names an account that does not allow them, and why.
    pub(super) denied: BTreeMap<String, String>,
    /// Modules whose active revision is stopped until its account allows it again, and why.
    pub(super) stopped: BTreeMap<String, Rejection>,
}

impl AccountStates {
    /// Forgets a module that was deleted; none of its requests is sent any more.
    pub(super) fn forget(&mut self, module: &str) {
        self.denied.remove(module);
        self.stopped.remove(module);
        self.revocations.retain(|(name, _), revocation| {
            if name == module {
                revocation.revoke();
            }
            name != module
        });
    }

    /// Stops all requests of a module as an account.
    pub(super) fn revoke(&mut self, module: &str, account: &str) {
        let key = (module.to_owned(), account.to_owned());
        if let Some(revocation) = self.revocations.remove(&key) {
            revocation.revoke();
        }
    }

    /// Why the account that the spec of a module names does not allow it, if it does not.
    pub(super) fn denied(&self, module: &str) -> Option<&str> {
        self.denied.get(module).map(String::as_str)
    }

    /// Why a module may not act as its account, if it may not.
    pub(super) fn denial(&self, module: &str) -> Option<Denial<'_>> {
        if let Some(rejection) = self.stopped.get(module) {
            let (reason, message) = (&*rejection.reason, &*rejection.message);
            return Some(Denial { reason, message, is_stopped: true });
        }
        let message = self.denied(module)?;
        Some(Denial { reason: NOT_ALLOWED, message, is_stopped: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_that_has_not_been_read_is_unknown_and_does_not_refuse() {
        let reason = |access: AccountAccess| access.into_result().map_err(|error| error.reason);
        assert_eq!(reason(AccountAccess::Unknown), Err("AccountUnknown".into()));
        assert_eq!(reason(AccountAccess::Denied("no".to_owned())), Err("AccountNotAllowed".into()));
        assert_eq!(reason(AccountAccess::Allowed), Ok(()));
    }
}
