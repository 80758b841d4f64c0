//! Requests about one Module.

use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::Module;
use innkeeper_modules::module::{self, APPROVE_ANNOTATION, REJECT_ANNOTATION};
use serde_json::{Value, json};

use super::digits::short;
use crate::push::POLL_PERIOD;

/// How long a command waits for the host to observe an annotation.
const OBSERVATION_TIME: Duration = Duration::from_secs(10);

/// Reads a Module.
///
/// # Errors
/// If it does not exist, or cannot be read.
pub(super) async fn get(client: &ApiClient, name: &str) -> anyhow::Result<Module> {
    let value: Value = match client.get_as(&module::kind(), &ObjectKey::new("", name)).await {
        Ok(value) => value,
        Err(ApiError::NotFound { .. }) => {
            bail!("Module {name} not found; run `innkeeper modules list` to see all Modules")
        }
        Err(error) => return Err(error.into()),
    };
    Module::from_value(&value).with_context(|| format!("cannot read Module {name}"))
}

/// Writes the user's approval and rejection, each empty for none. An empty text also replaces an
/// annotation that kubectl wrote.
///
/// # Errors
/// If the API server refuses the request.
pub(super) async fn decide(
    client: &ApiClient,
    name: &str,
    approve: &str,
    reject: &str,
) -> anyhow::Result<()> {
    let body = json!({
        "apiVersion": module::API_VERSION,
        "kind": module::KIND,
        "metadata": {
            "name": name,
            "annotations": {APPROVE_ANNOTATION: approve, REJECT_ANNOTATION: reject},
        },
    });
    client
        .apply(&module::kind(), &ObjectKey::new("", name), &Manager::Approval, &body, Force::Yes)
        .await?;
    Ok(())
}

/// Reads the Module again until the condition holds, for a bounded time. Returns the last Module,
/// also if the condition does not hold.
///
/// # Errors
/// As of [`get`].
pub(super) async fn until(
    client: &ApiClient,
    name: &str,
    condition: impl Fn(&Module) -> bool,
) -> anyhow::Result<Module> {
    let began = client.env().instant();
    loop {
        let module = get(client, name).await?;
        let is_late = client.env().instant().duration_since(began) > OBSERVATION_TIME;
        if is_late || condition(&module) {
            return Ok(module);
        }
        client.env().sleep(POLL_PERIOD).await;
    }
}

/// The digest by whose approval a component became active.
pub(super) fn used_approval(module: &Module) -> Option<&String> {
    module.status.as_ref()?.used_approval.as_ref()
}

/// Writes an approval that has taken effect before: the annotation has to change to count again,
/// and the host has to observe the change.
///
/// # Errors
/// If the host does not observe it, or the API server refuses a request.
pub(super) async fn renew_approval(
    client: &ApiClient,
    name: &str,
    digest: &str,
) -> anyhow::Result<()> {
    decide(client, name, "", "").await?;
    let is_used = |module: &Module| used_approval(module).is_some_and(|used| used == digest);
    let module = until(client, name, |module| !is_used(module)).await?;
    if is_used(&module) {
        bail!(
            "cannot approve {} again: the operator has not observed that its earlier approval is withdrawn; check that the operator runs, then run this command again",
            short(digest)
        );
    }
    decide(client, name, digest, "").await
}
