//! What is measured of one controller, and the file of all results.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::figures::Usage;
use crate::peers::controller::Peer;

/// All measurements of one run on one machine.
#[derive(Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) machine: Machine,
    /// Of each controller, of Kubernetes, and the date.
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) resources: usize,
    pub(crate) samples: usize,
    pub(crate) measurements: Vec<Measurement>,
}

/// Where a run took place.
#[derive(Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
}

/// One controller in one round.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) peer: Peer,
    pub(crate) round: usize,
    pub(crate) controller_manager: bool,
    /// The load average of the last minute before resources were created.
    pub(crate) load: f64,
    pub(crate) idle: Memory,
    pub(crate) created: Phase,
    pub(crate) changed: Phase,
    pub(crate) idle_cpu_s: f64,
    pub(crate) latency: Option<Latency>,
    pub(crate) repair: Option<Repair>,
    pub(crate) restart: Option<Restart>,
}

/// Memory of a controller in MiB.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) rss_mib: f64,
    pub(crate) anonymous_mib: f64,
}

/// All resources created, or changed once.
#[derive(Serialize, Deserialize)]
pub(crate) struct Phase {
    pub(crate) resources: usize,
    pub(crate) requests: usize,
    pub(crate) conflicts: usize,
    pub(crate) by_verb: BTreeMap<String, usize>,
    pub(crate) cpu_s: f64,
    pub(crate) api_server_cpu_s: f64,
    pub(crate) memory: Memory,
    pub(crate) seconds: f64,
    /// The CPU time of the reference of speed meanwhile, in milliseconds.
    #[serde(default)]
    pub(crate) reference_ms: Option<f64>,
}

/// The time from a change to the changed Deployment, the client's write included.
#[derive(Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// The time from a foreign change of a Deployment to its repair.
#[derive(Serialize, Deserialize)]
pub(crate) struct Repair {
    pub(crate) p50_ms: f64,
    pub(crate) requests: usize,
    pub(crate) drifts: usize,
}

/// A start where nothing is left to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Restart {
    pub(crate) writes: usize,
    pub(crate) cpu_s: f64,
    pub(crate) memory: Memory,
    /// The CPU time of the reference of speed meanwhile, in milliseconds.
    #[serde(default)]
    pub(crate) reference_ms: Option<f64>,
}

impl Results {
    /// Divides each CPU time, but for that of idleness, by how much more CPU time the reference
    /// took in its phase than in the fastest phase of that name; returns how much more that was.
    /// Changes nothing, and returns nothing, if a phase was measured without the reference.
    pub(crate) fn at_one_speed(&mut self) -> Vec<f64> {
        type GetTimes = fn(&mut Measurement) -> Option<(Option<f64>, Vec<&mut f64>)>;
        fn times(phase: &mut Phase) -> (Option<f64>, Vec<&mut f64>) {
            (phase.reference_ms, vec![&mut phase.cpu_s, &mut phase.api_server_cpu_s])
        }
        let phases: [GetTimes; 3] = [
            |one| Some(times(&mut one.created)),
            |one| Some(times(&mut one.changed)),
            |one| one.restart.as_mut().map(|one| (one.reference_ms, vec![&mut one.cpu_s])),
        ];
        let mut all = self.measurements.iter_mut();
        if all.any(|one| phases.iter().any(|get| get(one).is_some_and(|(own, _)| own.is_none()))) {
            return Vec::new();
        }
        let mut slowness = Vec::new();
        for get in phases {
            let references =
                self.measurements.iter_mut().filter_map(|one| get(one).and_then(|(own, _)| own));
            let fastest = references.fold(f64::INFINITY, f64::min);
            for (own, times) in self.measurements.iter_mut().filter_map(get) {
                let Some(own) = own else { continue };
                slowness.push(own / fastest);
                for time in times {
                    *time *= fastest / own;
                }
            }
        }
        slowness
    }

    /// Reads the file of an earlier run.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Writes the file.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(path, text + "\n").with_context(|| path.display().to_string())
    }
}

