//! The child process in which the host does all work that a guest can make expensive: the child's
//! side. `child_process` starts it, and describes what it reads and writes.
//!
//! Before the child reads the input of a guest, it bounds its own memory, time and output, and
//! gives up all access that its task does not need ([`confine`](crate::confine())).

use std::io::{self, BufRead as _, Read as _, Write as _};
use std::process::ExitCode;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::child_process::{
    EXIT_REFUSED, EXIT_UNAVAILABLE, Refusal, Request, SUBCOMMAND, Task, UNCONFINED,
};
use crate::confine::confine;
use crate::{compile, schema};

/// Address space of the child, in bytes, on any machine.
const ADDRESS_SPACE_BYTES: u64 = 8 << 30;

/// Runs the program of [`Compile::Child`](crate::Compile::Child) when its one argument is
/// `compile`: reads a request from standard input and writes the result to standard output.
///
/// The function first bounds the memory, output and time of this process, and gives up its access
/// to files, network and processes. The process must have one thread, and must not have used
/// standard input or output before.
pub fn compile_child() -> ExitCode {
    let (code, reason) = match work() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Refusal::Input(reason)) => (EXIT_REFUSED, reason),
        Err(Refusal::Unavailable(reason)) => (EXIT_UNAVAILABLE, reason),
    };
    // The parent gets the exit code even if the reason cannot be written.
    let _ = writeln!(io::stderr(), "{reason}");
    ExitCode::from(code)
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
