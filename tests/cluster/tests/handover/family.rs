//! From the original Ansible operators imo, kuri and kabocha.

use anyhow::Result;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Kind, kubelet};
use serde_json::{Value, json};

use crate::definitions::ansible;
use crate::original::{Original, OriginalObject};
use crate::takeover::{Takeover, owned_by, uids};

const IMO: Kind = Kind::new("imo.example.com/v1alpha1", "Imo");
const KURI: Kind = Kind::new("kuri.example.com/v1alpha1", "Kuri");
const KABOCHA: Kind = Kind::new("kabocha.example.com/v1alpha1", "Kabocha");

const AT_KURI: (Kind, &str, &str) = (KURI, "default", "example-kuri");
const AT_JOB: (Kind, &str, &str) = (Kind::JOB, "default", "example-kuri");

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

fn kabocha(ns: &str) -> Value {
    json!({"apiVersion": KABOCHA.api_version, "kind": KABOCHA.kind,
        "metadata": {"name": "example-kabocha", "namespace": ns,
            "finalizers": ["finalizer.kabocha.example.com"]},
        "spec": {"dummy": "Imo, Kuri and Kabocha"}})
}

fn kuri() -> Value {
    json!({"apiVersion": KURI.api_version, "kind": KURI.kind,
        "metadata": {"name": "example-kuri", "namespace": "default"}, "spec": {}})
}

/// The status that an Ansible operator writes.
fn ansible_status() -> Value {
    json!({"status": {"conditions": [{"type": "Running", "status": "True",
        "reason": "Successful", "message": "Awaiting next reconciliation",
        "lastTransitionTime": "2021-06-01T12:00:00Z",
        "ansibleResult": {"ok": 3, "changed": 1, "skipped": 0, "failures": 0,
            "completion": "2021-06-01T12:00:00.000000"}}]}})
}

/// The namespaces of the original operators, with their objects in them.
struct Originals {
    /// The namespace in which the original of imo runs.
    running: String,
    /// The namespace with an Imo whose Deployment has no owner.
    orphaned: String,
}

impl Originals {
    /// Makes primaries of all kinds and what the originals make for them. The one of imo runs on.
    async fn start(takeover: &Takeover) -> Result<(Self, Original)> {
        let admin = takeover.admin();
        let (running, orphaned) =
            (takeover.namespace("running").await?, takeover.namespace("left").await?);
        let owner = admin.apply(&imo(&running)).await?.remove(0);
        admin.apply(&imo(&orphaned)).await?;
        admin.create(&deployment(&orphaned).to_string()).await?;
        admin.apply(&kabocha(&running).to_string()).await?;
        admin.merge_status(IMO, &running, "example-imo", &ansible_status()).await?;
        let kuri = admin.apply(&kuri().to_string()).await?.remove(0);
        admin.create(&owned_by(job(), &kuri).to_string()).await?;
        let object =
            OriginalObject::new(owned_by(deployment(&running), &owner), &["/spec/replicas"]);
        let imo = Original::start(admin, "imo", vec![object]).await?;
        Ok((Self { running, orphaned }, imo))
    }

    fn imos(&self) -> [(Kind, &str, &str); 2] {
        [(IMO, &self.running, "example-imo"), (IMO, &self.orphaned, "example-imo")]
    }

    fn deployments(&self) -> [(Kind, &str, &str); 2] {
        self.imos().map(|(_, ns, name)| (Kind::DEPLOYMENT, ns, name))
    }
}

