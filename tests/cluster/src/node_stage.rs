//! A stage on which pods run, and Innkeeper with them.

use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use innkeeper_controlplane::{ControlPlane, Options, Programs};
use innkeeper_images::recipes;
use innkeeper_node::{Cluster, Node};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::stage::{SOON, operator_program, prints};
use crate::user::{GUESTS, UserFolder};
use crate::{Kind, PodClient, Stage, condition, eventually};

/// The label of the host's pods.
const HOSTS: (&str, &str) = ("app.kubernetes.io/name", "innkeeper");
/// What says which of them works.
const LEASE: (Kind, &str, &str) = (Kind::LEASE, "innkeeper-system", "innkeeper");
/// Six components are compiled by two hosts, while all the rest starts too.
const COMPILED: Duration = Duration::from_mins(8);

/// A control plane, a real node, and on it Innkeeper with the guests of this repository, installed
/// by deploy/ with the commands of docs/install.md. Needs root.
pub struct NodeStage {
    // In this order they go.
    second: Option<Node>,
    node: Node,
    stage: Stage,
    _cluster: TempDir,
    user: UserFolder,
    installed: Vec<(&'static str, String)>,
}

impl Deref for NodeStage {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl NodeStage {
    /// A stage of its own, with the images that the sources' manifests name, two hosts, of which
    /// one works, and the guests serving.
    ///
    /// # Errors
    /// What is missing for a node, by name.
    pub async fn new() -> Result<Self> {
        Self::with(Options::default()).await
    }

    /// The same on a control plane with these options.
    ///
    /// # Errors
    /// What is missing for a node, by name.
    pub async fn with(options: Options) -> Result<Self> {
        let start = move || Cluster::start(&options, &mut |line| crate::tell(line));
        let (node, plane, cluster) = tokio::task::spawn_blocking(start).await??.into_parts();
        let image = recipes::innkeeper(node.packages().sources(), &operator_program()?)?;
        node.push("innkeeper:latest", &image)?;
        let user = UserFolder::new()?;
        // As docs/install.md says it.
        let mut installed = Vec::new();
        let apply = "kubectl apply -k deploy";
        installed.push((apply, prints(user.shell(&plane, apply)).await?));
        let stage = Stage::installed(plane).await?;
        let crd = stage.admin.must_get(Kind::CRD, "", "modules.innkeeper.dev").await?;
        stage.admin.until_established(&crd).await?;
        let guests = "kubectl apply --server-side -k deploy/guests";
        installed.push((guests, prints(user.shell(&stage.plane, guests)).await?));
        let stage = Self { second: None, node, stage, _cluster: cluster, user, installed };
        stage.until_hosts(2).await?;
        for guest in GUESTS {
            stage.ready_within(guest, COMPILED).await?;
        }
        let account = (Kind::SERVICE_ACCOUNT, "default", "default");
        stage.admin.until("the namespace default has its account", SOON, account, |_| true).await?;
        Ok(stage)
    }

