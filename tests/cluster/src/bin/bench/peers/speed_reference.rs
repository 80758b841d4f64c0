//! How fast the machine is while something is measured: [`SpeedReference`].
//!
//! On a shared machine the same work may take more than twice the CPU time for minutes. So a thread
//! does a small fixed piece of work all the while: CPU times of different minutes compare by it.

use std::hint::black_box;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// The time between two pieces of work: they take one to two percent of a core.
const PERIOD: Duration = Duration::from_millis(500);

/// A thread that parses and prints the same JSON document again and again.
pub(crate) struct SpeedReference {
    stop: Sender<()>,
    thread: JoinHandle<Vec<f64>>,
}

impl SpeedReference {
    /// Starts the work.
    pub(crate) fn start() -> Self {
        Self::with_period(PERIOD)
    }

    fn with_period(period: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let document = document();
            let mut times = Vec::new();
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                times.push(time_of_work(&document));
            }
            times
        });
        Self { stop, thread }
    }

    /// Stops the work; returns the median CPU time of one piece, in milliseconds. `None` if the
    /// time was too short for one.
    ///
    /// # Errors
    /// If the thread panicked.
    pub(crate) fn stop(self) -> Result<Option<f64>> {
        drop(self.stop);
        let mut times = self.thread.join().ok().context("the reference of speed panicked")?;
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied())
    }
}

/// The CPU time of one piece of work, in milliseconds.
fn time_of_work(document: &str) -> f64 {
    let thread_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default()
    };
    let before = thread_time();
    if let Ok(value) = serde_json::from_str::<Value>(black_box(document)) {
        black_box(value.to_string());
    }
    thread_time().saturating_sub(before).as_secs_f64() * 1000.0
}

/// A document like a list of objects, of tens of KiB.
fn document() -> String {
    let object = |number: u32| {
        json!({"kind": "Deployment", "metadata": {"name": format!("d-{number}"), "labels": {"app": "a"}},
            "spec": {"replicas": number, "template": {"spec": {"containers": [
                {"name": "app", "image": "image", "ports": [{"containerPort": 8080}]}]}}}})
    };
    Value::from((0..400).map(object).collect::<Vec<_>>()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_measures_its_work_until_it_is_stopped() {
        let reference = SpeedReference::with_period(Duration::ZERO);
        // Another piece of work takes as long as one of the thread.
        let document = document();
        let own: Vec<f64> = (0..50).map(|_| time_of_work(&document)).collect();
        assert!(own.iter().all(|time| *time > 0.0), "{own:?}");
        let median = reference.stop().unwrap();
        assert!(median.is_some_and(|median| median > 0.0), "{median:?}");
    }
}
