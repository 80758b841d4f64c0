//! What may happen to hosts in pods, and to the control plane, amid changes: the one that works is
//! paused past its Lease and goes on, the API server is restarted, etcd is restarted. Needs root;
//! `cargo xtask test` runs it.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{AuditFilter, Kind, NodeStage, assert_fenced, condition, eventually};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const CHANGES: usize = 200;
const NAMESPACE: &str = "default";

/// The process of the host in a pod, as this machine counts it.
fn process(pod: &str) -> Result<Pid> {
    let variable = format!("POD_NAME={pod}");
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let number = folder.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        // A process may end meanwhile.
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()) {
            return Ok(pid);
        }
    }
    bail!("no process has {variable}")
}

/// Makes a Podroute without pods, as often as the API server is away. Each in a namespace of its
/// own, since the names of its objects are always the same.
async fn make(stage: &NodeStage, number: usize) -> Result<()> {
    let namespace = format!("n{number:03}");
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        json!({"apiVersion": Kind::PODROUTE.api_version, "kind": Kind::PODROUTE.kind,
            "metadata": {"name": "changed", "namespace": namespace},
            "spec": {"image": "example.com/none", "replicas": 0}}),
    ];
    for object in objects {
        eventually(&format!("{number} is made"), 2 * SOON, async || {
            let applied = stage.admin.apply(&object.to_string()).await;
            Ok(applied.map(drop).map_err(|error| format!("{error:#}")))
        })
        .await?;
    }
    Ok(())
}

/// Pauses the host that works, lets it go on when another one works, and checks what it wrote then.
async fn paused(stage: &NodeStage, from: usize, to: usize) -> Result<()> {
    let leader = stage.leader().await?;
    let host = process(&leader)?;
    kill_process(host, Signal::STOP)?;
    for number in from..to {
        make(stage, number).await?;
    }
    let taken = stage.until_another_leads(&leader).await?;
    kill_process(host, Signal::CONT)?;
    eventually("the paused host knows it", SOON, async || {
        let logs = ["logs", &leader, "--namespace", "innkeeper-system"];
        Ok(match stage.kubectl_prints(&logs).await {
            Ok(log) if log.contains("leadership lost") => Ok(()),
            Ok(_) => Err("it says nothing of its Lease".to_owned()),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    let acquired = taken["spec"]["acquireTime"].as_str().context("no acquireTime")?;
    let writes = stage.plane.audit()?.events(&AuditFilter::new().writes())?;
    let of_leader: Vec<_> =
        writes.into_iter().filter(|event| event.agent.contains(&leader)).collect();
    assert_fenced(&of_leader, acquired);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root: cargo xtask test runs it"]
async fn a_paused_host_and_restarts_of_api_server_and_etcd_amid_changes_lose_nothing() -> Result<()>
{
    let mut stage = NodeStage::new().await?;
    for number in 0..50 {
        make(&stage, number).await?;
    }
    paused(&stage, 50, 100).await?;
    for number in 100..CHANGES {
        let program = match number {
            120 => Some("kube-apiserver"),
            160 => Some("etcd"),
            _ => None,
        };
        if let Some(program) = program {
            tokio::task::block_in_place(|| stage.plane_mut().restart(program))?;
        }
        make(&stage, number).await?;
    }
    eventually("all Podroutes are ready", Duration::from_mins(5), async || {
        let all = match stage.admin.list(Kind::PODROUTE, "").await {
            Ok(all) => all,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let is_ready = |one: &&Value| condition(one, "Ready") == Some("True");
        let ready = all.iter().filter(is_ready).count();
        Ok(if ready == CHANGES { Ok(()) } else { Err(format!("{ready} of {}", all.len())) })
    })
    .await?;
    for kind in [Kind::DEPLOYMENT, Kind::SERVICE] {
        let all = stage.admin.list(kind, "").await?;
        let is_made = |one: &&Value| {
            let owner = &one["metadata"]["ownerReferences"][0];
            owner["kind"] == "Podroute" && owner["name"] == "changed"
        };
        assert_eq!(all.iter().filter(is_made).count(), CHANGES, "{kind}");
    }
    // The hosts are there, and work as before.
    stage.until_hosts(2).await?;
    make(&stage, CHANGES).await?;
    let at = (Kind::PODROUTE, "n200", "changed");
    stage.says(at, ("Ready", "True", "AllReady")).await?;
    let pods = stage.admin.list(Kind::POD, NAMESPACE).await?;
    assert!(pods.is_empty(), "nobody asked for pods: {pods:#?}");
    Ok(())
}
