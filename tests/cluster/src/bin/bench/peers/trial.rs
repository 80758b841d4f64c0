//! The measurement of one controller on a control plane of its own.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::stage::MANY;
use innkeeper_cluster_tests::{AuditFilter, Kind, Options, Stage, eventually};

use crate::figures::{quantile, requests, say, usage};
use crate::peers::controller::{Controller, Peer};
use crate::peers::measurement::{
    Latency, Measurement, Phase, Repair, Restart, load_average, memory,
};
use crate::peers::speed_reference::SpeedReference;
use crate::workload::{Size, Workload};

/// The cluster is quiet after this time without writes in which the controller uses no CPU.
const QUIET: Duration = Duration::from_secs(2);
/// CPU seconds of a controller in that time that count as none.
const NO_CPU_S: f64 = 0.03;
/// The time in which an idle controller is measured.
const IDLE: Duration = Duration::from_secs(15);

/// One controller in one round.
pub(crate) struct Trial {
    pub(crate) peer: Peer,
    pub(crate) round: usize,
    pub(crate) controller_manager: bool,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = if self.controller_manager { "with" } else { "without" };
        write!(f, "{} {with} the controller manager", self.peer)
    }
}

impl Trial {
    /// Measures the controller: created, changed and, without the controller manager, changes and
    /// repairs one by one, idle, and a restart.
    ///
    /// # Errors
    /// If the controller ends or does not converge.
    pub(crate) async fn run(&self, programs: &Path, size: Size) -> Result<Measurement> {
        let flags = ["--kube-api-qps=1000", "--kube-api-burst=1000"].map(str::to_owned).to_vec();
        let stage = Stage::with(Options {
            controller_manager: self.controller_manager,
            controller_manager_flags: flags,
            ..Options::default()
        })
        .await?;
        let namespace = stage.admin.namespace("bench").await?;
        let mut controller = Controller::install(self.peer, &stage, programs, &namespace).await?;
        controller.start(&stage).await?;
        if self.peer == Peer::Innkeeper {
            stage.ready("bench").await?;
        }
        let workload = Workload::new(stage.admin.clone(), &namespace, size);
        let running = Running { stage, namespace, resources: size.resources, workload };
        running.quiet(&controller).await?;

        let load = load_average()?;
        let idle = memory(controller.usage()?);
        let created = running.phase(&controller, 1).await?;
        say(&format!("  created: {created}"));
        let changed = running.phase(&controller, 2).await?;
        say(&format!("  changed: {changed}"));
        let idle_cpu_s = running.idle(&controller).await?;
        say(&format!("  idle: {idle_cpu_s:.2} CPU s; {:.1} MiB before", idle.rss_mib));
        let mut measurement = Measurement {
            peer: self.peer,
            round: self.round,
            controller_manager: self.controller_manager,
            load,
            idle,
            created,
            changed,
            idle_cpu_s,
            latency: None,
            repair: None,
            restart: None,
        };
        if !self.controller_manager {
            measurement.latency = Some(running.latency().await?);
            running.quiet(&controller).await?;
            measurement.repair = Some(running.repair(&controller).await?);
            measurement.restart = Some(running.restart(&mut controller).await?);
            say(&format!(
                "  {}; {}; {}",
                Shown(measurement.latency.as_ref()),
                Shown(measurement.repair.as_ref()),
                Shown(measurement.restart.as_ref())
            ));
        }
        controller.stop()?;
        Ok(measurement)
    }
}

/// A value that was measured or not.
struct Shown<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

/// A control plane with Benches and a controller.
struct Running {
    stage: Stage,
    namespace: String,
    resources: usize,
    workload: Workload,
}

