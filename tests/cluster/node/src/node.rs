//! The programs of a node, and the order in which they start.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use innkeeper_controlplane::{GoProgram, NodeSide, Process, Programs, cache_folder};
use innkeeper_images::{Image, Registry, recipes};

use crate::settings::{self, CONTAINERD, REGISTRY_PORT, Settings};
use crate::{Machine, Packages, disk, machine};

/// How long each step may take. A cold machine with 2 cores that is compiling needs most of it.
const TIMEOUT: Duration = Duration::from_mins(4);
const POLL: Duration = Duration::from_millis(50);

/// What the images of a node, unpacked, and the files of its Pods need. A registry without space
/// closes the connection and does not say why.
const DISK: u64 = 1_500_000_000;

/// What differs between the nodes of one cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    /// The node's name, also in its certificate.
    pub(crate) name: &'static str,
    /// The addresses of its pods.
    pub(crate) pods: &'static str,
}

/// The node that each cluster has.
const FIRST: Identity = Identity { name: "node", pods: "10.244.0.0/16" };

/// All programs of a node: those of packages, unpacked where they are not installed, and the path
/// of our own, built first if it is not in the user's cache folder. `say` gets a line before.
///
/// # Errors
/// What is missing, by name, and what to do.
pub fn programs(say: &mut dyn FnMut(&str)) -> Result<(Packages, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        bail!(NEEDS_ROOT);
    }
    let packages = Packages::find(say)?;
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let what = "kubelet, kube-proxy, scheduler and DNS";
    let program = GoProgram { name: "node", what, source: &source, instead: "" };
    Ok((packages, program.find(say)?))
}

/// What to say to whom is not root.
pub(crate) const NEEDS_ROOT: &str = "a node needs root, to make namespaces, mounts and network \
    interfaces: run this as root, as in `sudo -E env PATH=$PATH cargo ...`";

/// A node, for as long as this value lives.
#[derive(Debug)]
pub struct Node {
    pub(crate) identity: Identity,
    pub(crate) processes: Vec<Process>,
    pub(crate) machine: Machine,
    pub(crate) packages: Packages,
    pub(crate) program: PathBuf,
    /// The folder of the control plane's state.
    pub(crate) plane: PathBuf,
}

impl Node {
    /// Under which path every node of a cluster sees one folder, which stands for a network file
    /// system: it survives a node.
    pub const SHARED: &str = machine::SHARED;

