//! `innkeeper uninstall`: deletes all Modules, so that no object has a finalizer of the host.
//!
//! The objects of the modules stay, and so do the CustomResourceDefinitions: they belong to users.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use innkeeper_cluster::{ApiClient, ApiError, Env, Propagation};
use innkeeper_core::{ObjectKey, counted_len};
use innkeeper_modules::module::{self, FINALIZER};
use serde_json::Value;

use crate::kube::KubeArguments;
use crate::out;

/// How often the command lists the Modules.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// Arguments of `innkeeper uninstall`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Delete the Modules. Without this flag the command only prints what it would delete.
    #[arg(long)]
    yes: bool,
    /// Maximum time to wait until all Modules are gone.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    kube: KubeArguments,
}

/// Runs the command.
///
/// # Errors
/// If the API server refuses a request, or Modules are left at the timeout.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.kube.connect().await?;
        let client = cluster.host();
        let modules = existing(&client).await?;
        if modules.is_empty() {
            out::line("There is no Module.")?;
            return out::line(AFTERWARDS);
        }
        if !arguments.yes {
            for module in modules.values() {
                out::line(format_args!("would delete {}", module.describe()))?;
            }
            return out::line("Nothing is deleted. Run the command with --yes to delete.");
        }
        for (name, module) in &modules {
            let key = ObjectKey::new("", name);
            client.delete(&module::kind(), &key, &module.uid, Propagation::Background).await?;
        }
        let time = Duration::from_secs(arguments.timeout);
        until_gone(&client, cluster.env(), modules, time).await?;
        out::line(AFTERWARDS)
    })
}

/// Printed when all Modules are gone.
const AFTERWARDS: &str = "\
The objects of the modules and their CustomResourceDefinitions stay in the cluster. To remove the \
host, run: kubectl delete -k deploy/";

/// A Module that still exists.
struct BlockedModule {
    name: String,
    uid: String,
    finalizers: Vec<String>,
    /// The message of its condition `Ready`: during its deletion, what blocks it.
    message: String,
}

impl BlockedModule {
    fn of(value: &Value) -> Self {
        let text = |pointer: &str| {
            value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let list = |pointer: &str| {
            value.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let ready = list("/status/conditions").into_iter().find(|one| one["type"] == "Ready");
        Self {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            finalizers: list("/metadata/finalizers")
                .iter()
                .filter_map(|one| Some(one.as_str()?.to_owned()))
                .collect(),
            message: ready
                .and_then(|one| Some(one["message"].as_str()?.to_owned()))
                .unwrap_or_default(),
        }
    }

    fn describe(&self) -> String {
        if self.finalizers.iter().any(|one| one == FINALIZER) {
            format!(
                "Module {}, whose finalizer the host removes from its primaries first",
                self.name
            )
        } else {
            format!("Module {}", self.name)
        }
    }

    /// The message about a Module that still exists at the timeout.
    fn blocked(&self) -> String {
        let Self { name, message, .. } = self;
        let message = if message.is_empty() { "no host has reported its state" } else { message };
        format!("innkeeper: Module {name}: {message}")
    }
}

/// The error if Modules still exist after a time.
fn late(modules: usize, time: Duration) -> String {
    format!(
        "{} after {} s: a Module with the finalizer {FINALIZER} waits for the host; start the host, or remove that finalizer from the Module to leave its primaries as they are",
        counted_len(modules, "Module still exists", "Modules still exist"),
        time.as_secs()
    )
}

/// The Modules that still exist, by name.
async fn existing(client: &ApiClient) -> anyhow::Result<BTreeMap<String, BlockedModule>> {
    let found = match client.list_as::<Value>(&module::kind(), "").await {
        Ok(found) => found,
        // Without the definition there are no Modules.
        Err(ApiError::NotServed { .. } | ApiError::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(found.iter().map(BlockedModule::of).map(|one| (one.name.clone(), one)).collect())
}

async fn until_gone(
    client: &ApiClient,
    env: &Env,
    mut previous: BTreeMap<String, BlockedModule>,
    time: Duration,
) -> anyhow::Result<()> {
    let began = env.instant();
    loop {
        let now = existing(client).await?;
        for name in previous.keys().filter(|name| !now.contains_key(*name)) {
            out::line(format_args!("Module {name} is gone"))?;
        }
        if now.is_empty() {
            return Ok(());
        }
        if env.instant().duration_since(began) > time {
            for module in now.values() {
                out::eprint(&module.blocked());
            }
            bail!("{}", late(now.len(), time));
        }
        previous = now;
        env.sleep(POLL_PERIOD).await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn module(name: &str, finalizers: &[&str], conditions: &Value) -> BlockedModule {
        BlockedModule::of(&json!({"metadata": {"name": name, "uid": "u", "finalizers": finalizers},
            "status": {"conditions": conditions}}))
    }

    #[test]
    fn module_that_stays_is_shown_with_the_message_of_its_host_or_without_one() {
        let ready = json!([{"type": "Loaded", "message": "loaded"},
            {"type": "Ready", "message": "3 primaries have the finalizer"}]);
        let blocked = module("web", &[FINALIZER], &ready);
        assert_eq!(blocked.blocked(), "innkeeper: Module web: 3 primaries have the finalizer");
        let silent = module("new", &[], &json!([]));
        assert_eq!(silent.blocked(), "innkeeper: Module new: no host has reported its state");
        assert_eq!(silent.describe(), "Module new");
        assert!(blocked.describe().starts_with("Module web, whose finalizer the host removes"));
    }

    #[test]
    fn error_at_the_timeout_counts_one_module_in_the_singular() {
        let time = Duration::from_mins(5);
        assert!(late(1, time).starts_with("1 Module still exists after 300 s: a Module with"));
        assert!(late(2, time).starts_with("2 Modules still exist after 300 s: a Module with"));
    }
}
