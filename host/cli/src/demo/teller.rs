//! Lets time pass, shows what happens, and waits for what a story says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_lab::{Api, ApiFailure, Lab};

use super::activity::Activity;
use super::view::View;

/// How much time passes between two looks.
const STEP: Duration = Duration::from_millis(200);

/// How long each thing that is waited for may take.
const BOUND: Duration = Duration::from_mins(3);

/// How fast time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As on the wall.
    Clock,
    /// As fast as the machine can.
    Fast,
}

/// Somebody does not want to see more.
#[derive(Debug, thiserror::Error)]
#[error("stopped before all stories were told")]
pub(super) struct Stopped;

/// Who tells the stories.
pub(super) struct Teller {
    lab: Lab,
    activity: Activity,
    view: View,
    pace: Pace,
    stop: Arc<AtomicBool>,
    begun: Instant,
    passed: Duration,
}

impl Teller {
    pub(super) fn new(
        lab: Lab,
        activity: Activity,
        view: View,
        pace: Pace,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { lab, activity, view, pace, stop, begun: Instant::now(), passed: Duration::ZERO }
    }

    /// Requests to the cluster.
    pub(super) fn api(&self) -> &Api {
        self.lab.api()
    }

    /// How long the demo has run, on the wall.
    pub(super) fn since(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Says what is done.
    pub(super) fn say(&mut self, words: &str) -> anyhow::Result<()> {
        self.view.say(words)
    }

    /// A line of what comes of it.
    pub(super) fn tell(&mut self, words: &str) -> anyhow::Result<()> {
        self.view.tell(words)
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// [`Stopped`], or if what is shown cannot be.
    pub(super) async fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = self.passed + time;
        while self.passed < end {
            if self.stop.load(Ordering::SeqCst) {
                return Err(Stopped.into());
            }
            self.lab.pass(STEP).await;
            self.passed += STEP;
            for line in self.activity.take() {
                self.view.happened(&line)?;
            }
            self.view.look(self.lab.api(), self.passed).await?;
            if self.pace == Pace::Clock {
                // Nothing else runs on this thread.
                thread::sleep(self.passed.saturating_sub(self.begun.elapsed()));
            }
        }
        Ok(())
    }

    /// Lets time pass until `holds`.
    ///
    /// # Errors
    /// If it does not come true in time, by its name.
    pub(super) async fn until(
        &mut self,
        what: &str,
        mut holds: impl AsyncFnMut(&Api) -> Result<bool, ApiFailure>,
    ) -> anyhow::Result<()> {
        let limit = self.passed + BOUND;
        while !holds(self.lab.api()).await.unwrap_or(false) {
            if self.passed >= limit {
                anyhow::bail!("{what}: not within {} s", BOUND.as_secs());
            }
            self.pass(STEP).await?;
        }
        Ok(())
    }

    /// Ends the operator.
    pub(super) async fn end(self) {
        drop(self.view);
        self.lab.end().await;
    }
}
