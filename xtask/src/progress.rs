//! What a person sees while a long task runs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output is the purpose")]

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
        println!("[{}/{}] {what}", self.done, self.total);
    }

    /// Ends the step with the time that it took.
    pub(crate) fn end(&mut self, outcome: &str) {
        if let Some(started) = self.started.take() {
            println!("      {outcome} ({:.1} s)", started.elapsed().as_secs_f32());
        }
    }
}

/// A line for people.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// A line for people about something wrong.
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
