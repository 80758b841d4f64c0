//! `innkeeper push`: a guest into the cluster, and a Module pointed at it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiError, Force, Session};
use innkeeper_contract::Kind;
use innkeeper_core::{Key, Manager};
use innkeeper_modules::module::{self, NAMESPACE, SOURCE_KEY};
use innkeeper_modules::parts;
use serde_json::{Map, Value, json};

use crate::component::{self, Opened};
use crate::out;
use crate::run::KubeArguments;

/// How often the Module is looked at with `--wait`.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Arguments of `innkeeper push`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The guest's component, plain or gzip.
    file: PathBuf,
    /// The Module to point at it. It must exist.
    #[arg(long, value_name = "NAME")]
    module: String,
    /// Wait until the guest serves or is refused, at most so many seconds.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
    #[command(flatten)]
    kube: KubeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    // Checked here, where the person is, before the cluster sees it.
    let opened = component::open(&arguments.file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(push(arguments, &opened))
}

async fn push(arguments: &Arguments, opened: &Opened) -> anyhow::Result<()> {
    let cluster = arguments.kube.connect().await?;
    let session = cluster.host();
    let name = &arguments.module;
    let module_kind = Kind::cluster(module::API_VERSION, module::KIND, module::PLURAL);
    let module_key = Key::new("", name);
    // Before anything is written: a ConfigMap that no Module uses helps nobody.
    session.get(&module_kind, &module_key).await.map_err(|error| explain(error, name))?;

    let config_map = format!("{name}-{}", opened.component.digest.short());
    let kind = Kind::namespaced("v1", "ConfigMap", "configmaps");
    let mut told = String::new();
    for body in parts::config_maps(&config_map, &opened.component, &metadata(name, opened)) {
        let part = body["metadata"]["name"].as_str().unwrap_or_default();
        session
            .apply(&kind, &Key::new(NAMESPACE, part), &Manager::Push, &body, Force::Yes)
            .await
            .map_err(|error| explain(error, name))?;
        told = format!("ConfigMap {NAMESPACE}/{part}\n{told}");
    }
    let source = json!({
        "apiVersion": module::API_VERSION,
        "kind": module::KIND,
        "metadata": { "name": name },
        "spec": { "source": { "configMap": { "name": config_map, "key": SOURCE_KEY } } },
    });
    let applied = session
        .apply(&module_kind, &module_key, &Manager::Push, &source, Force::Yes)
        .await
        .map_err(|error| explain(error, name))?;
    out::write(format!("{told}Module {name} now has it as its source\n"))?;
    match arguments.wait {
        Some(seconds) => {
            let limit = Duration::from_secs(seconds);
            let digest = opened.component.digest.to_string();
            wait(&session, &module_kind, &module_key, applied.object.generation, &digest, limit)
                .await
        }
        None => Ok(()),
    }
}

/// What the ConfigMaps have in common. They are named by their content, and never changed.
fn metadata(module: &str, opened: &Opened) -> Map<String, Value> {
    let manifest = opened.guest.manifest();
    let guest = format!("{} {}", manifest.name, manifest.version);
    let labels = json!({ "innkeeper.dev/module": module });
    let annotations = json!({ "innkeeper.dev/guest": guest.trim_end() });
    Map::from_iter([("labels".to_owned(), labels), ("annotations".to_owned(), annotations)])
}

fn explain(error: ApiError, module: &str) -> anyhow::Error {
    let hint = match &error {
        ApiError::NotServed { .. } => {
            "the cluster has no Modules yet: `innkeeper crd | kubectl apply -f -`, or install deploy/".to_owned()
        }
        ApiError::NotFound { .. } => format!(
            "there is no Module {module}: create it first (deploy/samples has one); its source may name a ConfigMap that is not there yet"
        ),
        ApiError::NamespaceMissing { .. } => format!(
            "there is no namespace {NAMESPACE}, where modules live: `kubectl create namespace {NAMESPACE}`, or install deploy/"
        ),
        _ => return error.into(),
    };
    anyhow::Error::new(error).context(hint)
}

/// Waits until the operator says what has become of it.
async fn wait(
    session: &Session,
    kind: &Kind,
    key: &Key,
    generation: i64,
    digest: &str,
    limit: Duration,
) -> anyhow::Result<()> {
    let mut last = "the operator has not looked at it; does it run?".to_owned();
    let waited = session.env().timeout(limit, async {
        loop {
            let module: Value = session.get_as(kind, key).await?;
            if module.pointer("/status/observedGeneration").and_then(Value::as_i64)
                >= Some(generation)
            {
                let condition = |type_: &str| {
                    let conditions = module.pointer("/status/conditions").and_then(Value::as_array);
                    conditions
                        .into_iter()
                        .flatten()
                        .find(|condition| condition["type"] == type_)
                        .cloned()
                };
                let text = |condition: &Value| {
                    format!(
                        "{}: {}",
                        condition["reason"].as_str().unwrap_or_default(),
                        condition["message"].as_str().unwrap_or_default()
                    )
                };
                if let Some(held) = condition("Held").filter(|held| held["status"] == "True") {
                    bail!(
                        "the guest is held ({}): {}",
                        held["reason"].as_str().unwrap_or_default(),
                        held["message"].as_str().unwrap_or_default()
                    );
                }
                if let Some(loaded) = condition("Loaded") {
                    last = text(&loaded);
                    if loaded["status"] == "False" {
                        bail!("the guest is refused: {last}");
                    }
                }
                if module.pointer("/status/digest").and_then(Value::as_str) == Some(digest) {
                    return Ok(());
                }
            }
            session.env().sleep(LOOK_EVERY).await;
        }
    });
    match waited.await {
        Ok(result) => {
            result.context("waiting for the guest to serve")?;
            out::write("it serves\n")
        }
        Err(_) => bail!("the guest does not serve after {} s: {last}", limit.as_secs()),
    }
}
