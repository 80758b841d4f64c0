//! A server for programs without a tokio runtime.

use std::path::Path;

use innkeeper_simulator::Simulator;
use tokio::runtime::{Builder, Runtime};

use crate::{Error, KubeconfigFile, Options, Server};

/// A server with a kubeconfig and a runtime of its own. Dropping this value outside of a runtime
/// stops the server, after its running requests, and removes the kubeconfig.
#[derive(Debug)]
pub struct BlockingServer {
    runtime: Runtime,
    server: Option<Server>,
    _kubeconfig: KubeconfigFile,
}

impl BlockingServer {
    /// Starts the server, and writes a kubeconfig for the admin.
    ///
    /// # Errors
    /// If the system gives no thread, the server does not start, or the kubeconfig exists already
    /// or cannot be written.
    pub fn start(
        simulator: Simulator,
        options: &Options,
        kubeconfig: &Path,
    ) -> Result<Self, Error> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().map_err(Error::Runtime)?;
        let server = runtime.block_on(Server::start(simulator, options))?;
        let kubeconfig = server.write_kubeconfig(kubeconfig)?;
        Ok(Self { runtime, server: Some(server), _kubeconfig: kubeconfig })
    }
}

impl Drop for BlockingServer {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn server_and_kubeconfig_end_when_they_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let simulator = Simulator::new(1, jiff::Timestamp::now());
        let server = BlockingServer::start(simulator, &Options::default(), &kubeconfig).unwrap();
        let address = server.server.as_ref().unwrap().address();
        assert!(kubeconfig.exists());
        TcpStream::connect(address).unwrap();

        drop(server);

        assert!(!kubeconfig.exists());
        TcpStream::connect(address).unwrap_err();
    }
}