impl Running {
    /// Applies all resources with these replicas, and measures until the cluster is quiet.
    async fn phase(&self, controller: &Controller, replicas: u32) -> Result<Phase> {
        let mark = self.stage.plane.audit()?.mark()?;
        let (before, server_before) = (controller.usage()?, self.server_cpu_s()?);
        let (started, reference) = (Instant::now(), SpeedReference::start());
        self.workload.apply_all(replicas).await?;
        self.converged(controller).await?;
        let reference_ms = reference.stop()?;
        let (after, server_after) = (controller.usage()?, self.server_cpu_s()?);
        let requests = requests(&self.stage, &controller.user, mark)?;
        Ok(Phase {
            resources: self.resources,
            requests: requests.count,
            conflicts: requests.conflicts,
            by_verb: requests.by_verb,
            cpu_s: after.cpu_s - before.cpu_s,
            api_server_cpu_s: server_after - server_before,
            memory: memory(after),
            seconds: started.elapsed().as_secs_f64(),
            reference_ms,
        })
    }

    /// Waits until every Bench has a status of its generation, and the cluster is quiet. It asks
    /// only while the cluster is quiet, so that the API server does little more than its work.
    async fn converged(&self, controller: &Controller) -> Result<()> {
        eventually("every Bench has a status of its generation", MANY, async || {
            self.quiet(controller).await?;
            let all = self.stage.admin.list(Kind::BENCH, &self.namespace).await?;
            let is_done = |one: &&serde_json::Value| {
                one["status"]["observedGeneration"] == one["metadata"]["generation"]
            };
            let done = all.iter().filter(is_done).count();
            Ok(if done == self.resources { Ok(()) } else { Err(format!("{done}")) })
        })
        .await
    }

    /// Waits until nobody writes and the controller uses no CPU.
    async fn quiet(&self, controller: &Controller) -> Result<()> {
        let audit = self.stage.plane.audit()?;
        let filter = AuditFilter::new().writes().not_resource("leases").not_resource("events");
        let mut since = (Instant::now(), audit.mark()?, controller.usage()?.cpu_s);
        eventually("the cluster is quiet", MANY, async || {
            let cpu_s = controller.usage()?.cpu_s;
            let mut events = audit.since(since.1, &filter)?.into_iter();
            let writes = events.any(|event| event.user != "system:apiserver");
            if writes || cpu_s - since.2 > NO_CPU_S {
                since = (Instant::now(), audit.mark()?, cpu_s);
            }
            Ok(if since.0.elapsed() > QUIET { Ok(()) } else { Err("it is busy".to_owned()) })
        })
        .await
    }

    async fn idle(&self, controller: &Controller) -> Result<f64> {
        let before = controller.usage()?.cpu_s;
        tokio::time::sleep(IDLE).await;
        Ok(controller.usage()?.cpu_s - before)
    }

    async fn latency(&self) -> Result<Latency> {
        let mut times = self.workload.change_one_by_one().await?;
        Ok(Latency { p50_ms: quantile(&mut times, 0.5), p99_ms: quantile(&mut times, 0.99) })
    }

    async fn repair(&self, controller: &Controller) -> Result<Repair> {
        let mark = self.stage.plane.audit()?.mark()?;
        let mut times = self.workload.drift_one_by_one().await?;
        self.quiet(controller).await?;
        let requests = requests(&self.stage, &controller.user, mark)?.count;
        Ok(Repair { p50_ms: quantile(&mut times, 0.5), requests, drifts: times.len() })
    }

    /// Restarts the controller, and measures until the cluster is quiet.
    async fn restart(&self, controller: &mut Controller) -> Result<Restart> {
        controller.stop()?;
        let audit = self.stage.plane.audit()?;
        let (mark, reference) = (audit.mark()?, SpeedReference::start());
        controller.start(&self.stage).await?;
        self.quiet(controller).await?;
        let reference_ms = reference.stop()?;
        let usage = controller.usage()?;
        let filter = AuditFilter::new().writes().user(&controller.user).not_resource("events");
        let events = audit.since(mark, &filter)?.into_iter();
        let writes = events.filter(|event| !event.resource.starts_with("selfsubject")).count();
        Ok(Restart { writes, cpu_s: usage.cpu_s, memory: memory(usage), reference_ms })
    }

    /// CPU seconds of the API server until now.
    fn server_cpu_s(&self) -> Result<f64> {
        let pid = self.stage.plane.pid("kube-apiserver").context("the API server has no pid")?;
        Ok(usage(pid)?.cpu_s)
    }
}
