//! Steps of the suite that run at the same time, since one alone leaves cores idle.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::counts::TestCounts;
use super::output::Run;
use super::times::Line;
use crate::command::line;

/// A step: commands that run one after the other until one fails.
pub(super) struct Part {
    pub(super) what: String,
    commands: Result<Vec<Command>>,
}

/// A part that ended.
pub(super) struct Ended {
    pub(super) what: String,
    pub(super) time: Duration,
    pub(super) lines: Vec<String>,
    pub(super) counts: TestCounts,
    /// What failed; the output is in `lines`.
    pub(super) error: Option<String>,
}

impl Part {
    /// A step with these commands, or with the error that there are none.
    pub(super) fn new(what: &str, commands: Result<Vec<Command>>) -> Self {
        Self { what: what.to_owned(), commands }
    }

    fn run(self) -> Ended {
        let start = Instant::now();
        let (mut lines, mut counts) = (Vec::new(), TestCounts::default());
        let (commands, mut error) = match self.commands {
            Ok(commands) => (commands, None),
            Err(failure) => (Vec::new(), Some(format!("{failure:#}"))),
        };
        for mut command in commands {
            let name = format!("`{}`", line(&command));
            match Run::of(&mut command, &name) {
                Ok(run) => {
                    run.lines.iter().for_each(|line| counts.add_line(&line.text));
                    error = (!run.is_success).then(|| format!("{name} failed"));
                    lines.extend(run.lines.into_iter().map(|Line { text, .. }| text));
                }
                Err(failure) => error = Some(format!("{failure:#}")),
            }
            if error.is_some() {
                break;
            }
        }
        Ended { what: self.what, time: start.elapsed(), lines, counts, error }
    }
}

/// Runs the parts of each lane one after the other, and all lanes at once. Calls `ended` with each
/// part at its end, never twice at once.
pub(super) fn run(lanes: Vec<Vec<Part>>, ended: impl FnMut(Ended) + Send) {
    let ended = &Mutex::new(ended);
    thread::scope(|scope| {
        for lane in lanes {
            scope.spawn(move || {
                for part in lane {
                    let end = part.run();
                    (ended.lock().unwrap_or_else(PoisonError::into_inner))(end);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lanes_run_at_once_and_output_comes_in_whole_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let meet = |mine: &str, other: &str| {
            let (mine, other) = (folder.path().join(mine), folder.path().join(other));
            let (mine, other) = (mine.display(), other.display());
            shell(&format!(
                "echo start; touch {mine}; for i in $(seq 3000); do [ -e {other} ] && break; sleep 0.01; \
                 done; [ -e {other} ] && echo met"
            ))
        };
        let lanes = vec![
            vec![
                Part::new("one", Ok(vec![meet("a", "b")])),
                Part::new("later", Ok(vec![shell("echo x")])),
            ],
            vec![Part::new("two", Ok(vec![meet("b", "a")]))],
        ];
        let mut all = Vec::new();
        run(lanes, |part| all.push((part.what, part.lines, part.error)));
        all.sort();
        let block = |what: &str, lines: &[&str]| {
            (what.to_owned(), lines.iter().map(|&line| line.to_owned()).collect(), None)
        };
        let block_of_both = ["start", "met"];
        assert_eq!(
            all,
            [block("later", &["x"]), block("one", &block_of_both), block("two", &block_of_both)]
        );
    }

    #[test]
    fn part_ends_at_its_first_failure_and_the_lane_goes_on() {
        let result = "echo 'test result: ok. 2 passed; 0 failed; 0 ignored'";
        let commands = vec![shell(result), shell("echo bad >&2; exit 3"), shell("echo never")];
        let lane = vec![
            Part::new("broken", Ok(commands)),
            Part::new("fine", Ok(vec![shell(result)])),
            Part::new("none", Err(anyhow::anyhow!("no toolchain"))),
        ];
        let mut all = Vec::new();
        run(vec![lane], |part| all.push(part));
        assert_eq!(all[0].counts.passed, 2);
        assert!(all[0].error.as_deref().is_some_and(|error| error.contains("exit 3")));
        assert!(all[0].lines.contains(&"bad".to_owned()), "{:?}", all[0].lines);
        assert!(!all[0].lines.contains(&"never".to_owned()));
        assert!(all[1].error.is_none());
        assert_eq!(all[2].error.as_deref(), Some("no toolchain"));
    }
}
