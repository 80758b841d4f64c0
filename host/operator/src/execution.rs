//! On which thread blocking work runs.

/// On which thread calls of guests and other blocking work run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// On threads that may block; needs a runtime of several threads.
    Threads,
    /// On the loop's own thread, one at a time and in order: for tests and simulation.
    Inline,
}

impl Execution {
    /// Runs work that blocks, and gives its result.
    pub fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Threads => tokio::task::block_in_place(work),
            Self::Inline => work(),
        }
    }
}
