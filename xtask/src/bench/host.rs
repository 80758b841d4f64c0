//! The host that benchmarks measure.

use std::path::PathBuf;

use anyhow::Result;

use crate::command::{cargo, run as run_command, target};
use crate::program;
use crate::progress::Steps;

/// The argument that asks for [`Host::Guided`].
const GUIDED: &str = "--guided";

/// How the program of the image is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Host {
    /// As deploy/Containerfile builds it.
    Plain,
    /// As `cargo xtask program` builds it.
    Guided,
}

impl Host {
    /// The build that the arguments ask for, and the arguments that are left for the benchmark.
    pub(super) fn of(arguments: &[String]) -> (Self, Vec<String>) {
        let (guided, rest): (Vec<_>, Vec<_>) =
            arguments.iter().cloned().partition(|argument| argument == GUIDED);
        (if guided.is_empty() { Self::Plain } else { Self::Guided }, rest)
    }

    /// The number of steps of [`Self::build`].
    pub(super) fn steps(self) -> usize {
        match self {
            Self::Plain => 1,
            Self::Guided => 1 + program::STEPS,
        }
    }

    /// Builds the host in release, and the program of its image. The guests have to be built.
    ///
    /// # Errors
    /// If it does not build.
    pub(super) fn build(self, steps: &mut Steps) -> Result<()> {
        steps.next("host, in release and for the image (about 25 min the first time)");
        let package = ["--package", "innkeeper-cli", "--bin", "innkeeper"];
        run_command(cargo(&["build", "--release"]).args(package))?;
        if self == Self::Plain {
            program::build_plain()?;
        }
        steps.end("built");
        if self == Self::Guided { program::build(steps) } else { Ok(()) }
    }

    /// The release build of the host, and the program of its image, by the variables that choose
    /// them.
    pub(super) fn programs(self) -> [(&'static str, PathBuf); 2] {
        let operator = match self {
            Self::Plain => program::plain(),
            Self::Guided => program::guided(),
        };
        [("INNKEEPER_BIN", release()), (program::OPERATOR, operator)]
    }

    /// What a page of figures adds to the version.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Guided => ", built with a profile",
        }
    }
}

/// The release build of the host.
pub(super) fn release() -> PathBuf {
    target().join("release/innkeeper")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_for_the_guided_build_is_not_left_for_the_benchmark() {
        let arguments = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let of = |text| Host::of(&arguments(text));
        assert_eq!(of("--peers --rounds 3"), (Host::Plain, arguments("--peers --rounds 3")));
        let rest = arguments("--peers --rounds 3");
        assert_eq!(of("--peers --guided --rounds 3"), (Host::Guided, rest.clone()));
        assert_eq!(of("--guided --peers --rounds 3"), (Host::Guided, rest));
    }
}
