//! The child process in which the host does all work that a guest can make expensive, as the host
//! starts it: the child compiles a component, or evaluates a schema. `child` is the child's side.
//!
//! The child is `<program> compile`. It reads one line of JSON ([`Request`]) and then the input of
//! its task from standard input, writes the result to standard output, and otherwise the reason to
//! standard error.

mod gate;
mod memory;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::settings::Interruption;

pub(crate) use gate::Gate;
pub(crate) use memory::{Shares, shares};

/// The argument that makes the program of [`Compile::Child`](crate::Compile::Child) a child.
pub(crate) const SUBCOMMAND: &str = "compile";

/// Processor time of the child beyond its wall-clock limit: the parent's timer ends first, and this
/// limit holds if the parent has ended.
const CPU_SLACK_S: u64 = 5;

/// The part of the child's standard error that the host keeps, in bytes.
const REASON_BYTES_MAX: u64 = 8 << 10;

/// Exit status of a child that refuses the input (`EX_DATAERR`). 0 is success, and any other status
/// a failure of the child.
pub(crate) const EXIT_REFUSED: u8 = 65;

/// Exit status of a child that cannot work (`EX_OSERR`).
pub(crate) const EXIT_UNAVAILABLE: u8 = 71;

/// Exit status of a child that panicked: Cranelift panics without memory.
const EXIT_PANICKED: i32 = 101;

/// The prefix of a line of standard error that names a restriction which the kernel lacks.
pub(crate) const UNCONFINED: &str = "unconfined: ";

/// The first line of the child's input.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// The task of the child.
    pub(crate) task: Task,
    /// Processor time, in seconds.
    pub(crate) cpu_seconds: u64,
    /// Private memory of the child, in bytes.
    pub(crate) memory_bytes: u64,
    /// Size of the result, in bytes.
    pub(crate) output_bytes: u64,
}

/// The task of a child.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Task {
    /// Compiles the component that follows; the result is the artifact.
    Compile(Interruption),
    /// Evaluates the schema that follows against the document that follows it; the result is a
    /// `Result<(), SchemaError>` as JSON.
    Validate,
}

/// The reason why a child gave no result.
#[derive(Debug)]
pub(crate) enum ChildError {
    /// The child ran longer than its limit, and the host stopped it.
    TimedOut,
    /// The child refuses the input, for this reason.
    Refused(String),
    /// The result would be larger than [`Request::output_bytes`].
    OutputTooLarge,
    /// The child crashed on the input.
    Crashed(String),
    /// Another process or the kernel killed the child: the kernel does if memory is short.
    Killed,
    /// The child could not work, for a reason that the input does not cause.
    Unavailable(String),
}

impl Request {
    /// A request with a limit of wall-clock time.
    pub(crate) fn new(task: Task, limit: Duration, memory_bytes: u64, output_bytes: u64) -> Self {
        let cpu_seconds = limit.as_secs().saturating_add(CPU_SLACK_S);
        Self { task, cpu_seconds, memory_bytes, output_bytes }
    }

    /// Writes the child's input to a file without a name in `folder`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn file(&self, folder: &Path, input: &[u8]) -> io::Result<File> {
        let mut file = tempfile::tempfile_in(folder)?;
        serde_json::to_writer(&mut file, self)?;
        file.write_all(b"\n")?;
        file.write_all(input)?;
        file.rewind()?;
        Ok(file)
    }
}

/// Starts the program as a child and waits until it has written its result, for `limit`.
///
/// # Errors
/// [`ChildError`] if the child wrote no result.
pub(crate) fn run(
    program: &Path,
    input: File,
    output: File,
    limit: Duration,
) -> Result<(), ChildError> {
    let mut child = Command::new(program)
        .arg(SUBCOMMAND)
        .env_clear()
        .current_dir("/")
        // The host stops the child together with all processes that it starts.
        .process_group(0)
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            ChildError::Unavailable(format!("starting {}: {error}", program.display()))
        })?;
    match finish(&mut child, limit) {
        Ok(Some((status, reason))) => classify_exit(status, &without_restrictions(&reason)),
        Ok(None) => Err(ChildError::TimedOut),
        Err(error) => {
            // A failing kill adds nothing to this error.
            let _ = stop(&mut child);
            Err(ChildError::Unavailable(format!("waiting for the compiler: {error}")))
        }
    }
}

/// Removes the lines that name a missing restriction, and logs the first of them once.
fn without_restrictions(reason: &str) -> String {
    static LOGGED: Once = Once::new();
    let mut rest = Vec::new();
    for line in reason.lines() {
        match line.strip_prefix(UNCONFINED) {
            Some(what) => LOGGED.call_once(|| {
                tracing::warn!(
                    "compilers of this host are not fully confined: {what}; run a kernel with \
                     Landlock and seccomp"
                );
            }),
            None => rest.push(line),
        }
    }
    rest.join("\n")
}

fn stop(child: &mut Child) -> io::Result<()> {
    let group = rustix::process::Pid::from_child(child);
    // Without its group, at least the child itself is stopped.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    child.kill()?;
    child.wait().map(drop)
}

/// Waits until the child ends, for `limit`, and then stops it; `None` if it was stopped.
fn finish(child: &mut Child, limit: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    let Some(stderr) = child.stderr.take() else {
        return Err(io::Error::other("its standard error cannot be read"));
    };
    match read_in_thread(stderr)?.recv_timeout(limit) {
        Ok(reason) => Ok(Some((child.wait()?, reason))),
        Err(RecvTimeoutError::Disconnected) => Ok(Some((child.wait()?, String::new()))),
        Err(RecvTimeoutError::Timeout) => stop(child).map(|()| None),
    }
}

/// Reads a child's standard error on a thread, to its end: then the child has ended too.
fn read_in_thread(mut stderr: ChildStderr) -> io::Result<Receiver<String>> {
    let (send, receive) = channel();
    thread::Builder::new().name("compile".into()).spawn(move || {
        let mut reason = Vec::new();
        // An unreadable part is missing from an error's text only.
        let _ = stderr.by_ref().take(REASON_BYTES_MAX).read_to_end(&mut reason);
        let _ = io::copy(&mut stderr, &mut io::sink());
        let _ = send.send(String::from_utf8_lossy(&reason).trim().to_owned());
    })?;
    Ok(receive)
}

/// The result of the child, by its exit status.
fn classify_exit(status: ExitStatus, reason: &str) -> Result<(), ChildError> {
    use rustix::process::Signal;

    if status.success() {
        return Ok(());
    }
    if status.code() == Some(EXIT_REFUSED.into()) {
        return Err(ChildError::Refused(reason.to_owned()));
    }
    let crashed = |what: String| Err(ChildError::Crashed(what));
    if status.code() == Some(EXIT_PANICKED) {
        return crashed(reason.to_owned());
    }
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => Err(ChildError::TimedOut),
        Some(Signal::XFSZ) => Err(ChildError::OutputTooLarge),
        Some(Signal::KILL) => Err(ChildError::Killed),
        // Rust aborts without memory; the input made the child need that much.
        Some(Signal::ABORT) => crashed(reason.to_owned()),
        Some(Signal::SEGV | Signal::ILL | Signal::FPE | Signal::SYS | Signal::TRAP) => {
            crashed(format!("{status}, {reason}"))
        }
        // A shutdown of the host may stop its children too, and a disk may fail.
        _ => Err(ChildError::Unavailable(format!("the compiler ended with {status} ({reason})"))),
    }
}

/// The reason why the child writes no result, on the child's side.
pub(crate) enum Refusal {
    /// The input is invalid.
    Input(String),
    /// The child cannot work.
    Unavailable(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}
