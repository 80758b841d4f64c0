//! The running programs of a control plane, in the order in which they start.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::flags::{apiserver_flags, controller_manager_flags, etcd_flags, node_flags};
use crate::options::Options;
use crate::port::free_address;
use crate::process::{self, Process};
use crate::{Error, Kubeconfig, Programs, Watchdog, audit, readiness};

/// How long each program may take until it is ready. A cold machine with 2 cores that is
/// compiling needs most of it.
const READY_TIMEOUT: Duration = Duration::from_mins(3);

/// How often readiness is asked.
const POLL: Duration = Duration::from_millis(50);

/// Starts before giving up, when somebody else takes a port between choice and use.
const ATTEMPTS: u32 = 3;

/// What there is when the control plane is ours, not an existing one.
#[derive(Debug)]
pub(crate) struct Own {
    /// In the order of the start.
    pub(crate) processes: Vec<Process>,
    pub(crate) watchdog: Option<Watchdog>,
    pub(crate) etcd: SocketAddr,
    pub(crate) server: SocketAddr,
    pub(crate) ca_pem: String,
    pub(crate) folder: PathBuf,
    pub(crate) temporary: Option<TempDir>,
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
    pub(crate) fn start(
        programs: &Programs,
        options: &Options,
        folder: &Path,
        watchdog: Option<Watchdog>,
    ) -> Result<Self, Error> {
        let certificates = Certificates::make(folder, server_ip(options))?;
        let mut own = Self {
            processes: Vec::new(),
            watchdog,
            etcd: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            server: SocketAddr::from((server_ip(options), 0)),
            ca_pem: certificates.ca_pem.clone(),
            folder: folder.to_owned(),
            temporary: None,
        };
        let policy = folder.join("audit-policy.json");
        fs::write(&policy, audit::POLICY).map_err(Error::file(&policy))?;

        own.start_etcd(programs)?;
        own.start_apiserver(programs, options, &certificates, &policy)?;
        own.write_kubeconfigs(&certificates)?;
        if options.controller_manager {
            own.start_controller_manager(programs, options)?;
        }
        Ok(own)
    }

    fn start_etcd(&mut self, programs: &Programs) -> Result<(), Error> {
        let folder = self.folder.clone();
        self.etcd = self.run_on_free_port(
            programs,
            ("etcd", Ipv4Addr::LOCALHOST),
            &[],
            |address| etcd_flags(&folder, address.port()),
            |address| readiness::answers(address, "/readyz"),
        )?;
        Ok(())
    }

    fn start_apiserver(
        &mut self,
        programs: &Programs,
        options: &Options,
        certificates: &Certificates,
        policy: &Path,
    ) -> Result<(), Error> {
        let (folder, etcd) = (self.folder.clone(), self.etcd);
        self.server = self.run_on_free_port(
            programs,
            ("kube-apiserver", server_ip(options)),
            &[],
            |address| {
                let mut flags = apiserver_flags(&folder, certificates, policy, etcd, address);
                flags.extend(node_flags(certificates, options.node.is_some()));
                flags.extend(options.apiserver_flags.iter().cloned());
                flags
            },
            |address| readiness::get(address, &certificates.ca_pem, "/readyz"),
        )?;
        Ok(())
    }

    /// Writes a kubeconfig for the admin and for each component.
    fn write_kubeconfigs(&self, certificates: &Certificates) -> Result<(), Error> {
        let url = format!("https://{}", self.server);
        let kubeconfig = Kubeconfig::new(&url, Some(&certificates.ca_pem));
        for (name, certificate) in &certificates.clients {
            let name = if *name == "admin" { "kubeconfig" } else { &format!("{name}.kubeconfig") };
            kubeconfig.clone().with_certificate(certificate).write(&self.folder.join(name))?;
        }
        Ok(())
    }

    fn start_controller_manager(
        &mut self,
        programs: &Programs,
        options: &Options,
    ) -> Result<(), Error> {
        let folder = self.folder.clone();
        let (inside, seen) = match &options.node {
            Some(node) => (node.inside.as_slice(), node.folder.as_path()),
            None => (&[][..], &*folder),
        };
        self.run_on_free_port(
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
            // It serves /healthz under a certificate of its own making, so that listening is all
            // that can be asked for.
            |address| std::net::TcpStream::connect(address).map(drop).map_err(|e| e.to_string()),
        )?;
        Ok(())
    }

    /// Runs one program by the command `inside`, if there is one, with another port if its
    /// own was taken meanwhile, until `ready` says so. Returns where it listens.
    pub(crate) fn run_on_free_port(
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

/// Where the API server listens: at the node's address, if there is a node.
fn server_ip(options: &Options) -> Ipv4Addr {
    options.node.as_ref().map_or(Ipv4Addr::LOCALHOST, |node| node.address)
}

/// Waits until `ready`, the end of `process`, or the bound.
pub(crate) fn wait(
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
