//! Writes the webhook configurations of the policies of a lab's Modules.
//!
//! The Modules of a lab are those of a folder: the operator reviews with their policies itself, and
//! has neither records of them nor Module objects, by which the leader of a cluster's host writes
//! configurations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_admission::PolicyWebhooks;
use innkeeper_admission::webhook_configuration::failure::Coverage;
use innkeeper_admission::webhook_configuration::{
    ClientConfig, ModeOverride, configuration, effective_failure_policy,
};
use innkeeper_cluster::{Env, KindState, Task};
use innkeeper_operator::ReplicaPolicies;
use innkeeper_operator::policies::{ActivePolicy, Entry};
use serde_json::Value;
use tokio::sync::watch;

use crate::api::{Api, ApiFailure};
use crate::policy_requests::URL;

/// The group and version of Modules.
const MODULE_API_VERSION: &str = "innkeeper.dev/v1alpha1";

/// How long it waits before it tries again, or looks whether a policy can read what it declares.
const RETRY: Duration = Duration::from_secs(1);

/// What is written for each module: the id of the policy, or why its configuration is not written.
type Progress = BTreeMap<Arc<str>, Result<String, String>>;

/// Writes the webhook configurations of the active policies, and deletes those of the others.
pub(crate) struct WebhookKeeper {
    policies: ReplicaPolicies,
    progress: watch::Receiver<Progress>,
    stop: watch::Sender<bool>,
    task: Task<()>,
}

impl WebhookKeeper {
    /// Begins to write configurations to a cluster whose host runs in this namespace.
    pub(crate) fn start(
        env: &Env,
        api: Api,
        policies: &ReplicaPolicies,
        host_namespace: &str,
    ) -> Self {
        let (sender, progress) = watch::channel(Progress::new());
        let (stop, stopped) = watch::channel(false);
        let writer = Writer {
            env: env.clone(),
            api,
            policies: policies.clone(),
            host_namespace: host_namespace.to_owned(),
            written: BTreeMap::new(),
            progress: sender,
        };
        let task = env.spawn("write webhook configurations", writer.write_all(stopped));
        Self { policies: policies.clone(), progress, stop, task }
    }

    /// Whether the API server sends requests to this policy.
    pub(crate) fn reaches(&self, module: &str) -> bool {
        let id = self.policies.active().ids().remove(module);
        id.is_some()
            && self.progress.borrow().get(module).and_then(|one| one.as_ref().ok()) == id.as_ref()
    }

    /// Whether the API server sends requests to all active policies.
    pub(crate) fn reaches_all(&self) -> bool {
        self.policies.active().ids().keys().all(|module| self.reaches(module))
    }

    /// Why a configuration is not written, if one is not.
    pub(crate) fn problem(&self) -> Option<String> {
        problem(&self.progress.borrow())
    }

    /// Deletes the configurations, so that no request waits for a host that has ended.
    pub(crate) async fn end(self) {
        let _ = self.stop.send(true);
        self.task.await;
    }
}

fn problem(progress: &Progress) -> Option<String> {
    let mut problems = progress.iter().filter_map(|(module, result)| {
        let why = result.as_ref().err()?;
        Some(format!("the webhook configuration of module {module} is not written: {why}"))
    });
    problems.next()
}

/// Works for a [`WebhookKeeper`].
struct Writer {
    env: Env,
    api: Api,
    policies: ReplicaPolicies,
    host_namespace: String,
    /// The path of the configuration of each module, and the id of its policy.
    written: BTreeMap<Arc<str>, (String, String)>,
    progress: watch::Sender<Progress>,
}

