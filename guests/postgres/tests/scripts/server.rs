//! The container of the server.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::cluster::Cluster;

/// How long a test waits for a condition.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long to wait between two checks.
const PAUSE: Duration = Duration::from_millis(20);

/// The container of the server. Dropping it sends TERM and waits for its end.
pub(crate) struct Server {
    process: Child,
}

impl Server {
    /// Starts the container and waits until the server accepts connections.
    pub(crate) fn start(cluster: &Cluster) -> Self {
        // The test shows the log of PostgreSQL only if the server does not start.
        let log = cluster.path("server.log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut container = cluster.container("serve");
        container.stdout(file.try_clone().unwrap()).stderr(file);
        let mut server = Self { process: container.spawn().unwrap() };
        eventually("the server accepts connections", || {
            let text = || fs::read_to_string(&log).unwrap_or_default();
            assert!(!server.has_ended(), "the server ended: {}", text());
            cluster.program("pg_isready").arg("-q").status().unwrap().success()
        });
        server
    }

    /// Sends TERM and waits for the end, as the kubelet does.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.process.wait().unwrap()
    }

    /// Sends a signal to the container's first process.
    pub(crate) fn signal(&self, signal: &str) {
        kill(signal, self.process.id());
    }

    /// Returns whether the container's first process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Cluster {
    /// Returns a cluster with the sample's table, and its running server.
    pub(crate) fn with_rows() -> (Self, Server) {
        let cluster = Self::new();
        let server = cluster.serve_rows();
        (cluster, server)
    }

    /// Returns a cluster without data that has a backup without tables.
    pub(crate) fn with_tableless_backup() -> Self {
        let cluster = Self::new();
        cluster.prepares();
        let server = cluster.serve();
        cluster.backs_up();
        server.stop();
        cluster.lose_data();
        cluster
    }

    /// Prepares a new database, starts its server, and creates the sample's table.
    pub(crate) fn serve_rows(&self) -> Server {
        self.prepares();
        let server = self.serve();
        self.sql("CREATE TABLE hoge (name text); INSERT INTO hoge VALUES ('foo'), ('bar')");
        server
    }

    /// Starts the server and waits until it accepts connections.
    pub(crate) fn serve(&self) -> Server {
        Server::start(self)
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
    assert!(status.success(), "cannot send {signal} to process {process}");
}

/// Waits until a condition is true.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "condition not met after {PATIENCE:?}: {what}");
        thread::sleep(PAUSE);
    }
}
