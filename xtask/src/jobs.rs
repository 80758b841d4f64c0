//! Two cargo calls at once that run as many compilers as the machine has cores.

use std::io;
use std::process::Command;
use std::thread;

use jobserver::Client;

/// The jobs that two cargo calls share. Each call has one job of its own.
#[derive(Debug)]
pub(crate) struct Jobs(Client);

impl Jobs {
    /// One job per core.
    ///
    /// # Errors
    /// If the system has no pipe for it.
    pub(crate) fn new() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        Client::new(cores.saturating_sub(2)).map(Self)
    }

    /// Makes a cargo call take its jobs from here.
    pub(crate) fn share(&self, cargo: &mut Command) {
        self.0.configure(cargo);
    }

    /// Gives the job of a call that has ended to the other call.
    ///
    /// # Errors
    /// If the pipe is broken.
    pub(crate) fn end_call(&self) -> io::Result<()> {
        self.0.release_raw()
    }
}