impl Writer {
    async fn write_all(mut self, mut stop: watch::Receiver<bool>) {
        let mut changes = self.policies.active().changes();
        loop {
            changes.mark_unchanged();
            let is_done = self.round().await;
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                Ok(()) = changes.changed() => {}
                () = self.env.sleep(RETRY), if !is_done => {}
            }
        }
        for (path, _) in std::mem::take(&mut self.written).into_values() {
            let _ = self.api.delete(&path).await;
        }
    }

    /// Makes the configurations those of the active policies. Returns whether they are.
    async fn round(&mut self) -> bool {
        let ids = self.policies.active().ids();
        let mut progress = Progress::new();
        let is_inactive = |module: &&Arc<str>| !ids.contains_key(*module);
        let inactive: Vec<Arc<str>> = self.written.keys().filter(is_inactive).cloned().collect();
        for module in inactive {
            if let Err(error) = self.delete(&module).await {
                progress.insert(module, Err(error.to_string()));
            }
        }
        for (module, id) in ids {
            match self.write(&module, &id).await {
                Ok(true) => drop(progress.insert(module, Ok(id))),
                Ok(false) => {
                    let why = "its policy does not know yet what it may read".to_owned();
                    progress.insert(module, Err(why));
                }
                Err(error) => drop(progress.insert(module, Err(error.to_string()))),
            }
        }
        let is_done = progress.values().all(Result::is_ok);
        if *self.progress.borrow() != progress {
            if let Some(problem) = problem(&progress) {
                tracing::warn!("{problem}");
            }
            self.progress.send_replace(progress);
        }
        is_done
    }

    async fn delete(&mut self, module: &str) -> Result<(), ApiFailure> {
        if let Some((path, _)) = self.written.get(module) {
            self.api.delete(path).await?;
            self.written.remove(module);
        }
        Ok(())
    }

    /// Writes the configuration of an active policy. Returns false if the policy could not review
    /// yet.
    async fn write(&mut self, module: &Arc<str>, id: &str) -> Result<bool, ApiFailure> {
        if self.written.get(module).is_some_and(|(_, written)| written == id) {
            return Ok(true);
        }
        let now = self.env.instant();
        let Some(Entry::Active(policy)) = self.policies.active().get(module, now) else {
            return Ok(false);
        };
        let states = policy.view.as_ref().map(|view| view.states()).unwrap_or_default();
        if states.values().any(|state| *state == KindState::Syncing) {
            return Ok(false);
        }
        let Some(document) = wanted(&policy, &self.host_namespace) else { return Ok(false) };
        let path = self.api.path_of(&document, "").await?;
        self.api.apply(&document, "").await?;
        // One of the other kind, if the policy of the module has changed its kind.
        if let Some((before, _)) =
            self.written.insert(module.clone(), (path.clone(), id.to_owned()))
            && before != path
        {
            self.api.delete(&before).await?;
        }
        Ok(true)
    }
}

/// The configuration of a policy. A request that fails is treated as in a cluster where every
/// replica reviews.
fn wanted(policy: &ActivePolicy, host_namespace: &str) -> Option<Value> {
    let of_guest = policy.guest.manifest().policy.as_ref()?;
    let settings = &policy.settings.policy;
    let overrides = settings.overrides.iter().enumerate().filter_map(|(index, one)| {
        Some(ModeOverride { namespaces: &one.namespaces, mode: policy.mode(index + 1)? })
    });
    let coverage = Coverage { is_everywhere: true, was_everywhere: true };
    let mut document = configuration(&PolicyWebhooks {
        module: &policy.module,
        module_api_version: MODULE_API_VERSION,
        module_uid: "",
        kind: policy.kind,
        rules: settings.rules_of(of_guest),
        match_conditions: of_guest
            .match_conditions
            .iter()
            .chain(&settings.match_conditions)
            .collect(),
        namespace_selector: settings.namespace_selector.requirements(),
        object_selector: settings.object_selector.requirements(),
        namespaces: &policy.settings.namespaces,
        mode: policy.default_mode(),
        overrides: overrides.collect(),
        failure_policy: effective_failure_policy(policy.failure_policy(), policy.kind, coverage),
        timeout: policy.guest.limits().time,
        reinvocation: of_guest.reinvocation,
        client: ClientConfig::Url(URL),
        ca_bundle: "",
        host_namespace,
    });
    // A Module of a folder is no object that could own it.
    document["metadata"].as_object_mut()?.remove("ownerReferences");
    Some(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_that_is_not_written_is_named_with_the_reason() {
        let written = (Arc::from("a"), Ok("id".to_owned()));
        assert_eq!(problem(&Progress::from([written.clone()])), None);
        let refused = (Arc::from("b"), Err("the API server refused the request".to_owned()));
        assert_eq!(
            problem(&Progress::from([written, refused])).unwrap(),
            "the webhook configuration of module b is not written: the API server refused the request"
        );
    }
}
