//! The control plane itself: what is run with which flags, in which order.

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::port::free_address;
use crate::process::{self, Process};
use crate::{AuditLog, Error, Kubeconfig, Programs, Watchdog, audit, readiness};

/// How long each program may take until it is ready. A cold machine with 2 cores that is
/// compiling needs most of it.
const READY_TIMEOUT: Duration = Duration::from_mins(3);
/// How often readiness is asked.
const POLL: Duration = Duration::from_millis(50);
/// Starts before giving up, when somebody else takes a port between choice and use.
const ATTEMPTS: u32 = 3;
/// Names the kubeconfig of an existing cluster to be used instead of a new one.
const EXISTING: &str = "INNKEEPER_TEST_KUBECONFIG";

/// What a control plane should have.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Run kube-controller-manager: Deployments make replica sets and Pods, owners'
    /// children are collected.
    pub controller_manager: bool,
    /// More flags for kube-apiserver, as in `--feature-gates=...`.
    pub apiserver_flags: Vec<String>,
    /// More flags for kube-controller-manager.
    pub controller_manager_flags: Vec<String>,
    /// A node that this control plane is to have, started by somebody else.
    pub node: Option<NodeSide>,
}

/// What a control plane must know of the node that it is to have.
#[derive(Clone, Debug)]
pub struct NodeSide {
    /// The address of this machine that the node reaches: the API server listens there.
    pub address: Ipv4Addr,
    /// The command that runs another, given after it, with the files that the node sees: the
    /// controller manager makes the folders of volumes there.
    pub inside: Vec<String>,
    /// Under which path the control plane's folder is seen there.
    pub folder: PathBuf,
}

/// A control plane that lives as long as this value.
#[derive(Debug)]
pub struct ControlPlane {
    kubeconfig: PathBuf,
    // Order matters: processes end before the watchdog is dismissed, and that before
    // the folder goes.
    own: Option<Own>,
}

/// What there is when the control plane is ours, not an existing one.
#[derive(Debug)]
struct Own {
    /// In the order of the start.
    processes: Vec<Process>,
    watchdog: Option<Watchdog>,
    etcd: SocketAddr,
    server: SocketAddr,
    ca_pem: String,
    folder: PathBuf,
    temporary: Option<TempDir>,
}

impl ControlPlane {
    /// Starts one, and returns when the API server (and the controller manager, if wanted)
    /// says that it is ready; typically 4 s. With `INNKEEPER_TEST_KUBECONFIG` set, gives
    /// that cluster instead.
    ///
    /// # Errors
    /// What is missing, by name, and what to do; or the program that failed and the end of
    /// its log.
    pub fn start(options: &Options) -> Result<Self, Error> {
        // Tests show captured output only when they fail, so say it where a person waits.
        Self::start_and_tell(options, &mut |line| tell(line))
    }

    /// As [`Self::start`]; `say` gets a line before something takes long.
    pub fn start_and_tell(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        if let Some(path) = env::var_os(EXISTING).filter(|value| !value.is_empty()) {
            let kubeconfig = PathBuf::from(path);
            if !kubeconfig.is_file() {
                return Err(Error::Missing {
                    what: kubeconfig.display().to_string(),
                    hint: format!("{EXISTING} names it; correct the path or unset the variable"),
                });
            }
            return Ok(Self { kubeconfig, own: None });
        }
        let programs = Programs::find(say)?;
        let temporary = tempfile::Builder::new()
            .prefix("innkeeper-cluster-")
            .tempdir()
            .map_err(Error::system("making a temporary folder"))?;
        let mut plane = Self::start_in(temporary.path(), &programs, options)?;
        if let Some(own) = &mut plane.own {
            own.temporary = Some(temporary);
        }
        Ok(plane)
    }

    /// The same with its state in `folder`, which is there and stays at the end, except if
    /// this process is killed.
    pub fn start_in(folder: &Path, programs: &Programs, options: &Options) -> Result<Self, Error> {
        let watchdog = Watchdog::start(folder)?;
        let own = Own::start(programs, options, folder, Some(watchdog))?;
        Ok(Self { kubeconfig: folder.join("kubeconfig"), own: Some(own) })
    }

