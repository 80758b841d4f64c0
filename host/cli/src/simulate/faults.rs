//! Faults of a plan between a client under test and the simulated cluster.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use http::header;
use innkeeper_faults::{PLAN_BYTES_MAX, PlanFile, ServedEvents, ServedFaults};
use innkeeper_simulator::Simulator;
use innkeeper_simulator_server::{Interceptor, KubeconfigFile, Server, SimulatorService};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::out::{self, Page};
use crate::simulate::client::Client;

/// The faults of a plan, and the client that they affect.
pub(crate) struct Faults {
    served: ServedFaults<SimulatorService>,
    events: ServedEvents,
    /// The names of the API servers.
    servers: Vec<String>,
    /// How the User-Agent of the client under test begins.
    agent: Option<String>,
    /// The command that runs the client under test.
    command: Option<String>,
    /// The kubeconfig for each API server.
    kubeconfigs: Vec<(String, KubeconfigFile)>,
}

impl Faults {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the file cannot be read, is no plan, or ends a client that nobody would start again.
    pub(crate) fn read(
        path: &Path,
        agent: Option<String>,
        command: Option<String>,
        simulator: &Simulator,
    ) -> anyhow::Result<Self> {
        let failed = || format!("cannot use the plan of faults {}", path.display());
        let mut content = Vec::new();
        let limit = PLAN_BYTES_MAX as u64 + 1;
        let file = File::open(path).with_context(failed)?;
        file.take(limit).read_to_end(&mut content).with_context(failed)?;
        let plan = PlanFile::parse(&content).with_context(failed)?;
        if plan.restarts() && command.is_none() {
            bail!("{}: it ends the client; add `--faults-exec COMMAND`, which runs it", failed());
        }
        let servers = plan.servers();
        let service = SimulatorService::new(simulator.clone());
        let (served, events) = ServedFaults::new(service, plan);
        Ok(Self { served, events, servers, agent, command, kubeconfigs: Vec::new() })
    }

    /// What answers requests at the port of everybody.
    pub(crate) fn for_everybody(&self) -> Interceptor {
        self.at(&self.servers[0], false)
    }

    /// What answers requests at a port of an API server.
    fn at(&self, name: &str, is_client_port: bool) -> Interceptor {
        let (faults, agent) = (self.served.clone(), self.agent.clone());
        let api_server: Arc<str> = name.into();
        Arc::new(move |request| {
            let (faults, api_server) = (faults.clone(), api_server.clone());
            let is_of_client = match &agent {
                None => is_client_port,
                Some(prefix) => {
                    let agent = request.headers().get(header::USER_AGENT);
                    agent.is_some_and(|agent| agent.as_bytes().starts_with(prefix.as_bytes()))
                }
            };
            Box::pin(async move { faults.call(&api_server, is_of_client, request).await })
        })
    }

    /// Serves a port for each API server, and writes their kubeconfigs next to one.
    ///
    /// # Errors
    /// If the system gives no port, or a kubeconfig exists or cannot be written.
    pub(crate) async fn serve(&mut self, server: &mut Server, path: &Path) -> anyhow::Result<()> {
        for (index, name) in self.servers.clone().into_iter().enumerate() {
            let endpoint = server.serve_also(self.at(&name, true)).await?;
            let suffix = if index == 0 { "client" } else { &name };
            let mut path = path.as_os_str().to_owned();
            path.push(format!(".{suffix}"));
            let file = server.write_kubeconfig_for(&endpoint, &PathBuf::from(path))?;
            self.kubeconfigs.push((name, file));
        }
        Ok(())
    }

    /// Adds the kubeconfigs to a page.
    pub(crate) fn describe(&self, page: &mut Page) {
        for (index, (name, file)) in self.kubeconfigs.iter().enumerate() {
            if index == 0 {
                page.line("The client under test connects with:");
            } else {
                page.line(format_args!("and to the API server {name} with:"));
            }
            page.line(format_args!("  export KUBECONFIG={}", file.path().display()));
        }
    }

    /// Says which faults of the plan have not happened: its author expected them.
    pub(crate) fn pending(&self) -> Page {
        let mut page = Page::default();
        let lines = self.served.pending_lines();
        if lines.is_empty() {
            page.line("Everything of the plan has happened.");
        } else {
            page.line("These parts of the plan have not happened:");
        }
        for line in lines {
            page.line(format_args!("  {line}"));
        }
        page
    }

    /// Injects faults, runs the client under test, and prints a line for each fault.
    ///
    /// # Errors
    /// If the client cannot be started, or standard output is closed.
    pub(crate) async fn inject(&mut self) -> anyhow::Result<()> {
        let Self { served, events, command, kubeconfigs, .. } = self;
        let ServedEvents { restarts, reports } = events;
        let passing = async { served.run().await.map_err(anyhow::Error::from_boxed) };
        let running = async {
            let Some(command) = command else { return std::future::pending().await };
            let kubeconfigs = kubeconfigs.iter();
            let kubeconfigs =
                kubeconfigs.map(|(name, file)| (name.clone(), file.path().to_owned())).collect();
            Client::new(command, kubeconfigs).run(served, restarts).await
        };
        tokio::select! {
            result = passing => result,
            result = running => result,
            result = report(reports) => result,
        }
    }
}

/// Prints a line for each fault, with the time in seconds since the beginning.
async fn report(reports: &mut mpsc::Receiver<String>) -> anyhow::Result<()> {
    let begun = Instant::now();
    while let Some(line) = reports.recv().await {
        out::line(format_args!("{:8.3} s  {line}", begun.elapsed().as_secs_f64()))?;
    }
    std::future::pending().await
}
