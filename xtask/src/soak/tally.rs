//! What has been checked so far, kept in a file from run to run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::check_result::CheckResult;

/// The sums of all checks, by guest, and where the next run goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Tally {
    /// The seed of the next check of each guest.
    pub(super) next_seed: BTreeMap<String, u64>,
    /// The sums.
    sums: BTreeMap<String, Sums>,
}

/// The sums of the checks of a guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sums {
    checks: u64,
    scenarios: u64,
    /// Virtual time of the scenarios, in seconds.
    simulated_seconds: f64,
    /// Wall time of the checks, in seconds.
    wall_seconds: f64,
    /// How many checks broke a law.
    failures: u64,
}

impl Tally {
    /// The tally of the runs before; an empty one if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match fs::read(path) {
            Ok(text) => serde_json::from_slice(&text).with_context(|| {
                format!("cannot read {}: --fresh starts a new one", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    /// Writes the file, so that a run that is interrupted loses at most the checks under way.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let new = path.with_extension("new");
        fs::write(&new, serde_json::to_vec_pretty(self)?)
            .and_then(|()| fs::rename(&new, path))
            .with_context(|| path.display().to_string())
    }

    /// Adds a check that took this long.
    pub(super) fn add(&mut self, guest: &str, result: &CheckResult, wall: Duration) {
        let sums = self.sums.entry(guest.to_owned()).or_default();
        sums.checks += 1;
        sums.scenarios += result.scenarios;
        sums.simulated_seconds += result.simulated_seconds;
        sums.wall_seconds += wall.as_secs_f64();
        sums.failures += u64::from(!result.broken.is_empty());
    }

    /// How many checks broke a law.
    pub(super) fn failures(&self) -> u64 {
        self.sums.values().map(|sums| sums.failures).sum()
    }

    /// A table of the sums, a line each.
    pub(super) fn table(&self) -> Vec<String> {
        let mut all = Sums::default();
        for sums in self.sums.values() {
            all.checks += sums.checks;
            all.scenarios += sums.scenarios;
            all.simulated_seconds += sums.simulated_seconds;
            all.wall_seconds += sums.wall_seconds;
            all.failures += sums.failures;
        }
        let head = format!(
            "{:<12}{:>8}{:>11}{:>13}{:>9}{:>12}{:>10}",
            "guest", "checks", "scenarios", "simulated h", "speed", "scenarios/s", "failures"
        );
        let rows = self.sums.iter().map(|(guest, sums)| sums.row(guest));
        [head].into_iter().chain(rows).chain([all.row("all")]).collect()
    }
}

impl Sums {
    fn row(&self, name: &str) -> String {
        let wall = self.wall_seconds.max(f64::MIN_POSITIVE);
        #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = self.scenarios as f64 / wall;
        format!(
            "{name:<12}{:>8}{:>11}{:>13.1}{:>8.0}x{rate:>12.1}{:>10}",
            self.checks,
            self.scenarios,
            self.simulated_seconds / 3_600.0,
            self.simulated_seconds / wall,
            self.failures,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(scenarios: u64, broken: usize) -> CheckResult {
        let broken = vec![("crash".to_owned(), serde_json::Value::Null); broken];
        CheckResult { scenarios, simulated_seconds: 7_200.0, broken }
    }

    #[test]
    fn tally_goes_on_where_the_last_run_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.json");
        let mut tally = Tally::read(&path).unwrap();
        assert_eq!(tally, Tally::default());
        tally.next_seed.insert("podroute".to_owned(), 8);
        tally.add("podroute", &result(100, 0), Duration::from_secs(4));
        tally.write(&path).unwrap();
        let mut tally = Tally::read(&path).unwrap();
        tally.add("podroute", &result(20, 1), Duration::from_secs(4));
        tally.add("kuri", &result(3, 0), Duration::from_secs(2));
        assert_eq!(tally.failures(), 1);
        assert_eq!(tally.next_seed["podroute"], 8);
        let table = tally.table();
        let cells: Vec<Vec<&str>> =
            table.iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[2], ["podroute", "2", "120", "4.0", "1800x", "15.0", "1"]);
        assert_eq!(cells[3], ["all", "3", "123", "6.0", "2160x", "12.3", "1"]);
    }

    #[test]
    fn broken_file_is_an_error_that_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tally.json");
        fs::write(&path, "{").unwrap();
        let error = Tally::read(&path).unwrap_err().to_string();
        assert!(error.contains("--fresh"), "{error}");
    }
}
