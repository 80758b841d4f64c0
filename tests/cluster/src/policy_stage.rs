//! A stage whose hosts review requests with policies.

use std::net::Ipv4Addr;
use std::ops::Deref;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use innkeeper_controlplane::{ControlPlane, Programs, free_address};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::dry_run::Answer;
use crate::review_port::ReviewPort;
use crate::simulated_cluster::SimulatedCluster;
use crate::stage::SOON;
use crate::{AdmissionService, DryRun, Host, Kind, Stage, eventually};

/// The namespace of the hosts, and the Service by which the API server reaches them.
const SERVICE: (&str, &str) = ("innkeeper-system", "innkeeper-admission");

/// The Secret with the certificates of the hosts.
const CERTIFICATES: (Kind, &str, &str) = (Kind::SECRET, SERVICE.0, SERVICE.1);

/// What asks whether a user may write a Module with a policy.
const MODULE_POLICY: (Kind, &str, &str) = (
    Kind::new("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    "",
    "innkeeper-module-account",
);

/// The label of the Leases in which replicas report.
const REPLICA: &str = "innkeeper.dev/replica";

/// The label of the namespaces that the policies of [`policy`] review.
pub const REVIEWED: &str = "reviewed";

/// A host that ends after a signal drains first.
const END: Duration = Duration::from_mins(1);

/// A stage whose hosts review requests as those in a cluster do: the API server reaches them by a
/// Service, so requests that they do not answer can fail.
pub struct PolicyStage {
    stage: Stage,
    service: Arc<AdmissionService>,
    cache: TempDir,
    /// Ends after the clients of the stage.
    simulated: Option<SimulatedCluster>,
}

/// Sends requests that a policy reviews, and stores nothing.
#[derive(Clone)]
pub enum Requests {
    /// To the API server, which asks the policy.
    ApiServer(DryRun),
    /// To the port of the hosts, without an API server between.
    Port(ReviewPort),
}

impl Requests {
    /// Creates a ConfigMap, which is not stored.
    ///
    /// # Errors
    /// If there is no answer. A refusal is one.
    pub async fn create(&self, object: &Value) -> Result<Answer> {
        match self {
            Self::ApiServer(requests) => requests.create(object).await,
            Self::Port(requests) => requests.create(object).await,
        }
    }
}

impl Deref for PolicyStage {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

/// A running replica, which the Service knows.
pub struct Replica {
    /// The host.
    pub host: Host,
    name: String,
    service: Arc<AdmissionService>,
}

/// What a command printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// Whether it succeeded.
    pub is_success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl PolicyStage {
    /// A stage with the rights of `deploy/policies` and no host.
    ///
    /// # Errors
    /// What is missing, by name.
    pub async fn new() -> Result<Self> {
        Self::on(Stage::new().await?, None).await
    }

    /// The same on a simulated cluster, which asks no policy itself: [`Self::requests`] go to the
    /// port of the hosts.
    ///
    /// # Errors
    /// What is missing, by name.
    pub async fn simulated() -> Result<Self> {
        let simulated = SimulatedCluster::start().await?;
        let stage = Stage::on(ControlPlane::existing(simulated.kubeconfig())).await?;
        // The simulator cannot evaluate its expressions, which have optional fields.
        stage.admin.delete(MODULE_POLICY.0, MODULE_POLICY.1, MODULE_POLICY.2).await?;
        Self::on(stage, Some(simulated)).await
    }

    async fn on(stage: Stage, simulated: Option<SimulatedCluster>) -> Result<Self> {
        for rights in [
            include_str!("../../../deploy/policies/cluster-role.yaml"),
            include_str!("../../../deploy/policies/roles.yaml"),
        ] {
            stage.admin.apply(rights).await?;
        }
        let service = Arc::new(AdmissionService::start().await?);
        // The API server calls an external name at the port of the webhook configuration.
        let external = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": SERVICE.0, "name": SERVICE.1},
            "spec": {"type": "ExternalName", "externalName": service.address().ip().to_string()}});
        stage.admin.apply(&external.to_string()).await?;
        let cache = tempfile::Builder::new().prefix("innkeeper-kubectl-").tempdir()?;
        Ok(Self { stage, service, cache, simulated })
    }

    /// Whether a real API server asks the policies, all of them for each request.
    pub fn has_api_server(&self) -> bool {
        self.simulated.is_none()
    }

    /// Requests for ConfigMaps of a namespace, which the policy of a Module reviews.
    ///
    /// # Errors
    /// If the policy has no webhook configuration.
    pub async fn requests(&self, namespace: &str, module: &str) -> Result<Requests> {
        if self.has_api_server() {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            return Ok(Requests::ApiServer(DryRun::new(self.admin.client(), &path)));
        }
        let url = format!("https://{}", self.service.address());
        Ok(Requests::Port(ReviewPort::start(&self.admin, &url, module).await?))
    }

    /// Starts a replica that elects a leader with the others, and waits until the Service sends
    /// requests to it.
    ///
    /// # Errors
    /// If it is not ready in time.
    pub async fn replica(&self, name: &str) -> Result<Replica> {
        let mut replica = self.begin(name).await?;
        replica.host.ready(SOON).await?;
        eventually(&format!("the Service has replica {name}"), SOON, async || {
            let ready = self.service.ready();
            Ok(if ready.iter().any(|one| one == name) { Ok(()) } else { Err(format!("{ready:?}")) })
        })
        .await?;
        Ok(replica)
    }

    /// The same without a wait.
    ///
    /// # Errors
    /// If the program is missing.
    pub async fn begin(&self, name: &str) -> Result<Replica> {
        let address = free_address(Ipv4Addr::LOCALHOST)?;
        let mut options = self.stage.host_options(self.stage.kubeconfig()).await?;
        options.pod = Some(name.to_owned());
        let port = self.service.address().port();
        options.flags =
            vec![format!("--admission-bind={address}"), format!("--admission-port={port}")];
        let host = Host::start(&options)?;
        self.service.join(name, address, host.address());
        Ok(Replica { host, name: name.to_owned(), service: Arc::clone(&self.service) })
    }

    /// Makes a namespace whose requests the policies of [`policy`] review.
    ///
    /// # Errors
    /// If the API server refuses it.
    pub async fn reviewed_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {REVIEWED: "true"}}});
        self.admin.apply(&namespace.to_string()).await.map(drop)
    }

    /// Waits until the Module is ready and the API server treats requests without an answer so:
    /// `Fail` or `Ignore`.
    ///
    /// # Errors
    /// The status of the Module, if it is not so in time.
    pub async fn reviews_with(&self, module: &str, failure_policy: &str) -> Result<()> {
        self.ready(module).await?;
        let at = (Kind::MODULE, "", module);
        let what = format!("module {module} reviews with failurePolicy {failure_policy}");
        let holds = |object: &Value| object["status"]["policy"]["failurePolicy"] == failure_policy;
        self.admin.until(&what, SOON, at, holds).await.map(drop)
    }

    /// Runs kubectl with all rights, and with this input.
    ///
    /// # Errors
    /// If it cannot run or does not end; not if it fails.
    pub async fn kubectl(&self, arguments: &[&str], input: &str) -> Result<Printed> {
        let mut command = Command::from(Programs::find(&mut |_| ())?.command("kubectl")?);
        command.args(arguments).env("KUBECONFIG", self.plane.kubeconfig());
        command.env("KUBECACHEDIR", self.cache.path()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("running kubectl")?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        let output = timeout(END, child.wait_with_output()).await;
        let output = output.with_context(|| format!("kubectl {arguments:?} does not end"))??;
        Ok(Printed {
            is_success: output.status.success(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8(output.stderr)?,
        })
    }

    /// A member of the Secret with the certificates, decoded.
    ///
    /// # Errors
    /// If there is none.
    pub async fn certificates(&self, member: &str) -> Result<String> {
        let secret = self.admin.must_get(CERTIFICATES.0, CERTIFICATES.1, CERTIFICATES.2).await?;
        let text = secret["data"][member].as_str().with_context(|| format!("no {member}"))?;
        Ok(String::from_utf8(STANDARD.decode(text)?)?)
    }

    /// Replaces the member `state` of that Secret, which has the dates.
    ///
    /// # Errors
    /// If the API server refuses it.
    pub async fn set_certificate_state(&self, state: &Value) -> Result<()> {
        let data = json!({"data": {"state": STANDARD.encode(state.to_string())}});
        self.admin.edit(CERTIFICATES, &data).await.map(drop)
    }

    /// What the replicas report, by the name of the Lease.
    ///
    /// # Errors
    /// If a report is no JSON.
    pub async fn reports(&self) -> Result<Vec<Value>> {
        let mut reports = Vec::new();
        for lease in self.admin.list(Kind::LEASE, SERVICE.0).await? {
            if lease["metadata"]["labels"][REPLICA] == "true" {
                let text = lease["metadata"]["annotations"][REPLICA].as_str().unwrap_or_default();
                reports.push(serde_json::from_str(text).context("the report of a replica")?);
            }
        }
        Ok(reports)
    }
}

impl Replica {
    /// Its name, as that of its Pod.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Ends it as the kubelet ends a Pod: by SIGTERM, after which the Service learns that the Pod
    /// is going. Gives its log.
    ///
    /// # Errors
    /// If it does not end well.
    pub async fn stop(self) -> Result<Vec<String>> {
        let Self { host, name, service } = self;
        host.terminate();
        host.logged("host stopping", END).await?;
        service.leave(&name);
        let (status, log) = host.ended(END).await?;
        ensure!(status.success(), "{name}: {status}; its log:\n{}", log.join("\n"));
        Ok(log)
    }

    /// Ends it at once, as a loss of power does.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub async fn kill(self) -> Result<()> {
        self.service.leave(&self.name);
        self.host.kill().await
    }
}

/// `spec.policy` of a Module that reviews requests of namespaces with the label [`REVIEWED`], with
/// further members.
pub fn policy(extra: &Value) -> Value {
    let mut policy = json!({"namespaceSelector": {"matchLabels": {REVIEWED: "true"}}});
    for (member, value) in extra.as_object().into_iter().flatten() {
        policy[member] = value.clone();
    }
    policy
}