    /// Path of the admin's kubeconfig (group system:masters).
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Its processes' state: certificates, kubeconfigs, logs.
    ///
    /// # Errors
    /// If the control plane is an existing one.
    pub fn folder(&self) -> Result<&Path, Error> {
        match &self.own {
            Some(own) => Ok(&own.folder),
            None => Err(not_ours("the folder of its state")),
        }
    }

    /// The audit log.
    ///
    /// # Errors
    /// If the control plane is an existing one, whose log cannot be read.
    pub fn audit(&self) -> Result<AuditLog, Error> {
        match &self.own {
            Some(own) => Ok(AuditLog::at(&own.folder.join("audit.log"))),
            None => Err(not_ours("the audit log of the API server")),
        }
    }

    /// A kubeconfig without credentials for this API server, to add a token to.
    ///
    /// # Errors
    /// If the control plane is an existing one.
    pub fn anonymous_kubeconfig(&self) -> Result<Kubeconfig, Error> {
        match &self.own {
            Some(own) => Ok(Kubeconfig::new(&format!("https://{}", own.server), Some(&own.ca_pem))),
            None => Err(not_ours("the address of the API server")),
        }
    }

    /// Ends `etcd` or `kube-apiserver` and starts it again on its data, as an upgrade does; returns
    /// when it is ready.
    ///
    /// # Errors
    /// If the control plane is an existing one, or has no such program; if it does not come back.
    pub fn restart(&mut self, program: &str) -> Result<(), Error> {
        const END: Duration = Duration::from_secs(20);
        let Some(own) = &mut self.own else { return Err(not_ours("restarting a program")) };
        let found = own.processes.iter_mut().find(|process| process.name() == program);
        let Some(process) = found else {
            return Err(Error::Missing {
                what: format!("a program {program} of the control plane"),
                hint: "there are etcd and kube-apiserver".to_owned(),
            });
        };
        if let Some(watchdog) = &mut own.watchdog {
            watchdog.release(process.id())?;
        }
        process.restart(END)?;
        if let Some(watchdog) = &mut own.watchdog {
            watchdog.guard(process.id())?;
        }
        let (ca_pem, etcd) = (&own.ca_pem, own.etcd);
        match program {
            "etcd" => wait(process, etcd, |address| readiness::answers(address, "/readyz")),
            _ => wait(process, own.server, |address| readiness::get(address, ca_pem, "/readyz")),
        }
    }

    /// `Ok` while every process runs; else which ended, and the end of its log.
    pub fn check(&mut self) -> Result<(), Error> {
        match &mut self.own {
            Some(own) => own.processes.iter_mut().try_for_each(Process::check),
            None => Ok(()),
        }
    }
}

