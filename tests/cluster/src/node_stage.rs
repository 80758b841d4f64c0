//! A stage on which pods run.

use std::ops::Deref;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use innkeeper_controlplane::{Options, Programs};
use innkeeper_node::{Cluster, Node};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::stage::SOON;
use crate::{Host, Kind, Stage, condition, eventually};

/// A control plane with the host's CRD and rights, and a real node. Needs root.
pub struct NodeStage {
    // In this order they go.
    node: Node,
    stage: Stage,
    _folder: TempDir,
}

impl Deref for NodeStage {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

impl NodeStage {
    /// A stage of its own, with the images that the sources' manifests name.
    ///
    /// # Errors
    /// What is missing for a node, by name.
    pub async fn new() -> Result<Self> {
        let start = || Cluster::start(&Options::default(), &mut |line| crate::tell(line));
        let cluster = tokio::task::spawn_blocking(start).await??;
        let (node, plane, folder) = cluster.into_parts();
        Ok(Self { node, stage: Stage::on(plane).await?, _folder: folder })
    }

    /// A stage where these guests serve as modules of the same name, and a namespace. `groups` are
    /// those of their definitions.
    pub async fn serving(modules: &[(&str, &str)]) -> Result<(Self, Host, String)> {
        let stage = Self::new().await?;
        for (module, group) in modules {
            stage.module(module, module, &json!({ "crdGroups": [group] })).await?;
        }
        let host = stage.host().await?;
        for (module, _) in modules {
            stage.ready(module).await?;
        }
        let namespace = stage.admin.namespace("stage").await?;
        Ok((stage, host, namespace))
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// A pod that sleeps, with busybox, from which a test asks others. Waits until it runs.
    pub async fn client(&self, namespace: &str) -> Result<Client> {
        self.client_of(namespace, "busybox").await
    }

    /// The same of an image that has `sleep`.
    pub async fn client_of(&self, namespace: &str, image: &str) -> Result<Client> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "client", "namespace": namespace},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "client", "image": image, "command": ["sleep", "100000"]}]}});
        self.admin.apply(&pod.to_string()).await?;
        self.until_ready(namespace, "client").await?;
        Ok(Client { namespace: namespace.to_owned(), kubectl: self.kubectl()? })
    }

    /// Waits until a pod is ready.
    pub async fn until_ready(&self, namespace: &str, pod: &str) -> Result<Value> {
        let at = (Kind::POD, namespace, pod);
        let what = format!("pod {pod} is ready");
        self.admin.until(&what, 2 * SOON, at, |pod| condition(pod, "Ready") == Some("True")).await
    }

    /// Waits until there are `count` pods with a label, none going, and all are ready.
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

    /// The port of the node at which a Service of type NodePort is reached.
    pub async fn node_port(&self, namespace: &str, service: &str) -> Result<u16> {
        let service = self.admin.must_get(Kind::SERVICE, namespace, service).await?;
        let port = service["spec"]["ports"][0]["nodePort"].as_u64();
        let port = port.ok_or_else(|| anyhow!("no NodePort in {service:#}"))?;
        Ok(u16::try_from(port)?)
    }

    /// What kubectl prints for these arguments, with all rights.
    pub async fn kubectl_prints(&self, arguments: &[&str]) -> Result<String> {
        let mut kubectl = self.kubectl()?;
        kubectl.args(arguments);
        prints(kubectl).await
    }

    fn kubectl(&self) -> Result<std::process::Command> {
        let mut command = Programs::find(&mut |_| ())?.command("kubectl")?;
        command.env("KUBECONFIG", self.plane.kubeconfig()).stdin(Stdio::null());
        Ok(command)
    }
}

/// A pod from which a test asks others.
pub struct Client {
    namespace: String,
    kubectl: std::process::Command,
}

impl Client {
    /// What a command prints that runs in the pod.
    ///
    /// # Errors
    /// What it said, if it fails.
    pub async fn run(&self, command: &[&str]) -> Result<String> {
        prints(self.command(command)).await
    }

    /// A page, by the name that cluster DNS knows.
    pub async fn page(&self, url: &str) -> Result<String> {
        // Not wget's own bound: Debian's static busybox crashes on it.
        self.run(&["timeout", "5", "wget", "-q", "-O", "-", url]).await
    }

    /// Waits until a page has this text.
    pub async fn until_page(&self, url: &str, text: &str) -> Result<()> {
        eventually(&format!("{url} says {text:?}"), SOON, async || {
            Ok(match self.page(url).await {
                Ok(page) if page.trim() == text => Ok(()),
                Ok(page) => Err(page),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    }

    /// The command that runs another in the pod.
    pub fn command(&self, command: &[&str]) -> std::process::Command {
        let mut kubectl = std::process::Command::new(self.kubectl.get_program());
        kubectl.args(self.kubectl.get_args());
        for (name, value) in self.kubectl.get_envs() {
            if let Some(value) = value {
                kubectl.env(name, value);
            }
        }
        kubectl.args(["exec", "--namespace", &self.namespace, "client", "--"]).args(command);
        kubectl
    }
}

/// How long a command of a test may run.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

async fn prints(command: std::process::Command) -> Result<String> {
    let line = format!("{command:?}");
    let mut command = Command::from(command);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(COMMAND_TIMEOUT, output)
        .await
        .with_context(|| format!("{line} does not end"))?
        .with_context(|| format!("running {line}"))?;
    if !output.status.success() {
        bail!("{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