    /// The commands by which Innkeeper was installed, and what they printed.
    pub fn installed(&self) -> &[(&'static str, String)] {
        &self.installed
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The node, to do something to it.
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }

    /// Starts a second node, and waits until it is ready.
    ///
    /// # Errors
    /// If a program of the node does not start.
    pub fn add_node(&mut self) -> Result<&Node> {
        let node = tokio::task::block_in_place(|| self.node.second())?;
        Ok(self.second.insert(node))
    }

    /// Ends the second node at once, as by a loss of power, and its disk with it.
    ///
    /// # Errors
    /// If there is no second node, or a process of it does not end.
    pub fn lose_node(&mut self) -> Result<()> {
        let node = self.second.take().context("there is no second node")?;
        tokio::task::block_in_place(|| node.lose())
    }

    /// The control plane, to do something to it.
    pub fn plane_mut(&mut self) -> &mut ControlPlane {
        &mut self.stage.plane
    }

    /// A pod that sleeps, with busybox, from which a test asks others. Waits until it runs.
    ///
    /// # Errors
    /// If the pod is not ready in time.
    pub async fn client(&self, namespace: &str) -> Result<PodClient> {
        self.client_of(namespace, "busybox").await
    }

    /// Runs a pod with an image that has `sleep`, from which a test asks others. Waits until it
    /// runs.
    ///
    /// # Errors
    /// If the pod is not ready in time.
    pub async fn client_of(&self, namespace: &str, image: &str) -> Result<PodClient> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "client", "namespace": namespace},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "client", "image": image, "command": ["sleep", "100000"]}]}});
        self.admin.apply(&pod.to_string()).await?;
        self.until_ready(namespace, "client").await?;
        Ok(PodClient::new(namespace, self.kubectl()?))
    }

    /// Waits until a pod is ready.
    ///
    /// # Errors
    /// If the pod is not ready in time.
    pub async fn until_ready(&self, namespace: &str, pod: &str) -> Result<Value> {
        let at = (Kind::POD, namespace, pod);
        let what = format!("pod {pod} is ready");
        self.admin.until(&what, 2 * SOON, at, |pod| condition(pod, "Ready") == Some("True")).await
    }

    /// Waits until there are `count` pods with a label, none going, and all are ready.
    ///
    /// # Errors
    /// If there is another number of ready pods after the time.
    pub async fn until_pods_ready(
        &self,
        namespace: &str,
        label: (&str, &str),
        count: usize,
    ) -> Result<Vec<Value>> {
        let what = format!("{count} pods {}={} are ready", label.0, label.1);
        eventually(&what, 2 * SOON, async || {
            let pods = crate::kubelet::pods(&self.admin, namespace, label).await?;
            let is_ready = |pod: &&Value| condition(pod, "Ready") == Some("True");
            let ready = pods.iter().filter(is_ready).count();
            Ok(if pods.len() == count && ready == count {
                Ok(pods)
            } else {
                let states: Vec<_> = pods.iter().map(|pod| pod["status"].to_string()).collect();
                Err(format!("of {} are {ready}: {}", pods.len(), states.join("; ")))
            })
        })
        .await
    }

    /// The pod that holds the Lease, once there is one.
    ///
    /// # Errors
    /// If no pod holds the Lease in time.
    pub async fn leader(&self) -> Result<String> {
        let is_held = |lease: &Value| lease["spec"]["holderIdentity"].is_string();
        let lease = self.admin.until("somebody leads", SOON, LEASE, is_held).await?;
        Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until another pod than `leader` holds the Lease; gives the Lease.
    ///
    /// # Errors
    /// If no other pod holds the Lease in time.
    pub async fn until_another_leads(&self, leader: &str) -> Result<Value> {
        let is_another = |lease: &Value| {
            lease["spec"]["holderIdentity"].as_str().is_some_and(|holder| holder != leader)
        };
        self.admin.until("another host leads", SOON, LEASE, is_another).await
    }

    /// Waits until so many hosts are ready.
    ///
    /// # Errors
    /// If there is another number of ready hosts after the time.
    pub async fn until_hosts(&self, count: usize) -> Result<Vec<Value>> {
        self.until_pods_ready("innkeeper-system", HOSTS, count).await
    }

    /// Scales the host to `count` pods, and waits until they are ready.
    ///
    /// # Errors
    /// If kubectl fails, or there is another number of ready hosts after the time.
    pub async fn scale_hosts(&self, count: usize) -> Result<()> {
        let replicas = format!("--replicas={count}");
        let deployment = ["deployment", "innkeeper", "--namespace", "innkeeper-system"];
        self.kubectl_prints(&[&["scale", &replicas], &deployment[..]].concat()).await?;
        self.until_hosts(count).await?;
        if count > 0 {
            return Ok(());
        }
        eventually("no host is left", 2 * SOON, async || {
            let pods = self.admin.list(Kind::POD, "innkeeper-system").await?;
            Ok(if pods.is_empty() { Ok(()) } else { Err(format!("{} are left", pods.len())) })
        })
        .await
    }

    /// A metric of the hosts, all together, as `client` reads it from their pods. `labels` choose
    /// among its label sets.
    ///
    /// # Errors
    /// If the client gets no answer of a host.
    pub async fn metric(&self, client: &PodClient, name: &str, labels: &[&str]) -> Result<f64> {
        let mut sum = 0.0;
        for pod in crate::kubelet::pods(&self.admin, "innkeeper-system", HOSTS).await? {
            let address = pod["status"]["podIP"].as_str().unwrap_or_default();
            let page = client.page(&format!("http://{address}:8080/metrics")).await?;
            sum += crate::host::metric(&page, name, labels).unwrap_or_default();
        }
        Ok(sum)
    }

    /// The port of the node at which a Service of type NodePort is reached.
    ///
    /// # Errors
    /// If there is no such Service, or it has no NodePort.
    pub async fn node_port(&self, namespace: &str, service: &str) -> Result<u16> {
        let service = self.admin.must_get(Kind::SERVICE, namespace, service).await?;
        let port = service["spec"]["ports"][0]["nodePort"].as_u64();
        let port = port.ok_or_else(|| anyhow!("no NodePort in {service:#}"))?;
        Ok(u16::try_from(port)?)
    }

    /// What kubectl prints for these arguments, with all rights.
    ///
    /// # Errors
    /// If kubectl fails: with what it printed.
    pub async fn kubectl_prints(&self, arguments: &[&str]) -> Result<String> {
        let mut kubectl = self.kubectl()?;
        kubectl.args(arguments);
        prints(kubectl).await
    }

    /// A command line as a user types it, with kubectl and innkeeper, in a folder that has
    /// `deploy`, with all rights.
    pub fn shell(&self, line: &str) -> Command {
        self.user.shell(&self.plane, line)
    }

    /// Runs a command line as the user does; gives what it prints.
    ///
    /// # Errors
    /// If the command fails: with what it printed.
    pub async fn run(&self, line: &str) -> Result<String> {
        prints(self.shell(line)).await
    }

    /// A script that such command lines can use as a program.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_program(&self, name: &str, script: &str) -> Result<()> {
        self.user.add_program(name, script)
    }

    /// Where [`Self::shell`] works.
    pub fn folder(&self) -> &Path {
        self.user.path()
    }

    fn kubectl(&self) -> Result<Command> {
        kubectl(&self.plane)
    }
}

impl Drop for NodeStage {
    /// Prints the end of the hosts' logs, which a test harness shows if the test has failed.
    fn drop(&mut self) {
        let Ok(mut kubectl) = self.kubectl() else { return };
        let label = format!("{}={}", HOSTS.0, HOSTS.1);
        kubectl.args([
            "logs",
            "--namespace",
            "innkeeper-system",
            "--prefix",
            "--tail=30",
            "-l",
            &label,
        ]);
        kubectl.arg("--request-timeout=5s");
        if let Ok(output) = kubectl.output() {
            #[allow(clippy::print_stdout, reason = "a harness keeps it until the test has failed")]
            {
                println!("{}", String::from_utf8_lossy(&output.stdout));
            }
        }
    }
}

fn kubectl(plane: &ControlPlane) -> Result<Command> {
    let mut command = Programs::find(&mut |_| ())?.command("kubectl")?;
    command.env("KUBECONFIG", plane.kubeconfig()).stdin(Stdio::null());
    Ok(command)
}
