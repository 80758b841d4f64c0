//! CustomResourceDefinitions of active revisions that somebody deletes: the host notices, waits,
//! and installs them again.

use std::time::Duration;

use innkeeper_cluster::{ApiClient, ApiError, Backoff, CacheLookup, crd};
use innkeeper_core::ObjectKey;
use innkeeper_modules::Event;

use super::event::SupervisorEvent;
use super::retry_wait::RetryWait;
use super::supervisor::Supervisor;

/// The wait before the first installation.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The longest wait: how often a controller that keeps deleting a definition sees it again.
const WAIT_MAX: Duration = Duration::from_mins(5);

impl Supervisor {
    /// Tells the modules that describe a definition that it was created, changed or deleted; as of
    /// [`Supervisor::crd_changed`].
    pub(super) async fn tell_modules_of_definition(
        &mut self,
        name: &str,
        owner: Option<&str>,
        spec_changed: bool,
    ) {
        let modules = self.modules_describing(name);
        // The module that had installed it installs it again, if it may; the others use it then.
        let owner = owner.filter(|owner| modules.iter().any(|module| module == owner));
        let owner = owner.filter(|owner| self.driver.reinstalls_crd(owner, name));
        for module in modules {
            if spec_changed {
                self.handle(&module, Event::CrdChanged).await;
            }
            match self.crd(name) {
                Some(CacheLookup::Found(_)) if self.driver.is_crd_missing(&module) => {
                    self.handle(&module, Event::CrdFound(name.to_owned())).await;
                }
                Some(CacheLookup::Absent) if owner.is_none_or(|owner| owner == module) => {
                    self.confirm_deleted(&module, vec![name.to_owned()]);
                }
                _ => {}
            }
        }
    }

    /// The modules whose active revision describes a definition.
    fn modules_describing(&self, name: &str) -> Vec<String> {
        let describes = |module: &&str| {
            let described = self.driver.described_crds(module);
            described.iter().any(|crd| crd == name)
        };
        self.driver.names().filter(describes).map(Into::into).collect()
    }

    /// The Module changed. If it does not allow any more to install what is missing, the other
    /// modules that need it do.
    pub(super) fn hand_over_missing_crds(&mut self, module: &str) {
        if !self.driver.is_crd_missing(module) {
            return;
        }
        for crd in self.driver.described_crds(module).to_vec() {
            if self.driver.reinstalls_crd(module, &crd)
                || !matches!(self.crd(&crd), Some(CacheLookup::Absent))
            {
                continue;
            }
            for other in self.modules_describing(&crd) {
                if other != module && !self.driver.is_crd_missing(&other) {
                    self.confirm_deleted(&other, vec![crd.clone()]);
                }
            }
        }
    }

    /// Checks whether the definitions of a module's active revision exist.
    pub(super) fn check_crds(&mut self, module: &str) {
        let mut names = self.driver.described_crds(module).to_vec();
        names.retain(|name| matches!(self.crd(name), Some(CacheLookup::Absent)));
        if !names.is_empty() {
            self.confirm_deleted(module, names);
        }
    }

    /// A definition as the host's cache has it; `None` if there is no cache.
    fn crd(&self, name: &str) -> Option<CacheLookup> {
        let view = self.definitions.as_ref()?;
        Some(view.snapshot().get(&crd::kind(), &ObjectKey::new("", name)))
    }

    /// Asks the API server: the cache may not have seen yet that the host has just created it.
    fn confirm_deleted(&mut self, module: &str, names: Vec<String>) {
        let (client, outbox) = (self.cluster.host(), self.outbox.clone());
        let module = module.to_owned();
        self.spawn("confirm deletion", async move {
            let mut deleted = Vec::new();
            for name in names {
                if is_deleted(&client, &name).await {
                    deleted.push(name);
                }
            }
            if !deleted.is_empty() {
                let _ = outbox.send(SupervisorEvent::input(module, Event::CrdsDeleted(deleted)));
            }
        });
    }

    /// Hands in [`Event::ReinstallCrds`] after a wait that doubles from deletion to deletion.
    pub(super) fn reinstall_later(&mut self, name: &str) {
        let before = self.reinstalls.remove(name);
        let (outbox, module) = (self.outbox.clone(), name.to_owned());
        let wait = RetryWait::begin(&self.shared.env, (WAIT_MIN, WAIT_MAX), before, move || {
            let _ = outbox.send(SupervisorEvent::input(module, Event::ReinstallCrds));
        });
        self.reinstalls.insert(name.to_owned(), wait);
    }
}

/// Whether a definition does not exist. Waits until the API server answers.
async fn is_deleted(client: &ApiClient, name: &str) -> bool {
    let key = ObjectKey::new("", name);
    let mut backoff = Backoff::new(client.env(), WAIT_MIN, WAIT_MAX);
    loop {
        match client.get(&crd::kind(), &key).await {
            Ok(_) | Err(ApiError::Forbidden { .. }) => return false,
            Err(ApiError::NotFound { .. }) => return true,
            Err(error) => {
                tracing::info!(crd = name, "whether it was deleted cannot be read: {error}");
                client.env().sleep(backoff.advance()).await;
            }
        }
    }
}
