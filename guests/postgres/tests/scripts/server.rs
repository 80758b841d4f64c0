//! A container that serves.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(20);

/// A container that serves. Dropped, it is told to end.
pub(crate) struct Server {
    process: Child,
}

impl Server {
    /// Starts it and waits until it takes connections.
    pub(crate) fn start(cluster: &Cluster) -> Self {
        // What PostgreSQL logs is shown when it does not start, and else not.
        let log = cluster.path("server.log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut container = cluster.container("serve");
        container.stdout(file.try_clone().unwrap()).stderr(file);
        let mut server = Self { process: container.spawn().unwrap() };
        eventually("the server takes connections", || {
            let said = || fs::read_to_string(&log).unwrap_or_default();
            assert!(!server.has_ended(), "the server ended instead: {}", said());
            cluster.program("pg_isready").arg("-q").status().unwrap().success()
        });
        server
    }

    /// Ends as a container does: it is told to, and waited for.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.process.wait().unwrap()
    }

    /// Sends a signal to the container's first process.
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.process.id());
    }

    /// Whether its first process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.has_ended() {
            self.signal("TERM");
            let _ = self.process.wait();
        }
    }
}

/// Sends a signal to a process.
pub(crate) fn kill(signal: &str, process: u32) {
    let status = Command::new("kill").args(["-s", signal, &process.to_string()]).status().unwrap();
    assert!(status.success(), "process {process} is not there to get {signal}");
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "after {PATIENCE:?} it does not hold that {what}");
        thread::sleep(PAUSE);
    }
}
