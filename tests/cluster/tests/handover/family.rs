//! From the original Ansible operators imo, kuri and kabocha.

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Kind, kubelet};
use serde_json::{Value, json};

use crate::definitions::ansible;
use crate::original::{Original, OriginalObject};
use crate::takeover::{Takeover, owned_by, uids};

const IMO: Kind = Kind::new("imo.example.com/v1alpha1", "Imo");
const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");

// The beginnings of the blocks of commands in the READMEs.
const INSTALL: &str = "kubectl apply -f deploy/samples/module-";
const STOP_IMO: &str = "kubectl --namespace operators scale deployment imo-operator";
const ADOPT_IMOS: &str = "kubectl get imos --all-namespaces";
const RETURN_TO_IMO: &str = "kubectl delete module imo";
const DELETE_JOB: &str = "kubectl wait jobs example-kuri";
const BLOCKS: [(&str, &[&str]); 3] = [
    ("imo", &[INSTALL, STOP_IMO, ADOPT_IMOS, RETURN_TO_IMO]),
    ("kuri", &[INSTALL, DELETE_JOB]),
    ("kabocha", &[INSTALL]),
];

fn definitions() -> [Value; 3] {
    [
        ansible("imo.example.com", ("Imo", "imos", "imo")),
        ansible("kuri.example.com", ("Kuri", "kuris", "kuri")),
        ansible("kabocha.example.com", ("Kabocha", "kabochas", "kabocha")),
    ]
}

fn imo(ns: &str) -> String {
    json!({"apiVersion": IMO.api_version, "kind": IMO.kind,
        "metadata": {"name": "example-imo", "namespace": ns}, "spec": {"size": 3}})
    .to_string()
}

fn deployment(ns: &str) -> Value {
    let labels = json!({"app": "imo"});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "example-imo", "namespace": ns},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [
                {"name": "imo", "image": "nginx", "ports": [{"containerPort": 80}]}]}}}})
}

/// As the source's role deploys it.
fn job() -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "example-kuri", "namespace": "default"},
        "spec": {"template": {"spec": {"restartPolicy": "Never",
            "containers": [{"name": "kuri", "image": "busybox", "command": ["date"]}]}}}})
}

/// The status that an Ansible operator writes, and the finalizer that its watches.yaml names.
#[tokio::test(flavor = "multi_thread")]
async fn family_is_handed_over_with_its_objects_statuses_and_finalizers() -> Result<()> {
    let takeover = Takeover::new(&BLOCKS, &definitions()).await?;
    let (stage, admin) = (&takeover.stage, takeover.admin());
    let pods = tokio::spawn(kubelet::run_all(admin.clone()));
    let account = (Kind::SERVICE_ACCOUNT, "default", "default");
    admin.until("the namespace has its account", SOON, account, |_| true).await?;
    let (running, orphaned) =
        (takeover.namespace("running").await?, takeover.namespace("left").await?);
    let owner = admin.apply(&imo(&running)).await?.remove(0);
    admin.apply(&imo(&orphaned)).await?;
    admin.create(&deployment(&orphaned).to_string()).await?;
    let kabocha = json!({"apiVersion": KABOCHA.api_version, "kind": KABOCHA.kind,
        "metadata": {"name": "example-kabocha", "namespace": running,
            "finalizers": ["finalizer.kabocha.example.com"]},
        "spec": {"dummy": "Imo, Kuri and Kabocha"}});
    admin.apply(&kabocha.to_string()).await?;
    let written = json!({"status": {"conditions": [{"type": "Running", "status": "True",
        "reason": "Successful", "message": "Awaiting next reconciliation",
        "lastTransitionTime": "2021-06-01T12:00:00Z",
        "ansibleResult": {"ok": 3, "changed": 1, "skipped": 0, "failures": 0,
            "completion": "2021-06-01T12:00:00.000000"}}]}});
    admin.merge_status(IMO, &running, "example-imo", &written).await?;
    let kuri = json!({"apiVersion": KURI.api_version, "kind": KURI.kind,
        "metadata": {"name": "example-kuri", "namespace": "default"}, "spec": {}});
    let kuri = admin.apply(&kuri.to_string()).await?.remove(0);
    admin.create(&owned_by(job(), &kuri).to_string()).await?;
    let object = OriginalObject::new(owned_by(deployment(&running), &owner), &["/spec/replicas"]);
    let original = Original::start(admin, "imo", vec![object]).await?;
    let imos = [(IMO, &*running, "example-imo"), (IMO, &*orphaned, "example-imo")];
    let deployments = imos.map(|(_, ns, name)| (Kind::DEPLOYMENT, ns, name));
    let before = uids(admin, &deployments).await?;

    for (guest, _) in BLOCKS {
        takeover.run_block(guest, INSTALL).await?;
    }
    for imo in imos {
        stage.says(imo, ("Synced", "False", "Conflict")).await?;
    }
    takeover.run_block("imo", STOP_IMO).await?;
    let writes = original.writes().await?;
    assert!(writes.is_empty(), "the two undo each other's writes: {writes:#?}");
    takeover.run_block("imo", ADOPT_IMOS).await?;
    for imo in imos {
        stage.synced(imo).await?;
    }
    assert_eq!(uids(admin, &deployments).await?, before, "the same Deployments");
    for imo in imos {
        takeover.has_no_consent(imo).await?;
    }
    let adopted = admin.must_get(Kind::DEPLOYMENT, &running, "example-imo").await?;
    let owners = adopted["metadata"]["ownerReferences"].as_array().unwrap();
    assert!(owners.len() == 1 && owners[0]["controller"] == true, "{owners:?}");

    // The original's Job stays until the user deletes it.
    let at_job = (Kind::JOB, "default", "example-kuri");
    stage.says((KURI, "default", "example-kuri"), ("Synced", "False", "Conflict")).await?;
    let job = admin.must_get(at_job.0, at_job.1, at_job.2).await?;
    takeover.run_block("kuri", DELETE_JOB).await?;
    let is_another = |one: &Value| one["metadata"]["uid"] != job["metadata"]["uid"];
    admin.until("the Kuri has a Job of its own", SOON, at_job, is_another).await?;
    stage.synced((KURI, "default", "example-kuri")).await?;

    // A period of the Module works with the original's definition.
    let parameters = json!({"spec": {"parameters": {"period": "10s"}}});
    admin.edit((Kind::MODULE, "", "kuri"), &parameters).await?;
    let first = admin.must_get(at_job.0, at_job.1, at_job.2).await?;
    let runs_again = |one: &Value| one["metadata"]["uid"] != first["metadata"]["uid"];
    admin.until("the Kuri runs again", 2 * SOON, at_job, runs_again).await?;

    // The original's finalizer is the guest's.
    let at = (KABOCHA, &*running, "example-kabocha");
    admin
        .until("the Kabocha is reconciled", SOON, at, |one| one["status"]["phase"].is_string())
        .await?;
    admin.delete(at.0, at.1, at.2).await?;
    admin.until_gone(SOON, at).await?;

    // The way back: the Deployments stay.
    takeover.run_block("imo", RETURN_TO_IMO).await?;
    assert_eq!(uids(admin, &deployments).await?, before, "the same Deployments");
    pods.abort();
    Ok(())
}