/// The Imos wait next to the original, and are the guest's after the user's commands.
async fn imos_are_adopted_and_no_write_is_undone(
    takeover: &Takeover,
    originals: &Originals,
    imo: Original,
) -> Result<()> {
    let stage = &takeover.stage;
    for imo in originals.imos() {
        stage.says(imo, ("Synced", "False", "Conflict")).await?;
    }
    takeover.run_block("imo", STOP_IMO).await?;
    let writes = imo.writes().await?;
    assert!(writes.is_empty(), "the two undo each other's writes: {writes:#?}");
    takeover.run_block("imo", ADOPT_IMOS).await?;
    for imo in originals.imos() {
        stage.synced(imo).await?;
        takeover.has_no_consent(imo).await?;
    }
    let (kind, ns, name) = originals.deployments()[0];
    let adopted = takeover.admin().must_get(kind, ns, name).await?;
    let owners = adopted["metadata"]["ownerReferences"].as_array().unwrap();
    assert!(owners.len() == 1 && owners[0]["controller"] == true, "{owners:?}");
    Ok(())
}

async fn job_of_the_original_stays_until_the_user_deletes_it(takeover: &Takeover) -> Result<()> {
    let (stage, admin) = (&takeover.stage, takeover.admin());
    stage.says(AT_KURI, ("Synced", "False", "Conflict")).await?;
    let job = admin.must_get(AT_JOB.0, AT_JOB.1, AT_JOB.2).await?;
    takeover.run_block("kuri", DELETE_JOB).await?;
    let is_another = |one: &Value| one["metadata"]["uid"] != job["metadata"]["uid"];
    admin.until("the Kuri has a Job of its own", SOON, AT_JOB, is_another).await?;
    stage.synced(AT_KURI).await?;
    Ok(())
}

async fn period_of_the_module_works_with_the_originals_definition(admin: &Admin) -> Result<()> {
    let parameters = json!({"spec": {"parameters": {"period": "10s"}}});
    admin.edit((Kind::MODULE, "", "kuri"), &parameters).await?;
    let first = admin.must_get(AT_JOB.0, AT_JOB.1, AT_JOB.2).await?;
    let runs_again = |one: &Value| one["metadata"]["uid"] != first["metadata"]["uid"];
    admin.until("the Kuri runs again", 2 * SOON, AT_JOB, runs_again).await?;
    Ok(())
}

async fn guest_removes_the_finalizer_of_the_original(admin: &Admin, ns: &str) -> Result<()> {
    let at = (KABOCHA, ns, "example-kabocha");
    let is_reconciled = |one: &Value| one["status"]["phase"].is_string();
    admin.until("the Kabocha is reconciled", SOON, at, is_reconciled).await?;
    admin.delete(at.0, at.1, at.2).await?;
    admin.until_gone(SOON, at).await
}

#[tokio::test(flavor = "multi_thread")]
async fn family_is_handed_over_with_its_objects_statuses_and_finalizers() -> Result<()> {
    // Given the originals of the family, with their objects.
    let takeover = Takeover::new(&BLOCKS, &definitions()).await?;
    let admin = takeover.admin();
    let pods = tokio::spawn(kubelet::run_all(admin.clone()));
    let account = (Kind::SERVICE_ACCOUNT, "default", "default");
    admin.until("the namespace has its account", SOON, account, |_| true).await?;
    let (originals, imo) = Originals::start(&takeover).await?;
    let before = uids(admin, &originals.deployments()).await?;

    // When a user follows the READMEs.
    for (guest, _) in BLOCKS {
        takeover.run_block(guest, INSTALL).await?;
    }

    // Then each guest takes over what its original has made.
    imos_are_adopted_and_no_write_is_undone(&takeover, &originals, imo).await?;
    assert_eq!(uids(admin, &originals.deployments()).await?, before, "the same Deployments");
    job_of_the_original_stays_until_the_user_deletes_it(&takeover).await?;
    period_of_the_module_works_with_the_originals_definition(admin).await?;
    guest_removes_the_finalizer_of_the_original(admin, &originals.running).await?;

    // And the Deployments stay on the way back.
    takeover.run_block("imo", RETURN_TO_IMO).await?;
    assert_eq!(uids(admin, &originals.deployments()).await?, before, "the same Deployments");
    pods.abort();
    Ok(())
}
