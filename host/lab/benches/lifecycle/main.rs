//! How long lives of a Podroute take, in wall time: the real operator and guest on a simulated
//! cluster, one core.

#![allow(clippy::print_stdout, reason = "it is the result")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use innkeeper_lab::{Api, ApiFailure, Guests, Lab, Modules, Setup};
use serde_json::{Value, json};

/// Lives that are measured.
const LIVES: usize = 200;
/// Lives that are lived at once.
const TOGETHER: usize = 50;
/// The most that one part of a life may take, in the cluster's time.
const LIMIT: Duration = Duration::from_mins(1);

type Failed = Box<dyn std::error::Error>;

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

fn podroute(replicas: i64) -> Value {
    json!({"apiVersion": "quay.io/v1alpha1", "kind": "Podroute", "metadata": {"name": "site"},
        "spec": {"image": "quay.io/austincunningham/always200:latest", "replicas": replicas}})
}

fn deployment(replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "pod-route"},
        "spec": {"replicas": replicas}})
}

async fn at(api: &Api, object: &Value, namespace: &str) -> Result<Option<Value>, ApiFailure> {
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

async fn all(lab: &Lab, what: &str, namespaces: &[String], replicas: i64) -> Result<(), Failed> {
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

/// Lives of some Podroutes, each in a namespace of its own: made, ready, scaled, drift repaired,
/// deleted.
async fn live(lab: &Lab, namespaces: &[String]) -> Result<Duration, Failed> {
    let api = lab.api();
    let begun = Instant::now();
    for namespace in namespaces {
        api.apply(&podroute(2), namespace).await?;
    }
    all(lab, "ready", namespaces, 2).await?;
    let ready = begun.elapsed();
    for namespace in namespaces {
        api.apply(&podroute(3), namespace).await?;
    }
    all(lab, "scaled", namespaces, 3).await?;
    for namespace in namespaces {
        api.apply(&deployment(1), namespace).await?;
    }
    all(lab, "drift is repaired", namespaces, 3).await?;
    for namespace in namespaces {
        api.delete(&api.path_of(&podroute(3), namespace).await?).await?;
    }
    lab.until("gone", LIMIT, async |api| {
        for namespace in namespaces {
            if at(api, &deployment(3), namespace).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;
    Ok(ready)
}

/// How long this thread has had a core, which is what counts on a machine that has more to do. As
/// long as Linux says it: in hundredths of a second.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|text| text.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

async fn measure() -> Result<(), Failed> {
    let lab = Lab::start(&Guests::new()?, setup()?).await?;
    lab.serves(LIMIT).await?;
    let namespaces: Vec<String> = (0..LIVES).map(|index| format!("n{index}")).collect();
    for name in &namespaces {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        lab.api().apply(&namespace, "").await?;
    }
    for (what, together) in [("one after the other", 1), ("side by side", TOGETHER)] {
        let mut ready = Vec::new();
        let (begun, worked_before) = (Instant::now(), worked());
        for group in namespaces.chunks(together) {
            ready.push(live(&lab, group).await?);
        }
        let took = begun.elapsed();
        let of_a_core = worked().saturating_sub(worked_before) / u32::try_from(LIVES)?;
        ready.sort();
        let each = took / u32::try_from(LIVES)?;
        println!(
            "{LIVES} lives of a Podroute {what} ({together} at once): {:.0} a second, {:.1} ms each, {:.1} ms of a core ({:.0} a second); from apply to ready {:.1} ms in the middle, {:.1} ms at most",
            1.0 / each.as_secs_f64(),
            each.as_secs_f64() * 1000.0,
            of_a_core.as_secs_f64() * 1000.0,
            1.0 / of_a_core.as_secs_f64(),
            ready[ready.len() / 2].as_secs_f64() * 1000.0,
            ready[ready.len() - 1].as_secs_f64() * 1000.0,
        );
    }
    lab.end().await;
    Ok(())
}

fn main() -> Result<(), Failed> {
    // Only `cargo bench` says so.
    if std::env::args().all(|argument| argument != "--bench") {
        return Ok(());
    }
    innkeeper_lab::block_on(measure())?
}
