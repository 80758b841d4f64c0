//! What a person sees while a long task runs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is the purpose")]

use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

/// Numbered steps: `[3/9] clippy (about 1 min the first time)`.
pub(crate) struct Steps {
    total: usize,
    done: usize,
    started: Option<Instant>,
}

impl Steps {
    /// For a task of `total` steps.
    pub(crate) fn new(total: usize) -> Self {
        Self { total, done: 0, started: None }
    }

    /// Begins the next step.
    pub(crate) fn next(&mut self, what: &str) {
        self.done += 1;
        self.started = Some(Instant::now());
        say(&format!("[{}/{}] {what}", self.done, self.total));
    }

    /// Ends the step with the time that it took.
    pub(crate) fn end(&mut self, outcome: &str) {
        if let Some(started) = self.started.take() {
            say(&format!("      {outcome} ({:.1} s)", started.elapsed().as_secs_f32()));
        }
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
