//! The control plane itself: what is run with which flags, in which order.

use std::env;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::options::Options;
use crate::process::Process;
use crate::running::{Own, wait};
use crate::{AuditLog, Error, Kubeconfig, Programs, Watchdog, readiness, state_folder};

/// Names the kubeconfig of an existing cluster to be used instead of a new one.
const EXISTING: &str = "INNKEEPER_TEST_KUBECONFIG";

/// A control plane that lives as long as this value.
#[derive(Debug)]
pub struct ControlPlane {
    kubeconfig: PathBuf,
    // Order matters: processes end before the watchdog is dismissed, and that before
    // the folder goes.
    own: Option<Own>,
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
    ///
    /// # Errors
    /// If the kubeconfig of an existing cluster is not there, a program is missing and cannot be
    /// built, or one does not get ready.
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
        let temporary = state_folder::temporary()?;
        let mut plane = Self::start_in(temporary.path(), &programs, options)?;
        if let Some(own) = &mut plane.own {
            own.temporary = Some(temporary);
        }
        Ok(plane)
    }

    /// The same with its state in `folder`, which is there and stays at the end, except if
    /// this process is killed.
    ///
    /// # Errors
    /// If a program is missing, a file cannot be written, or a program does not get ready.
    pub fn start_in(folder: &Path, programs: &Programs, options: &Options) -> Result<Self, Error> {
        let watchdog = Watchdog::start(folder)?;
        let own = Own::start(programs, options, folder, Some(watchdog))?;
        Ok(Self { kubeconfig: folder.join("kubeconfig"), own: Some(own) })
    }

    /// An existing cluster with the kubeconfig at `path`, of which nothing is started or ended.
    pub fn existing(path: &Path) -> Self {
        Self { kubeconfig: path.to_owned(), own: None }
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

    /// Where etcd answers, without TLS: for objects that no API server of this version would write.
    ///
    /// # Errors
    /// If the control plane is an existing one.
    pub fn etcd(&self) -> Result<SocketAddr, Error> {
        match &self.own {
            Some(own) => Ok(own.etcd),
            None => Err(not_ours("the address of etcd")),
        }
    }

    /// The process id of `etcd`, `kube-apiserver` or `kube-controller-manager`, if it is one of its
    /// own processes.
    pub fn pid(&self, program: &str) -> Option<u32> {
        let processes = &self.own.as_ref()?.processes;
        processes.iter().find(|process| process.name() == program).map(Process::id)
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
        self.restart_after(program, |_| Ok(()))
    }

    /// The same, with a change of the files in the folder of the control plane while the program
    /// does not run.
    ///
    /// # Errors
    /// Also if `change` fails.
    pub fn restart_after(
        &mut self,
        program: &str,
        change: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), Error> {
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
        process.end(END);
        change(&own.folder).map_err(Error::file(&own.folder))?;
        process.start_again()?;
        if let Some(watchdog) = &mut own.watchdog {
            watchdog.guard(process.id())?;
        }
        let (ca_pem, etcd) = (&own.ca_pem, own.etcd);
        match program {
            "etcd" => wait(process, etcd, |address| readiness::answers(address, "/readyz")),
            _ => wait(process, own.server, |address| readiness::get(address, ca_pem, "/readyz")),
        }
    }

    /// Checks that every process runs.
    ///
    /// # Errors
    /// The first process that has ended, with the end of its log.
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