    /// Makes the machine in `folder`, which is there, and starts in it what does not need a control
    /// plane: containerd and the registry. The control plane's state is to lie in `folder` too.
    pub(crate) fn prepare(folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Self> {
        let (packages, program) = programs(say)?;
        disk::require(folder, DISK, "a node")?;
        let machine = Machine::start(FIRST.name, folder, &folder.join("shared"), &packages)?;
        let mut node = Self {
            identity: FIRST,
            processes: Vec::new(),
            machine,
            packages,
            program,
            plane: folder.to_owned(),
        };
        let plugins = node.machine.seen(&node.packages.cni()?);
        node.settings(&plugins, node.address()).write_all(folder)?;
        node.run_containerd()?;
        node.run_package("docker-registry", &["serve", &node.inside("registry.yaml")])?;
        Ok(node)
    }

    /// What the control plane must know of this node.
    pub(crate) fn side(&self) -> NodeSide {
        NodeSide {
            address: self.machine.host(),
            inside: self.machine.with_its_files(),
            folder: self.machine.seen(self.machine.folder()),
        }
    }

    /// Starts the rest, with the control plane running, and returns when the node is ready.
    pub(crate) fn join(&mut self, programs: &Programs) -> Result<()> {
        self.wait_for_socket(self.address())?;
        self.run_kubelet()?;
        let scheduler = format!("--kubeconfig={}", settings::kubeconfig("scheduler"));
        self.run("kube-scheduler", &[&scheduler, "--leader-elect=false"])?;
        self.run("coredns", &["-conf", &self.inside("Corefile")])?;
        let objects = self.plane.join("objects.yaml");
        kubectl(programs, &self.plane, &["apply", "--server-side", "-f"], Some(&objects))?;
        self.push(recipes::PAUSE, &recipes::pause(self.packages.sources())?)?;
        self.run_proxy(programs)?;
        self.until_node(programs, "ready", &["--for=condition=Ready"])?;
        let dns = SocketAddr::from((self.machine.address(), settings::DNS_READY_PORT));
        self.until("DNS answers", || {
            innkeeper_controlplane::answers(dns, "/ready").map_err(|why| format!("DNS: {why}"))
        })
    }

    /// Runs containerd, by the settings that are there.
    pub(crate) fn run_containerd(&mut self) -> Result<()> {
        self.run_package("containerd", &["--config", &self.inside("containerd.toml")])
    }

    /// Runs kubelet.
    pub(crate) fn run_kubelet(&mut self) -> Result<()> {
        self.run(
            "kubelet",
            &[
                &format!("--kubeconfig={}", settings::kubeconfig("kubelet")),
                &format!("--config={}", self.inside("kubelet.yaml")),
                "--root-dir=/var/lib/kubelet",
                "--cert-dir=/var/lib/kubelet/pki",
                &format!("--node-ip={}", self.machine.address()),
                &format!("--hostname-override={}", self.identity.name),
            ],
        )
    }

    /// Runs kube-proxy, once the node is registered: it asks for its node's address once, and takes
    /// itself for alone if there is none.
    pub(crate) fn run_proxy(&mut self, programs: &Programs) -> Result<()> {
        self.until_node(programs, "registered", &["--for=create"])?;
        self.run(
            "kube-proxy",
            &[
                &format!("--kubeconfig={}", settings::kubeconfig("proxy")),
                "--proxy-mode=nftables",
                &format!("--hostname-override={}", self.identity.name),
                &format!("--cluster-cidr={}", self.identity.pods),
                // These are settings of the host's kernel.
                "--conntrack-max-per-core=0",
                "--conntrack-tcp-timeout-established=0s",
                "--conntrack-tcp-timeout-close-wait=0s",
            ],
        )
    }

    /// Kills the kubelet and starts it again; what its pods run goes on meanwhile.
    ///
    /// # Errors
    /// If the kubelet cannot be run again.
    pub fn restart_kubelet(&mut self) -> Result<()> {
        let kubelet = self.processes.iter_mut().find(|process| process.name() == "kubelet");
        let kubelet = kubelet.context("the node has no kubelet")?;
        kubelet.restart(Duration::ZERO)?;
        Ok(())
    }

    /// The node's name.
    pub fn name(&self) -> &'static str {
        self.identity.name
    }

    /// The node's address, at which this machine reaches NodePorts.
    pub fn address(&self) -> Ipv4Addr {
        self.machine.address()
    }

    /// The registry that stands for all others, as this machine reaches it.
    pub fn registry(&self) -> Registry {
        registry(self.machine.address())
    }

    /// Puts an image into the registry, by the name by which pods ask for it.
    ///
    /// # Errors
    /// If the registry does not take the image.
    pub fn push(&self, name: &str, image: &Image) -> Result<()> {
        self.registry().push(name, image)
    }

    /// Puts all images into the registry that the sources' manifests ask for.
    ///
    /// # Errors
    /// If an image cannot be made of the installed packages, or the registry does not take it.
    pub fn push_all(&self) -> Result<()> {
        for (name, make) in recipes::RECIPES {
            let image = make(self.packages.sources()).with_context(|| format!("making {name}"))?;
            self.push(name, &image)?;
        }
        Ok(())
    }

