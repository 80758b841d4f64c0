//! A converged host writes nothing.

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::stage::{HOST, SOON};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage, eventually};
use serde_json::json;

/// Resources that are converged while nothing may be written.
const RESOURCES: usize = 200;
/// How long the audit log is watched: the one wait for time that tests have.
const WATCHED: Duration = Duration::from_mins(1);

const VERBATIM: Kind = Kind::new("example.innkeeper.dev/v1", "Verbatim");

/// Waits until the host has worked on all resources since it started, and nothing waits.
async fn worked_on(host: &Host, count: usize) -> Result<()> {
    eventually("all resources have been worked on", 3 * SOON, async || {
        let done = host.metric("controller_runtime_reconcile_total", &[]).await?.unwrap_or(0.0);
        let waiting = host.metric("workqueue_depth", &[]).await?.unwrap_or(0.0);
        let active = host.metric("controller_runtime_active_workers", &[]).await?.unwrap_or(0.0);
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let enough = done >= count as f64 && waiting == 0.0 && active == 0.0;
        Ok(if enough {
            Ok(())
        } else {
            Err(format!("{done} done, {waiting} waiting, {active} active"))
        })
    })
    .await
}

/// A Deployment and a Service in spellings that the API server does not keep: quantities, lists
/// whose members it gives defaults, empty members, ports that differ in the protocol only.
fn verbatim(namespace: &str, name: &str) -> String {
    json!({"apiVersion": VERBATIM.api_version, "kind": VERBATIM.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "deployment": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "containers": [{
                            "name": "app", "image": "example.com/app:1",
                            "env": [{"name": "EMPTY"}, {"name": "TEXT", "value": "1000m"},
                                {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                            "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
                            "resources": {
                                "requests": {"cpu": "1000m", "memory": "0.5Gi"},
                                "limits": {"cpu": "2000m", "memory": "1024Mi", "ephemeral-storage": "1e3"}
                            },
                            "readinessProbe": {"httpGet": {"path": "/", "port": 53}},
                            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                        }],
                        "tolerations": [{"key": "spot", "operator": "Exists"}, {"operator": "Exists"}],
                        "volumes": [{"name": "scratch", "emptyDir": {}},
                            {"name": "tokens", "projected": {"sources": [
                                {"serviceAccountToken": {"path": "token"}},
                                {"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}],
                    },
                },
            },
            "service": {
                "selector": {"app": name},
                "ports": [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP", "targetPort": "dns"}],
            },
        }})
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn converged_host_writes_nothing_even_after_a_restart() -> Result<()> {
    let stage = Stage::new().await?;
    stage
        .module("verbatim", "verbatim", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("verbatim").await?;
    let namespace = stage.admin.namespace("quiet").await?;
    for index in 0..RESOURCES {
        stage.admin.apply(&verbatim(&namespace, &format!("v{index:03}"))).await?;
    }
    stage.all_synced(VERBATIM, &namespace, RESOURCES).await?;
    let quantity = "/spec/template/spec/containers/0/resources/requests/cpu";
    let deployment = stage.admin.must_get(Kind::DEPLOYMENT, &namespace, "v000").await?;
    assert_eq!(
        deployment.pointer(quantity),
        Some(&json!("1")),
        "the server keeps another spelling"
    );
    // The controllers of Kubernetes have done their part: their Deployments have their pods.
    eventually("Kubernetes is done with the Deployments", 3 * SOON, async || {
        let all = stage.admin.list(Kind::DEPLOYMENT, &namespace).await?;
        let done = all
            .iter()
            .filter(|one| {
                one["status"]["observedGeneration"] == one["metadata"]["generation"]
                    && one["status"]["updatedReplicas"] == 1
            })
            .count();
        Ok(if done == RESOURCES { Ok(()) } else { Err(format!("{done} of {RESOURCES}")) })
    })
    .await?;
    // Also what the controllers of Kubernetes do about it has been reported.
    stage.quiet(Duration::from_secs(5)).await?;
    host.stop(Duration::from_secs(10)).await?;

    let mark = stage.plane.audit()?.mark()?;
    let host = stage.host().await?;
    stage.ready("verbatim").await?;
    worked_on(&host, RESOURCES).await?;
    tokio::time::sleep(WATCHED).await;
    let writes: Vec<String> = stage
        .plane
        .audit()?
        .since(mark, &AuditFilter::new().writes().user(HOST))?
        .into_iter()
        .filter(|event| {
            !matches!(
                event.resource.as_str(),
                "leases" | "selfsubjectaccessreviews" | "selfsubjectreviews"
            )
        })
        .map(|event| format!("{} {} {}", event.verb, event.uri, event.code))
        .collect();
    assert!(writes.is_empty(), "a converged host wrote {writes:#?}");
    Ok(())
}
