//! The steps before the first table, one line each, so that the terminal is never empty.

use std::fmt::Display;

use crate::out;

/// Prints numbered steps: `[2/8] Compiling guest 2 of 7: kabocha`.
#[derive(Debug)]
pub(super) struct Startup {
    total: usize,
    done: usize,
}

impl Startup {
    /// For a start of `total` steps.
    pub(super) fn new(total: usize) -> Self {
        Self { total, done: 0 }
    }

    /// Prints the step that begins now.
    ///
    /// # Errors
    /// If standard output is closed.
    pub(super) fn step(&mut self, what: impl Display) -> anyhow::Result<()> {
        self.done += 1;
        out::line(format_args!("[{}/{}] {what}", self.done, self.total))
    }
}
