//! What a person sees while a long task runs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is the purpose")]

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Numbered steps: `[3/9] clippy (about 1 min the first time)`.
pub(crate) struct Steps {
    total: usize,
    began: Instant,
    done: usize,
    started: Option<(String, Instant)>,
    ended: Vec<(String, Duration)>,
}

impl Steps {
    /// For a task of `total` steps.
    pub(crate) fn new(total: usize) -> Self {
        Self { total, began: Instant::now(), done: 0, started: None, ended: Vec::new() }
    }

    /// Begins the next step.
    pub(crate) fn next(&mut self, what: &str) {
        self.done += 1;
        self.started = Some((what.to_owned(), Instant::now()));
        say(&format!("[{}/{}] {what}", self.done, self.total));
    }

    /// Ends the step with the time that it took.
    pub(crate) fn end(&mut self, outcome: &str) {
        if let Some((_, started)) = &self.started {
            self.end_after(outcome, started.elapsed());
        }
    }

    /// The same for a step that took this time: it began before it was shown.
    pub(crate) fn end_after(&mut self, outcome: &str, time: Duration) {
        if let Some((what, _)) = self.started.take() {
            say(&format!("      {outcome} ({:.1} s)", time.as_secs_f32()));
            self.ended.push((what, time));
        }
    }

    /// How long each step took, and all of them, in seconds. Steps may have run at the same time.
    pub(crate) fn table(&self) -> Vec<String> {
        let all = ("all steps".to_owned(), self.began.elapsed());
        let rows = self.ended.iter().chain([&all]);
        rows.map(|(what, time)| format!("{:>8.1}  {what}", time.as_secs_f32())).collect()
    }
}

/// A line for people.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The line replaces the progress bar of a cargo that runs at the same time.
    let start = if out.is_terminal() { "\r\x1b[K" } else { "" };
    // A reader that is gone ends no task.
    let _ = writeln!(out, "{start}{line}");
}

/// A line for people about something wrong.
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
