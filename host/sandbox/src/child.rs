//! The child process in which everything happens that a guest can make expensive: its component is
//! compiled there, and its schemas are evaluated.
//!
//! The child is `<program> compile`: standard input is one line of JSON ([`Request`]) and then the
//! input of the task, standard output is the result, standard error the reason if there is none.
//! Before the child reads the input of a guest, it bounds its own memory, time and output, and
//! gives up all that its task does not need ([`confine`](crate::confine())).

mod gate;
mod memory;

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::confine::confine;
use crate::settings::Interruption;
use crate::{compile, schema};

pub(crate) use gate::Gate;
pub(crate) use memory::{Shares, shares};

/// The argument that makes the program of [`Compile::Child`](crate::Compile::Child) a child.
const SUBCOMMAND: &str = "compile";

/// Address space of the child, in bytes, however much memory there is.
const ADDRESS_SPACE_BYTES: u64 = 8 << 30;

/// Processor time of the child beyond its wall-clock limit: the timer of the parent comes first,
/// this one holds if the parent is gone.
const CPU_SLACK_S: u64 = 5;

/// What is read of the child's standard error, in bytes.
const REASON_BYTES_MAX: u64 = 8 << 10;

/// Exit status of a child that refuses the input (`EX_DATAERR`); 0 is success and any other one
/// trouble of the child.
const EXIT_REFUSED: u8 = 65;

/// Exit status of a child that cannot work (`EX_OSERR`).
const EXIT_UNAVAILABLE: u8 = 71;

/// Exit status of a child that panicked: Cranelift does where memory ends.
const EXIT_PANICKED: i32 = 101;

/// Marks a line of standard error that says what the child could not give up.
const UNCONFINED: &str = "unconfined: ";

/// The first line of what the child reads.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request {
    /// What the child does.
    pub(crate) task: Task,
    /// Processor time, in seconds.
    pub(crate) cpu_seconds: u64,
    /// Memory that is the child's own, in bytes.
    pub(crate) memory_bytes: u64,
    /// Size of the result, in bytes.
    pub(crate) output_bytes: u64,
}

/// What a child does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Task {
    /// Compiles the component that follows; the result is the artifact.
    Compile(Interruption),
    /// Evaluates the schema that follows against the document that follows it; the result is a
    /// `Result<(), SchemaError>` as JSON.
    Validate,
}

/// Why a child gave no result.
#[derive(Debug)]
pub(crate) enum ChildError {
    /// The child ran longer than its limit, and was stopped.
    TimedOut,
    /// The child refuses the input, for this reason.
    Refused(String),
    /// The result would be larger than [`Request::output_bytes`].
    OutputTooLarge,
    /// The child broke down over the input.
    Crashed(String),
    /// Something else than its parent killed the child: the kernel, if memory is short.
    Killed,
    /// The child could not work. That is the host's trouble.
    Unavailable(String),
}

impl Request {
    /// A request with a limit of wall-clock time.
    pub(crate) fn new(task: Task, limit: Duration, memory_bytes: u64, output_bytes: u64) -> Self {
        let cpu_seconds = limit.as_secs().saturating_add(CPU_SLACK_S);
        Self { task, cpu_seconds, memory_bytes, output_bytes }
    }

    /// A file without a name in `folder` that holds what the child reads.
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
        // Whatever the child might start is stopped with it.
        .process_group(0)
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            ChildError::Unavailable(format!("starting {}: {error}", program.display()))
        })?;
    match finish(&mut child, limit) {
        Ok(Some((status, reason))) => classify_exit(status, &without_marks(&reason)),
        Ok(None) => Err(ChildError::TimedOut),
        Err(error) => {
            // Best effort: the error at hand says more than a failing kill.
            let _ = stop(&mut child);
            Err(ChildError::Unavailable(format!("waiting for the compiler: {error}")))
        }
    }
}

/// Takes the lines off that say what the child could not give up, and logs the first of them.
fn without_marks(reason: &str) -> String {
    static SAID: Once = Once::new();
    let mut rest = Vec::new();
    for line in reason.lines() {
        match line.strip_prefix(UNCONFINED) {
            Some(what) => SAID.call_once(|| {
                tracing::warn!(
                    "compilers of this host are confined less than they could be: {what}; run a \
                     kernel with Landlock and seccomp"
                );
            }),
            None => rest.push(line),
        }
    }
    rest.join("\n")
}

