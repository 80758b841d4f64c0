//! `innkeeper uninstall`: all Modules go, so that nothing in the cluster waits for the host any
//! more.
//!
//! What the modules made stays, and so do the CustomResourceDefinitions with their objects: they
//! belong to users.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use innkeeper_cluster::{ApiClient, ApiError, Env, Propagation};
use innkeeper_core::ObjectKey;
use innkeeper_modules::module::{self, FINALIZER};
use serde_json::Value;

use crate::kube::KubeArguments;
use crate::out;

/// How often is looked which Modules are left.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// Arguments of `innkeeper uninstall`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Delete the Modules; without it, only what would be deleted is printed.
    #[arg(long)]
    yes: bool,
    /// So many seconds is waited until all Modules are gone.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    timeout: u64,
    #[command(flatten)]
    kube: KubeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.kube.connect().await?;
        let client = cluster.host();
        let modules = left(&client).await?;
        if modules.is_empty() {
            out::line("There is no Module.")?;
            return out::line(AFTERWARDS);
        }
        if !arguments.yes {
            for module in modules.values() {
                out::line(format_args!("would delete {}", module.describe()))?;
            }
            return out::line("Nothing is deleted. Say --yes to do it.");
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

/// What is left when all Modules are gone.
const AFTERWARDS: &str = "\
What the modules made is left as it is, and so are their CustomResourceDefinitions, which \
belong to whoever has objects of them. To remove the host: kubectl delete -k deploy/";

/// A Module that is not gone.
struct BlockedModule {
    name: String,
    uid: String,
    finalizers: Vec<String>,
    /// Why it is not ready: when it is being deleted, what holds it.
    why: String,
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
            why: ready
                .and_then(|one| Some(one["message"].as_str()?.to_owned()))
                .unwrap_or_default(),
        }
    }

    fn describe(&self) -> String {
        if self.finalizers.iter().any(|one| one == FINALIZER) {
            format!("Module {}, whose finalizer the host takes off its primaries first", self.name)
        } else {
            format!("Module {}", self.name)
        }
    }
}

/// The Modules, by name.
async fn left(client: &ApiClient) -> anyhow::Result<BTreeMap<String, BlockedModule>> {
    let found = match client.list_as::<Value>(&module::kind(), "").await {
        Ok(found) => found,
        // The definition is gone, and with it all Modules.
        Err(ApiError::NotServed { .. } | ApiError::NotFound { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(found.iter().map(BlockedModule::of).map(|one| (one.name.clone(), one)).collect())
}

async fn until_gone(
    client: &ApiClient,
    env: &Env,
    mut before: BTreeMap<String, BlockedModule>,
    time: Duration,
) -> anyhow::Result<()> {
    let began = env.instant();
    loop {
        let now = left(client).await?;
        for name in before.keys().filter(|name| !now.contains_key(*name)) {
            out::line(format_args!("Module {name} is gone"))?;
        }
        if now.is_empty() {
            return Ok(());
        }
        if env.instant().duration_since(began) > time {
            for module in now.values() {
                out::eprint(&format!("innkeeper: Module {}: {}", module.name, module.why));
            }
            bail!(
                "{} Modules are still there after {} s. A Module with the finalizer {FINALIZER} waits for the host, which must run; to leave its primaries as they are, take that finalizer off",
                now.len(),
                time.as_secs()
            );
        }
        before = now;
        env.sleep(POLL_PERIOD).await;
    }
}
