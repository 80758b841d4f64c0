//! Which tests of a program run.

use std::thread;

/// Which tests of a program run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those that are not marked `ignored`, as many at once as there are cores.
    Usual,
    /// Those that are marked `ignored`, one after the other.
    Ignored,
}

impl Which {
    /// The arguments for a program of tests.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Ignored => &["--ignored"],
        }
    }

    /// How many tests of a program run at once.
    pub(super) fn threads(self) -> usize {
        match self {
            Self::Usual => thread::available_parallelism().map_or(1, usize::from),
            Self::Ignored => 1,
        }
    }
}