fn stop(child: &mut Child) -> io::Result<()> {
    let group = rustix::process::Pid::from_child(child);
    // The child itself is stopped even if its group is not to be had.
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    child.kill()?;
    child.wait().map(drop)
}

/// Waits until the child ends, for `limit`; `None` if it was stopped then.
fn finish(child: &mut Child, limit: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    let Some(stderr) = child.stderr.take() else {
        return Err(io::Error::other("its standard error is not to be had"));
    };
    match read_aside(stderr)?.recv_timeout(limit) {
        Ok(reason) => Ok(Some((child.wait()?, reason))),
        Err(RecvTimeoutError::Disconnected) => Ok(Some((child.wait()?, String::new()))),
        Err(RecvTimeoutError::Timeout) => stop(child).map(|()| None),
    }
}

/// Reads a child's standard error to its end, which is the end of the child too.
fn read_aside(mut stderr: ChildStderr) -> io::Result<Receiver<String>> {
    let (send, receive) = channel();
    thread::Builder::new().name("compile".into()).spawn(move || {
        let mut reason = Vec::new();
        // What cannot be read is missing from an error's text, no more.
        let _ = stderr.by_ref().take(REASON_BYTES_MAX).read_to_end(&mut reason);
        let _ = io::copy(&mut stderr, &mut io::sink());
        let _ = send.send(String::from_utf8_lossy(&reason).trim().to_owned());
    })?;
    Ok(receive)
}

/// What the end of the child means.
fn classify_exit(status: ExitStatus, reason: &str) -> Result<(), ChildError> {
    use rustix::process::Signal;

    if status.success() {
        return Ok(());
    }
    if status.code() == Some(EXIT_REFUSED.into()) {
        return Err(ChildError::Refused(reason.to_owned()));
    }
    let broke_down = |what: String| Err(ChildError::Crashed(what));
    if status.code() == Some(EXIT_PANICKED) {
        return broke_down(reason.to_owned());
    }
    match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::XCPU) => Err(ChildError::TimedOut),
        Some(Signal::XFSZ) => Err(ChildError::OutputTooLarge),
        Some(Signal::KILL) => Err(ChildError::Killed),
        // Rust aborts where memory ends; the input made the child want that much.
        Some(Signal::ABORT) => broke_down(reason.to_owned()),
        Some(Signal::SEGV | Signal::ILL | Signal::FPE | Signal::SYS | Signal::TRAP) => {
            broke_down(format!("{status}, {reason}"))
        }
        // The program that ends the host may end its children too, and a disk may fail.
        _ => Err(ChildError::Unavailable(format!("the compiler ended with {status} ({reason})"))),
    }
}

/// What the program of [`Compile::Child`](crate::Compile::Child) does when its one argument is
/// `compile`: reads a request from standard input and writes its result to standard output.
///
/// It bounds its own memory, output and time, and gives up files, network and processes first.
/// Nothing else may have been read from standard input or written to standard output, and the
/// process has one thread.
pub fn compile_child() -> ExitCode {
    let (code, reason) = match work() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Refusal::Input(reason)) => (EXIT_REFUSED, reason),
        Err(Refusal::Unavailable(reason)) => (EXIT_UNAVAILABLE, reason),
    };
    // The parent sees the exit code even if nobody reads the reason.
    let _ = writeln!(io::stderr(), "{reason}");
    ExitCode::from(code)
}

/// Why the child writes no result.
pub(crate) enum Refusal {
    /// The input cannot be worked on.
    Input(String),
    /// The child cannot work.
    Unavailable(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Unavailable(error.to_string())
    }
}

fn work() -> Result<(), Refusal> {
    let mut stdin = io::stdin().lock();
    let mut line = String::new();
    stdin.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line).map_err(|error| {
        Refusal::Unavailable(format!("{SUBCOMMAND} is for Innkeeper's own use: {error}"))
    })?;
    bound_this_process(&request)?;
    for what in confine() {
        let _ = writeln!(io::stderr(), "{UNCONFINED}{what}");
    }
    let mut input = Vec::new();
    stdin.read_to_end(&mut input)?;
    let output = match request.task {
        Task::Compile(interruption) => compile::compile_here(interruption, &input)?,
        Task::Validate => schema::validate_here(&input)?,
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&output)?;
    Ok(stdout.flush()?)
}

fn bound_this_process(request: &Request) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::As, ADDRESS_SPACE_BYTES),
        (Resource::Data, request.memory_bytes),
        (Resource::Fsize, request.output_bytes),
        (Resource::Cpu, request.cpu_seconds),
        (Resource::Core, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}