impl Machine {
    /// Reads what this machine is from /proc.
    pub(crate) fn read() -> Result<Self> {
        let field = |file: &str, name: &str| -> Result<String> {
            let text = fs::read_to_string(file)?;
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let value = line.and_then(|rest| rest.split_once(':')).map(|(_, value)| value.trim());
            Ok(value.with_context(|| format!("{name} in {file}"))?.to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal")?;
        let kib: f64 = memory.trim_end_matches(" kB").parse()?;
        Ok(Self {
            processor: field("/proc/cpuinfo", "model name")
                .unwrap_or_else(|_| "unknown".to_owned()),
            cores: std::thread::available_parallelism()?.get(),
            memory_gib: kib / f64::from(1 << 20),
        })
    }
}

impl Phase {
    /// Requests of the controller for each resource.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    pub(crate) fn requests_each(&self) -> f64 {
        self.each(self.requests as f64)
    }

    /// The part of a value for each resource.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    pub(crate) fn each(&self, value: f64) -> f64 {
        value / self.resources as f64
    }

    /// Responses 409 in percent of the resources.
    #[expect(clippy::cast_precision_loss, reason = "small counts")]
    pub(crate) fn conflicts_percent(&self) -> f64 {
        self.each(self.conflicts as f64) * 100.0
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} requests each, {} answered 409; {:.2} CPU s; API server {:.1} s; {:.1} MiB \
             ({:.1} anonymous); {:.0} s; reference {:.2} ms; {:?}",
            self.requests_each(),
            self.conflicts,
            self.cpu_s,
            self.api_server_cpu_s,
            self.memory.rss_mib,
            self.memory.anonymous_mib,
            self.seconds,
            self.reference_ms.unwrap_or(f64::NAN),
            self.by_verb
        )
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "change p50 {:.1} ms, p99 {:.1} ms", self.p50_ms, self.p99_ms)
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "repair p50 {:.1} ms, {} requests", self.p50_ms, self.requests)
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "restart {} writes, {:.2} CPU s", self.writes, self.cpu_s)
    }
}

/// The memory of a usage.
pub(crate) fn memory(usage: Usage) -> Memory {
    Memory { rss_mib: usage.rss_mib, anonymous_mib: usage.anonymous_mib }
}

/// The load average of the last minute.
pub(crate) fn load_average() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split_whitespace().next().context("an empty /proc/loadavg")?.parse()?)
}

/// The versions that `cargo xtask bench --peers` wrote next to the programs.
pub(crate) fn versions(programs: &Path) -> Result<BTreeMap<String, String>> {
    let path = programs.join("versions.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(cpu_s: f64, reference_ms: Option<f64>) -> Phase {
        Phase {
            resources: 1,
            requests: 3,
            conflicts: 0,
            by_verb: BTreeMap::new(),
            cpu_s,
            api_server_cpu_s: cpu_s * 10.0,
            memory: Memory { rss_mib: 1.0, anonymous_mib: 1.0 },
            seconds: 1.0,
            reference_ms,
        }
    }

    /// Results of two controllers, with the reference of the second one while it changes.
    fn results(reference_ms: Option<f64>) -> Results {
        let one = |created: Phase, changed: Phase| Measurement {
            peer: Peer::Innkeeper,
            round: 0,
            controller_manager: true,
            load: 0.0,
            idle: Memory { rss_mib: 1.0, anonymous_mib: 1.0 },
            created,
            changed,
            idle_cpu_s: 1.0,
            latency: None,
            repair: None,
            restart: None,
        };
        Results {
            machine: Machine { processor: String::new(), cores: 2, memory_gib: 1.0 },
            versions: BTreeMap::new(),
            resources: 1,
            samples: 1,
            measurements: vec![
                one(phase(2.0, Some(10.0)), phase(1.0, Some(4.0))),
                one(phase(2.0, Some(5.0)), phase(1.0, reference_ms)),
            ],
        }
    }

    #[test]
    fn cpu_times_are_those_of_the_fastest_phase_of_their_name() {
        let mut results = results(Some(8.0));
        assert_eq!(results.at_one_speed(), [2.0, 1.0, 1.0, 2.0]);
        let times = |one: &Measurement| {
            [&one.created, &one.changed].map(|phase| (phase.cpu_s, phase.api_server_cpu_s))
        };
        let all: Vec<_> = results.measurements.iter().map(times).collect();
        assert_eq!(all, [[(1.0, 10.0), (1.0, 10.0)], [(2.0, 20.0), (0.5, 5.0)]]);
    }

    #[test]
    fn cpu_times_stay_if_one_phase_has_no_reference() {
        let mut results = results(None);
        assert!(results.at_one_speed().is_empty());
        assert!(results.measurements.iter().all(|one| (one.created.cpu_s - 2.0).abs() < 1e-9));
    }
}