/// Writes a line to standard error, also inside a test whose output is captured.
fn tell(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn not_ours(what: &str) -> Error {
    Error::Missing {
        what: what.to_owned(),
        hint: format!("this test needs a control plane of its own; unset {EXISTING}"),
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for process in self.processes.iter_mut().rev() {
            process.kill();
        }
        self.watchdog = None;
        if let Some(folder) = self.temporary.take() {
            // Nobody to tell, and the system cleans its temporary folder.
            let _ = folder.close();
        }
    }
}

impl Own {
    fn start(
        programs: &Programs,
        options: &Options,
        folder: &Path,
        watchdog: Option<Watchdog>,
    ) -> Result<Self, Error> {
        let address = options.node.as_ref().map_or(Ipv4Addr::LOCALHOST, |node| node.address);
        let certificates = Certificates::make(folder, address)?;
        let mut own = Self {
            processes: Vec::new(),
            watchdog,
            etcd: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            server: SocketAddr::from((address, 0)),
            ca_pem: certificates.ca_pem.clone(),
            folder: folder.to_owned(),
            temporary: None,
        };
        let policy = folder.join("audit-policy.json");
        fs::write(&policy, audit::POLICY).map_err(Error::file(&policy))?;

        let etcd = own.run_on_free_port(
            programs,
            ("etcd", Ipv4Addr::LOCALHOST),
            &[],
            |address| etcd_flags(folder, address.port()),
            |address| readiness::answers(address, "/readyz"),
        )?;
        own.etcd = etcd;
        let ca_pem = certificates.ca_pem.clone();
        own.server = own.run_on_free_port(
            programs,
            ("kube-apiserver", address),
            &[],
            |address| {
                let mut flags = apiserver_flags(folder, &certificates, &policy, etcd, address);
                flags.extend(node_flags(&certificates, options.node.is_some()));
                flags.extend(options.apiserver_flags.iter().cloned());
                flags
            },
            |address| readiness::get(address, &ca_pem, "/readyz"),
        )?;
        let url = format!("https://{}", own.server);
        let kubeconfig = Kubeconfig::new(&url, Some(&certificates.ca_pem));
        for (name, certificate) in &certificates.clients {
            let name = if *name == "admin" { "kubeconfig" } else { &format!("{name}.kubeconfig") };
            kubeconfig.clone().with_certificate(certificate).write(&folder.join(name))?;
        }

        if options.controller_manager {
            let (inside, seen) = match &options.node {
                Some(node) => (node.inside.as_slice(), node.folder.as_path()),
                None => (&[][..], folder),
            };
            own.run_on_free_port(
                programs,
                ("kube-controller-manager", Ipv4Addr::LOCALHOST),
                inside,
                |address| {
                    let mut flags = controller_manager_flags(seen, address.port());
                    flags.extend(options.controller_manager_flags.iter().cloned());
                    if options.node.is_some() {
                        flags.push("--enable-hostpath-provisioner".to_owned());
                    }
                    flags
                },
                // It serves /healthz under a certificate of its own making, so that
                // listening is all that can be asked for.
                |address| {
                    std::net::TcpStream::connect(address).map(drop).map_err(|e| e.to_string())
                },
            )?;
        }
        Ok(own)
    }

    /// Runs one program by the command `inside`, if there is one, with another port if its
    /// own was taken meanwhile, until `ready` says so. Returns where it listens.
    fn run_on_free_port(
        &mut self,
        programs: &Programs,
        (name, ip): (&str, Ipv4Addr),
        inside: &[String],
        flags: impl Fn(SocketAddr) -> Vec<String>,
        ready: impl Fn(SocketAddr) -> Result<(), String>,
    ) -> Result<SocketAddr, Error> {
        for attempt in 1.. {
            let address = free_address(ip).map_err(Error::system("looking for a free port"))?;
            let mut command = process::by(inside, programs.command(name)?);
            let process = Process::spawn(name, &mut command, flags(address), &self.folder)?;
            if let Some(watchdog) = &mut self.watchdog {
                watchdog.guard(process.id())?;
            }
            self.processes.push(process);
            let Some(process) = self.processes.last_mut() else { continue };
            match wait(process, address, &ready) {
                Ok(()) => return Ok(address),
                Err(_) if attempt < ATTEMPTS && process.lost_its_port() => {
                    process.kill();
                    self.processes.pop();
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Missing { what: "a free port".to_owned(), hint: "try again".to_owned() })
    }
}

/// Waits until `ready`, the end of `process`, or the bound.
fn wait(
    process: &mut Process,
    address: SocketAddr,
    ready: impl Fn(SocketAddr) -> Result<(), String>,
) -> Result<(), Error> {
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        process.check()?;
        match ready(address) {
            Ok(()) => return Ok(()),
            Err(why) if Instant::now() > deadline => {
                let seconds = READY_TIMEOUT.as_secs();
                return Err(process.error(format!("is not ready after {seconds} s ({why})")));
            }
            Err(_) => thread::sleep(POLL),
        }
    }
}

fn etcd_flags(folder: &Path, port: u16) -> Vec<String> {
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{port}"),
        format!("--advertise-client-urls=http://127.0.0.1:{port}"),
        // Peers there are none, but etcd listens for them all the same.
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

fn apiserver_flags(
    folder: &Path,
    certificates: &Certificates,
    policy: &Path,
    etcd: SocketAddr,
    own: SocketAddr,
) -> Vec<String> {
    let path = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![
        format!("--etcd-servers=http://{etcd}"),
        format!("--secure-port={}", own.port()),
        format!("--bind-address={}", own.ip()),
        format!("--advertise-address={}", own.ip()),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--allow-privileged".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        path("service-account-key-file", &certificates.service_account_public_key),
        path("service-account-signing-key-file", &certificates.service_account_key),
        path("tls-cert-file", &certificates.server),
        path("tls-private-key-file", &certificates.server_key),
        path("client-ca-file", &certificates.ca),
        path("cert-dir", folder),
        path("audit-policy-file", policy),
        path("audit-log-path", &folder.join("audit.log")),
        // One file, or counting would miss what was rotated away.
        "--audit-log-maxsize=0".to_owned(),
    ]
}

/// What the API server needs in addition to talk with kubelets, and for pods to talk with it.
fn node_flags(certificates: &Certificates, has_node: bool) -> Vec<String> {
    if !has_node {
        // An endpoint on this machine's loopback would be refused.
        return vec!["--endpoint-reconciler-type=none".to_owned()];
    }
    let (certificate, key) = &certificates.kubelet_client;
    vec![
        "--endpoint-reconciler-type=lease".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--kubelet-client-certificate={}", certificate.display()),
        format!("--kubelet-client-key={}", key.display()),
    ]
}

/// `folder` as the controller manager sees it.
fn controller_manager_flags(folder: &Path, port: u16) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", path("controller-manager.kubeconfig")),
        format!("--service-account-private-key-file={}", path("sa.key")),
        format!("--root-ca-file={}", path("ca.crt")),
        format!("--secure-port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--use-service-account-credentials".to_owned(),
        "--leader-elect=false".to_owned(),
    ]
}

/// A control plane that outlives the process that started it; its state lies in a
/// folder that names it.
#[derive(Debug)]
pub struct Background {
    folder: PathBuf,
}

impl Background {
    /// The user's one: `cluster` in Innkeeper's cache folder.
    pub fn of_user() -> Result<Self, Error> {
        Ok(Self { folder: crate::programs::cache_folder()?.join("cluster") })
    }

    /// The one whose state lies in `folder`.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Where its state lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of the admin's kubeconfig, which exists while the control plane is up.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// Whether all its processes run.
    pub fn is_up(&self) -> bool {
        let pids = self.pids();
        !pids.is_empty() && pids.iter().all(|pid| self.is_ours(*pid))
    }

    /// Starts it, or leaves it if it is up. What is left of a broken one is ended first.
    pub fn up(&self, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        if self.is_up() {
            return Ok(());
        }
        self.down()?;
        self.start(options, say)
    }

    /// Starts it in its folder, next to what already lies there.
    pub fn start(&self, options: &Options, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let programs = Programs::find(say)?;
        fs::create_dir_all(&self.folder).map_err(Error::file(&self.folder))?;
        let watchdog = Watchdog::start(&self.folder)?;
        let mut own = Own::start(&programs, options, &self.folder, Some(watchdog))?;
        let pids: Vec<String> =
            own.processes.iter().map(|process| process.id().to_string()).collect();
        let path = self.folder.join("pids");
        fs::write(&path, pids.join("\n")).map_err(Error::file(&path))?;
        // From here on it is on its own.
        own.processes.clear();
        Ok(())
    }

    /// Ends its processes, each by its pid, and removes its folder. Nothing happens if
    /// there is none.
    pub fn down(&self) -> Result<(), Error> {
        let mut pids = self.pids();
        pids.reverse();
        for pid in pids {
            if self.is_ours(pid) {
                process::end(pid, || self.is_ours(pid));
            }
        }
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::file(&self.folder)(error))
            }
            _ => Ok(()),
        }
    }

    fn pids(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Whether `pid` is still the process that was started: its flags name our folder.
    fn is_ours(&self, pid: u32) -> bool {
        let folder = self.folder.display().to_string();
        process::command_line(pid).is_some_and(|line| line.contains(&folder))
    }
}
