//! Renamed flags and environment variables: the error for the old name contains the new one.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of earlier releases, each with its new name.
const FLAGS: [(&str, &str); 7] = [
    ("--calls", "--max-concurrent-guest-calls"),
    ("--guests", "--guest-pool-size"),
    ("--lease-seconds", "--lease-duration"),
    ("--log", "--log-filter"),
    ("--no-lease", "--leader-elect=false"),
    ("--still", "--freeze-time"),
    ("--workers", "--max-concurrent-reconciles"),
];

/// Environment variables of earlier releases, each with its new name.
const VARIABLES: [(&str, &str); 1] = [("INNKEEPER_LEASE_SECONDS", "INNKEEPER_LEASE_DURATION")];

/// Parses the command line. Ends the process on wrong usage, as clap does.
pub(crate) fn parse<T: clap::Parser>() -> T {
    T::try_parse().unwrap_or_else(|error| explain::<T>(error).exit())
}

/// Adds the new name to an error about a renamed flag.
fn explain<T: CommandFactory>(error: clap::Error) -> clap::Error {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(unknown))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return error;
    };
    let name = unknown.split('=').next().unwrap_or_default();
    match FLAGS.iter().find(|(old, _)| *old == name) {
        Some((old, new)) => {
            let message = format!("`{old}` was renamed: use `{new}`");
            T::command().error(ErrorKind::UnknownArgument, message)
        }
        None => error,
    }
}

/// Refuses environment variables with an old name.
///
/// # Errors
/// The variable that is set, and its new name.
pub(crate) fn check_environment() -> anyhow::Result<()> {
    match VARIABLES.iter().find(|(old, _)| std::env::var_os(old).is_some()) {
        Some((old, new)) => {
            anyhow::bail!(
                "environment variable `{old}` was renamed: use `{new}`, for example {new}=15s"
            )
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::Arguments;

    fn error_of(arguments: &[&str]) -> String {
        let all = ["innkeeper"].iter().chain(arguments);
        explain::<Arguments>(Arguments::try_parse_from(all).err().unwrap()).to_string()
    }

    #[test]
    fn renamed_flag_is_refused_with_its_new_name() {
        for (arguments, new) in [
            (
                ["run", "--workers", "4"],
                "`--workers` was renamed: use `--max-concurrent-reconciles`",
            ),
            (["run", "--calls=4", "--bind=x"], "use `--max-concurrent-guest-calls`"),
            (["run", "--guests", "4"], "use `--guest-pool-size`"),
            (["run", "--no-lease", "--bind=x"], "use `--leader-elect=false`"),
            (["run", "--lease-seconds", "15"], "use `--lease-duration`"),
            (["run", "--log", "info"], "use `--log-filter`"),
            (["test", "--log", "info"], "use `--log-filter`"),
            (["simulate", "--still", "--seed=1"], "use `--freeze-time`"),
        ] {
            // The program of images has the command `run` only.
            if Arguments::command().find_subcommand(arguments[0]).is_none() {
                continue;
            }
            let error = error_of(&arguments);
            assert!(error.contains(new), "{arguments:?}: {error}");
        }
    }

    #[test]
    fn unknown_flag_is_refused_by_clap_when_it_was_not_renamed() {
        assert!(error_of(&["run", "--never"]).contains("unexpected argument '--never'"));
    }

    #[test]
    fn lease_duration_is_refused_without_a_unit() {
        assert!(error_of(&["run", "--lease-duration", "15"]).contains("has a unit, such as 15s"));
    }
}
