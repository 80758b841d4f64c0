//! Podroutes on a simulated cluster, and the time that they cost.

use std::path::PathBuf;
use std::time::Duration;

use innkeeper_lab::{Api, ApiFailure, Guests, Lab, Modules, Setup};
use serde_json::{Value, json};

/// The most that one part of a life may take, in the cluster's time.
pub(super) const LIMIT: Duration = Duration::from_mins(1);

pub(super) type Failed = Box<dyn std::error::Error>;

fn component() -> Result<PathBuf, Failed> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/target/components/podroute.wasm");
    Ok(path.canonicalize().map_err(|_| "podroute is not built: run `cargo xtask guests` first")?)
}

fn setup() -> Result<Setup, Failed> {
    let mut setup = Setup::new(1);
    // Without an account of its own it acts as the host.
    setup.modules = Modules::Given(vec![json!({
        "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module", "metadata": {"name": "podroute"},
        "spec": {"source": {"file": component()?}, "allowedCRDGroups": ["quay.io"]},
    })]);
    Ok(setup)
}

/// A simulated cluster with Podroute's Module, and so many namespaces.
pub(super) async fn lab_with(namespaces: usize) -> Result<(Lab, Vec<String>), Failed> {
    let lab = Lab::start(&Guests::new()?, setup()?).await?;
    lab.serves(LIMIT).await?;
    let namespaces: Vec<String> = (0..namespaces).map(|index| format!("n{index}")).collect();
    for name in &namespaces {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        lab.api().apply(&namespace, "").await?;
    }
    Ok((lab, namespaces))
}

pub(super) fn podroute(replicas: i64) -> Value {
    json!({"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "metadata": {"name": "site"},
        "spec": {"image": "quay.io/austincunningham/always200:latest", "replicas": replicas}})
}

pub(super) fn deployment(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pod-route"},
        "spec": {"replicas": replicas}})
}

pub(super) async fn at(
    api: &Api,
    object: &Value,
    namespace: &str,
) -> Result<Option<Value>, ApiFailure> {
    api.get(&api.path_of(object, namespace).await?).await
}

/// Whether a Podroute says that so many of its pods are ready, and has so many.
async fn has(api: &Api, namespace: &str, replicas: i64) -> Result<bool, ApiFailure> {
    let found = at(api, &podroute(replicas), namespace).await?.unwrap_or_default();
    if found["status"]["readyReplicas"] != replicas || found["status"]["replicas"] != replicas {
        return Ok(false);
    }
    let below = at(api, &deployment(replicas), namespace).await?.unwrap_or_default();
    Ok(below["spec"]["replicas"] == replicas)
}

pub(super) async fn all(
    lab: &Lab,
    what: &str,
    namespaces: &[String],
    replicas: i64,
) -> Result<(), Failed> {
    lab.until(what, LIMIT, async |api| {
        for namespace in namespaces {
            if !has(api, namespace, replicas).await? {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;
    Ok(())
}

/// How long this thread has had a core, which is what counts on a machine that has more to do. As
/// long as Linux says it: in hundredths of a second.
pub(super) fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|text| text.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}