    /// The programs of which images are made.
    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// A command that runs `program` of this machine with the node's network and files.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.machine.command(program);
        self.packages.set(&mut command);
        command
    }

    /// Checks that every process of the node runs.
    ///
    /// # Errors
    /// The first process that has ended, with the end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)?;
        Ok(())
    }

    /// Lets it run on when this value goes.
    pub(crate) fn leave(&mut self) {
        self.processes.clear();
        self.machine.leave();
    }

    /// The settings, with the address of the registry.
    pub(crate) fn settings<'a>(&self, plugins: &'a Path, registry: Ipv4Addr) -> Settings<'a> {
        Settings {
            plugins,
            address: self.machine.address(),
            registry,
            pods: self.identity.pods,
            control_group: self.machine.group().path(),
        }
    }

    /// A file of the machine's folder, as seen inside.
    fn inside(&self, name: &str) -> String {
        self.machine.seen(&self.machine.folder().join(name)).display().to_string()
    }

    /// Runs a program of a package inside.
    fn run_package(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let program = self.machine.seen(&self.packages.sources().program(name)?);
        self.spawn(name, self.machine.command(program), arguments)
    }

    /// Runs one of our program's parts inside.
    fn run(&mut self, name: &str, arguments: &[&str]) -> Result<()> {
        let mut command = self.machine.command(self.machine.seen(&self.program));
        command.arg(name);
        self.spawn(name, command, arguments)
    }

    fn spawn(&mut self, name: &str, mut command: Command, arguments: &[&str]) -> Result<()> {
        self.packages.set(&mut command);
        // Some write there what they remember of their users.
        command.env("HOME", "/var/lib").env_remove("KUBECONFIG");
        let process = Process::spawn(name, &mut command, arguments, self.machine.folder())?;
        self.processes.push(process);
        Ok(())
    }

    /// Waits until containerd listens, and the registry at its address.
    pub(crate) fn wait_for_socket(&mut self, registry: Ipv4Addr) -> Result<()> {
        // Below /run inside, where this process does not look: asked by who does.
        let registry = SocketAddr::from((registry, REGISTRY_PORT));
        self.until("the registry listens", || {
            TcpStream::connect_timeout(&registry, POLL).map(drop).map_err(|e| e.to_string())
        })?;
        let mut test = self.machine.command("test");
        test.args(["-S", CONTAINERD]);
        self.until("containerd listens", || match test.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(format!("there is no {CONTAINERD}")),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Waits until `ready`, the end of a process, or the bound.
    fn until(&mut self, what: &str, mut ready: impl FnMut() -> Result<(), String>) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            self.check()?;
            match ready() {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() > deadline => {
                    bail!(
                        "{what}: not so after {} s ({why}); the logs are in {}",
                        TIMEOUT.as_secs(),
                        self.machine.folder().display()
                    )
                }
                Err(_) => thread::sleep(POLL),
            }
        }
    }

    /// Waits until the API server says so of this node.
    pub(crate) fn until_node(
        &mut self,
        programs: &Programs,
        what: &str,
        condition: &[&str],
    ) -> Result<()> {
        let (plane, name) = (self.plane.clone(), self.identity.name);
        self.until(&format!("the node {name} is {what}"), || {
            let mut arguments = vec!["wait", "node", name, "--timeout=10s"];
            arguments.extend(condition);
            kubectl(programs, &plane, &arguments, None).map_err(|error| format!("{error:#}"))
        })
    }
}

/// The registry of the node at `address`.
pub(crate) fn registry(address: Ipv4Addr) -> Registry {
    Registry::at(&format!("{address}:{REGISTRY_PORT}"))
}

/// Runs kubectl with all rights.
fn kubectl(
    programs: &Programs,
    plane: &Path,
    arguments: &[&str],
    file: Option<&Path>,
) -> Result<()> {
    let mut command = programs.command("kubectl")?;
    command.args(arguments).args(file).env("KUBECONFIG", plane.join("kubeconfig"));
    // It keeps what it has learnt of API servers.
    let cache = cache_folder()?.join("kubectl");
    command.arg("--cache-dir").arg(cache);
    crate::packages::run(&mut command).context("asking the API server")
}
