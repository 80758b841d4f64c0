//! Lets time pass, shows what happens, and waits for what a story says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_lab::{Api, ApiFailure};

use super::activity::Activity;
use super::place::Place;
use super::view::View;
use crate::out;

/// How much time passes between two looks.
const STEP: Duration = Duration::from_millis(200);

/// How much earlier than now a simulated cluster begins: its guests are loaded when the demo does.
pub(super) const EARLIER: Duration = Duration::from_secs(10);

/// How long a result is looked at before the next story.
const LOOK: Duration = Duration::from_secs(3);

/// How fast time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// As on the wall.
    Clock,
    /// As fast as the machine can.
    Fast,
}

/// How often somebody has said that he does not want to see more. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// Somebody says so.
    pub(super) fn say(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// How often.
    pub(super) fn said(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Somebody does not want to see more.
#[derive(Debug, thiserror::Error)]
#[error("stopped before all stories were told")]
pub(super) struct Stopped;

/// Who tells the stories.
pub(super) struct Teller {
    place: Place,
    activity: Activity,
    view: View,
    speed: Pace,
    stop: Stop,
    begun: Instant,
    passed: Duration,
    /// How much more time has passed than on the wall, since nobody had to watch it.
    ahead: Duration,
}

impl Teller {
    pub(super) fn new(
        place: Place,
        activity: Activity,
        view: View,
        speed: Pace,
        stop: Stop,
    ) -> Self {
        let (begun, passed, ahead) = (Instant::now(), Duration::ZERO, Duration::ZERO);
        Self { place, activity, view, speed, stop, begun, passed, ahead }
    }

    /// Requests to the cluster.
    pub(super) fn api(&self) -> &Api {
        self.place.api()
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

    /// Lets a result be looked at.
    ///
    /// # Errors
    /// As [`Self::pass`].
    pub(super) async fn look(&mut self) -> anyhow::Result<()> {
        // Where time cannot be made to pass faster, less of it passes.
        let hurries = self.speed == Pace::Fast && self.place.has_own_time();
        self.pass(if hurries { STEP } else { LOOK }).await
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// [`Stopped`], or if what is shown cannot be.
    pub(super) async fn pass(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = self.passed + time;
        while self.passed < end {
            if self.stop.said() > 0 {
                return Err(Stopped.into());
            }
            self.place.pass(STEP).await?;
            if self.place.has_own_time() {
                self.passed = self.since();
            } else {
                self.passed += STEP;
            }
            for happened in self.activity.take() {
                self.view.happened(self.passed, happened)?;
            }
            self.view.look(self.place.api(), self.passed).await?;
            if self.speed == Pace::Clock && !self.place.has_own_time() {
                // Nothing else runs on this thread.
                thread::sleep(self.passed.saturating_sub(self.begun.elapsed() + self.ahead));
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
        let bound = self.place.bound();
        let limit = self.passed + bound;
        while !holds(self.place.api()).await.unwrap_or(false) {
            if self.passed >= limit {
                anyhow::bail!("{what}: not within {} s", bound.as_secs());
            }
            self.pass(STEP).await?;
        }
        Ok(())
    }

    /// The same in the time before the demo, of which nobody sees anything: a simulated cluster begins [`EARLIER`], and
    /// takes no longer for it than the machine does.
    ///
    /// # Errors
    /// As [`Self::until`].
    pub(super) async fn until_before(
        &mut self,
        what: &str,
        holds: impl AsyncFnMut(&Api) -> Result<bool, ApiFailure>,
    ) -> anyhow::Result<()> {
        let speed = std::mem::replace(&mut self.speed, Pace::Fast);
        let held = self.until(what, holds).await;
        self.speed = speed;
        held?;
        if !self.place.has_own_time() {
            // Its clock comes to that on the wall.
            let left = (EARLIER + self.begun.elapsed()).saturating_sub(self.passed);
            self.place.pass(left).await?;
            self.passed += left;
            self.ahead = self.passed.saturating_sub(self.begun.elapsed());
        }
        Ok(())
    }

    /// Ends the operator, and what was shown.
    ///
    /// # Errors
    /// What is left on a cluster that stays.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        drop(self.view);
        // Whoever listens no more wants the cluster to be left as it was all the same.
        let mut say = |words: &str| drop(out::line(words));
        self.place.end(&mut say).await
    }
}
