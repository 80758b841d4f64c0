//! Lets time pass, shows what happens, and waits for the conditions of scenarios.

use std::thread;
use std::time::{Duration, Instant};

use innkeeper_lab::{Api, ApiFailure};

use super::activity::Activity;
use super::backend::Backend;
use super::constants::HEAD_START;
use super::stop::{Stop, Stopped};
use super::view::View;
use crate::out;

/// How much time passes between two updates of the view.
const STEP: Duration = Duration::from_millis(200);

/// How long the demo shows a result before the next scenario.
const PAUSE: Duration = Duration::from_secs(3);

/// How fast virtual time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As real time.
    Clock,
    /// As fast as the machine allows.
    Fast,
}

/// Runs scenarios on a cluster.
pub(super) struct Runner<B> {
    backend: B,
    activity: Activity,
    view: View,
    pace: Pace,
    stop: Stop,
    started: Instant,
    /// Time since the start, on the cluster's clock.
    passed: Duration,
    /// How far the cluster's clock is ahead of real time.
    ahead: Duration,
}

impl<B: Backend> Runner<B> {
    /// `started` is when the cluster's clock started.
    pub(super) fn new(
        backend: B,
        activity: Activity,
        view: View,
        pace: Pace,
        stop: Stop,
        started: Instant,
    ) -> Self {
        let (passed, ahead) = (Duration::ZERO, Duration::ZERO);
        Self { backend, activity, view, pace, stop, started, passed, ahead }
    }

    /// The client of the cluster.
    pub(super) fn api(&self) -> &Api {
        self.backend.api()
    }

    /// Real time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows what a scenario does now.
    ///
    /// # Errors
    /// If the view cannot be written.
    pub(super) fn show_action(&mut self, text: &str) -> anyhow::Result<()> {
        self.view.show_action(text)
    }

    /// Shows the result of a scenario.
    ///
    /// # Errors
    /// If the view cannot be written.
    pub(super) fn show_result(&mut self, text: &str) -> anyhow::Result<()> {
        self.view.show_result(text)
    }

    /// Gives the user time to look at a result.
    ///
    /// # Errors
    /// As [`Self::advance`].
    pub(super) async fn pause(&mut self) -> anyhow::Result<()> {
        // A live cluster's clock cannot go faster, so the pause is shorter instead.
        let is_short = self.pace == Pace::Fast && self.backend.has_own_clock();
        self.advance(if is_short { STEP } else { PAUSE }).await
    }

    /// Lets time pass, and updates the view.
    ///
    /// # Errors
    /// [`Stopped`], or if the view cannot be written.
    pub(super) async fn advance(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = self.passed + time;
        while self.passed < end {
            if self.stop.requests() > 0 {
                return Err(Stopped.into());
            }
            self.backend.advance(STEP).await?;
            if self.backend.has_own_clock() {
                self.passed = self.elapsed();
            } else {
                self.passed += STEP;
            }
            for event in self.activity.take() {
                self.view.show_event(self.passed, event)?;
            }
            self.view.update(self.backend.api(), self.passed).await?;
            if self.pace == Pace::Clock && !self.backend.has_own_clock() {
                // No other task runs on this thread.
                thread::sleep(self.passed.saturating_sub(self.started.elapsed() + self.ahead));
            }
        }
        Ok(())
    }

    /// Lets time pass until `holds` is true. `what` names the condition.
    ///
    /// # Errors
    /// If the condition is not true within the backend's timeout.
    pub(super) async fn until(
        &mut self,
        what: &str,
        mut holds: impl AsyncFnMut(&Api) -> Result<bool, ApiFailure>,
    ) -> anyhow::Result<()> {
        let timeout = self.backend.timeout();
        let limit = self.passed + timeout;
        while !holds(self.backend.api()).await.unwrap_or(false) {
            if self.passed >= limit {
                anyhow::bail!("{what}: not within {} s", timeout.as_secs());
            }
            self.advance(STEP).await?;
        }
        Ok(())
    }

    /// The same before the first scenario: a simulated cluster uses its [`HEAD_START`] for it, and
    /// needs no more real time than the machine takes.
    ///
    /// # Errors
    /// As [`Self::until`].
    pub(super) async fn until_loaded(
        &mut self,
        what: &str,
        holds: impl AsyncFnMut(&Api) -> Result<bool, ApiFailure>,
    ) -> anyhow::Result<()> {
        let pace = std::mem::replace(&mut self.pace, Pace::Fast);
        let held = self.until(what, holds).await;
        self.pace = pace;
        held?;
        if !self.backend.has_own_clock() {
            // Afterwards the cluster's clock agrees with the real one.
            let left = (HEAD_START + self.started.elapsed()).saturating_sub(self.passed);
            self.backend.advance(left).await?;
            self.passed += left;
            self.ahead = self.passed.saturating_sub(self.started.elapsed());
        }
        Ok(())
    }

    /// Closes the view, and ends the operator.
    ///
    /// # Errors
    /// The objects that are left on a live cluster.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        drop(self.view);
        // The demo cleans up also when standard output is closed.
        let mut print = |text: &str| drop(out::line(text));
        self.backend.end(&mut print).await
    }
}
