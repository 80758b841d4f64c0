//! Requests about one Module.

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::Module;
use innkeeper_modules::module::{self, APPROVE_ANNOTATION, REJECT_ANNOTATION};
use serde_json::{Value, json};

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
