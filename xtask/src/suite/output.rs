//! The output of a program that runs next to others: kept, to be shown as a whole.

use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::times::Line;
use crate::command::line;

/// A run of a program that ended.
pub(super) struct Run {
    /// Those of standard output and standard error, in the order of their arrival.
    pub(super) lines: Vec<Line>,
    pub(super) is_success: bool,
}

impl Run {
    /// Runs a command until its end. Its last line names the program if that failed.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub(super) fn of(command: &mut Command, name: &str) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let start = Instant::now();
        let mut child =
            command.spawn().with_context(|| format!("cannot run `{}`", line(command)))?;
        let lines = Mutex::new(Vec::new());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        thread::scope(|scope| {
            let errors = scope.spawn(|| stderr.map_or(Ok(()), |it| read(it, false, start, &lines)));
            let output = stdout.map_or(Ok(()), |it| read(it, true, start, &lines));
            errors.join().unwrap_or(Ok(())).and(output)
        })
        .with_context(|| format!("cannot read the output of `{}`", line(command)))?;
        let status = child.wait()?;
        let mut lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !status.success() {
            let text = format!("{name} failed ({status})");
            lines.push(Line { at: start.elapsed(), text, is_output: false });
        }
        Ok(Self { lines, is_success: status.success() })
    }

    /// All output.
    pub(super) fn text(&self) -> String {
        self.lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect()
    }
}

/// Reads lines until the end.
fn read(
    from: impl Read,
    is_output: bool,
    start: Instant,
    lines: &Mutex<Vec<Line>>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut bytes = Vec::new();
        if from.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_suffix('\n').unwrap_or(&text).to_owned();
        let line = Line { at: start.elapsed(), text, is_output };
        lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}
