//! From the bytes of a component to code, in a child process or in this one.
//!
//! The compiler is by far the largest piece of code that an untrusted component meets, and
//! the hungriest. In a child process it can be stopped, what it takes is bounded, and its memory
//! goes with it; the artifact is then mapped from a file, so that code is clean page cache
//! instead of memory of ours. With a [`CodeCache`](crate::CodeCache) that file stays, and what is
//! there already is not compiled.
//!
//! The child is `<program> compile`: standard input is one line of JSON ([`Request`]) and then
//! the component, standard output the artifact, standard error the reason if there is none.

use std::fs::File;
use std::io::{self, BufRead, Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use wasmtime::component::Component;

use crate::cache::Entry;
use crate::engine::Shared;
use crate::error::{LoadError, text};
use crate::limits::Limits;
use crate::settings::{self, Interruption};

/// Where components are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compile {
    /// In a child process: the program (this very build of Innkeeper) is started with the one
    /// argument `compile`, which must lead to [`compile_child`].
    Child(PathBuf),
    /// In this process, where [`Limits::compile_time`] cannot be held: for
    /// tests, simulations and offline commands, whose components are their user's own.
    InProcess,
}

/// The argument that makes the program of [`Compile::Child`] a compiler.
const SUBCOMMAND: &str = "compile";

/// Address space of the child, in bytes. The largest component within the default limits
/// takes about a tenth.
const CHILD_ADDRESS_SPACE_BYTES: u64 = 8 << 30;

/// Size of an artifact, in bytes.
const ARTIFACT_BYTES_MAX: u64 = 1 << 30;

/// Processor time of the child beyond its wall-clock limit: our own timer comes first, this
/// one holds if we are gone.
const CHILD_CPU_SLACK_S: u64 = 5;

/// What is read of the child's standard error, in bytes.
const REASON_BYTES_MAX: u64 = 8 << 10;

/// Exit status of a child that refuses the component (`EX_DATAERR`); 0 is success and any
/// other one trouble of the child.
const EXIT_REFUSED: u8 = 65;

/// Exit status of a child that cannot work (`EX_OSERR`).
const EXIT_TROUBLE: u8 = 71;

/// The first line of what the child reads.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    interruption: Interruption,
    cpu_seconds: u64,
}

/// Refuses what is too large, or something else altogether, before any compiler sees it.
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    if bytes.len() > limits.component_bytes {
        return Err(LoadError::TooLarge { bytes: bytes.len(), max: limits.component_bytes });
    }
    check_preamble(bytes)
}

/// The code of a component, out of the cache or compiled as the engine says; `digest` is
/// the SHA-256 of the component.
pub(crate) fn component(
    shared: &Shared,
    bytes: &[u8],
    digest: &[u8; 32],
    limits: &Limits,
) -> Result<Component, LoadError> {
    let cached = shared.cache.as_ref().and_then(|cache| cache.entry(&shared.wasm, digest));
    if let Some(component) = cached.as_ref().and_then(|entry| entry.fetch(&shared.wasm)) {
        return Ok(component);
    }
    match &shared.compile {
        Compile::InProcess => in_process(shared, bytes, cached.as_ref()),
        Compile::Child(program) => {
            let artifact = in_child(shared, program, bytes, limits.compile_time)?;
            if let Some(component) = cached.and_then(|entry| artifact.keep(shared, &entry)) {
                return Ok(component);
            }
            map(shared, &artifact.path)
        }
    }
}

fn in_process(
    shared: &Shared,
    bytes: &[u8],
    cached: Option<&Entry<'_>>,
) -> Result<Component, LoadError> {
    let compiled = Component::from_binary(&shared.wasm, bytes)
        .map_err(|error| LoadError::CompileFailed { what: text(format!("{error:#}")) })?;
    let kept = cached.and_then(|entry| {
        let artifact = compiled.serialize().ok()?;
        entry.keep(&shared.wasm, &mut artifact.as_slice(), artifact.len() as u64)
    });
    Ok(kept.unwrap_or(compiled))
}

fn check_preamble(bytes: &[u8]) -> Result<(), LoadError> {
    const MAGIC: &[u8] = b"\0asm";
    /// Version 13 of the binary format, layer 1: a component.
    const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];
    /// Version 1, layer 0: a core module.
    const MODULE: &[u8] = &[1, 0, 0, 0];
    const GZIP: &[u8] = &[0x1f, 0x8b];

    let what = match bytes.strip_prefix(MAGIC) {
        Some(rest) if rest.starts_with(COMPONENT) => return Ok(()),
        Some(rest) if rest.starts_with(MODULE) => {
            "this is a core module; make a component of it (`wasm-tools component new`)".to_owned()
        }
        Some(_) => "this is WebAssembly of another binary format".to_owned(),
        None if bytes.is_empty() => "there are no bytes".to_owned(),
        None if bytes.starts_with(GZIP) => "this is compressed by gzip".to_owned(),
        None => format!(
            "the bytes start with {:02x?} instead of [00, 61, 73, 6d]",
            &bytes[..bytes.len().min(MAGIC.len())]
        ),
    };
    Err(LoadError::NotAComponent { what })
}

/// What a child has compiled, in a folder that goes with it.
struct Artifact {
    path: PathBuf,
    _folder: TempDir,
}

impl Artifact {
    fn keep(&self, shared: &Shared, entry: &Entry<'_>) -> Option<Component> {
        // What cannot be read here cannot be mapped either, and that says why.
        let mut file = File::open(&self.path).ok()?;
        let bytes = file.metadata().ok()?.len();
        entry.keep(&shared.wasm, &mut file, bytes)
    }
}

fn in_child(
    shared: &Shared,
    program: &Path,
    bytes: &[u8],
    limit: Duration,
) -> Result<Artifact, LoadError> {
    let trouble = |doing: &'static str| {
        move |error: io::Error| LoadError::Compiler { what: format!("{doing}: {error}") }
    };
    // Nobody but this user can enter the folder, and it goes with the artifact: what is mapped
    // stays mapped.
    let folder = tempfile::Builder::new()
        .prefix("innkeeper-compile-")
        .tempdir_in(&shared.artifacts)
        .map_err(|error| LoadError::Compiler {
            what: format!("no folder for the artifact in {}: {error}", shared.artifacts.display()),
        })?;
    let artifact = folder.path().join("artifact");

    let request = Request {
        interruption: shared.interruption,
        cpu_seconds: limit.as_secs().saturating_add(CHILD_CPU_SLACK_S),
    };
    let stdin = request_file(&shared.artifacts, &request, bytes)
        .map_err(trouble("writing the component for the compiler"))?;
    let stdout = File::create_new(&artifact).map_err(trouble("making the artifact's file"))?;
    let mut child = Command::new(program)
        .arg(SUBCOMMAND)
        .env_clear()
        .current_dir("/")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| LoadError::Compiler {
            what: format!("starting {}: {error}", program.display()),
        })?;

    let (status, reason) = match finish(&mut child, limit) {
        Ok(Some(finished)) => finished,
        Ok(None) => return Err(LoadError::CompileTimeout { limit }),
        Err(error) => {
            // Best effort: the error at hand says more than a failing kill.
            let _ = child.kill();
            let _ = child.wait();
            return Err(trouble("waiting for the compiler")(error));
        }
    };
    judge(status, &reason, limit)?;
    Ok(Artifact { path: artifact, _folder: folder })
}

/// A file without a name that holds what the child reads.
fn request_file(folder: &Path, request: &Request, bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(folder)?;
    serde_json::to_writer(&mut file, request)?;
    file.write_all(b"\n")?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Waits until the child ends, for `limit`; `None` if it was stopped then.
fn finish(child: &mut Child, limit: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    let Some(stderr) = child.stderr.take() else {
        return Err(io::Error::other("its standard error is not to be had"));
    };
    match read_aside(stderr)?.recv_timeout(limit) {
        Ok(reason) => Ok(Some((child.wait()?, reason))),
        Err(RecvTimeoutError::Disconnected) => Ok(Some((child.wait()?, String::new()))),
        Err(RecvTimeoutError::Timeout) => {
            child.kill()?;
            child.wait()?;
            Ok(None)
        }
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
fn judge(status: ExitStatus, reason: &str, limit: Duration) -> Result<(), LoadError> {
    use rustix::process::Signal;

    if status.success() {
        return Ok(());
    }
    if status.code() == Some(EXIT_REFUSED.into()) {
        return Err(LoadError::CompileFailed { what: text(reason) });
    }
    match status.signal() {
        Some(signal) if signal == Signal::XCPU.as_raw() => Err(LoadError::CompileTimeout { limit }),
        Some(signal) if signal == Signal::XFSZ.as_raw() => Err(LoadError::CompileFailed {
            what: format!("its code would have more than {ARTIFACT_BYTES_MAX} bytes"),
        }),
        // Rust aborts where memory ends; the component made the compiler want that much.
        Some(signal) if signal == Signal::ABORT.as_raw() => {
            Err(LoadError::CompileFailed { what: text(format!("the compiler gave up ({reason})")) })
        }
        _ => Err(LoadError::Compiler {
            what: text(format!("the compiler ended with {status} ({reason})")),
        }),
    }
}

/// Maps the artifact that our child has written.
fn map(shared: &Shared, artifact: &Path) -> Result<Component, LoadError> {
    let error = match deserialize(&shared.wasm, artifact) {
        Ok(component) => return Ok(component),
        Err(error) => error,
    };
    // An engine without our pool maps it: then it is the component that has more parts than the pool
    // has room for.
    let without_pool = wasmtime::Engine::new(&settings::compiler(shared.interruption));
    if without_pool.is_ok_and(|engine| deserialize(&engine, artifact).is_ok()) {
        return Err(LoadError::CompileFailed { what: text(format!("{error:#}")) });
    }
    Err(LoadError::Compiler {
        what: text(format!(
            "the artifact in {} cannot be mapped: {error:#} (is its file system mounted noexec, \
             or was the program replaced by another release?)",
            shared.artifacts.display()
        )),
    })
}

fn deserialize(wasm: &wasmtime::Engine, artifact: &Path) -> wasmtime::Result<Component> {
    // SAFETY: the file must be an artifact of this build of wasmtime that nobody changes while
    // it is mapped. It was written by our own child, which ended with success, in a folder
    // that we made for it and that no other user can enter; nobody else knows its name, and the
    // name goes when the caller of `map`, the only one who calls this, drops the folder. wasmtime
    // itself refuses an artifact of another version or of other settings (a program that was
    // replaced under us).
    #[expect(unsafe_code, reason = "mapping native code is unsafe by nature")]
    unsafe {
        Component::deserialize_file(wasm, artifact)
    }
}

/// What the program of [`Compile::Child`] does when its one argument is `compile`: reads a
/// component from standard input and writes its compiled form to standard output.
///
/// Bounds its own memory, output and processor time first. Nothing else may have been read from
/// standard input or written to standard output.
pub fn compile_child() -> ExitCode {
    let (code, reason) = match compile_here() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Refusal::Component(reason)) => (EXIT_REFUSED, reason),
        Err(Refusal::Trouble(reason)) => (EXIT_TROUBLE, reason),
    };
    // Whoever started us sees the code even if nobody reads the reason.
    let _ = writeln!(io::stderr(), "{reason}");
    ExitCode::from(code)
}

enum Refusal {
    Component(String),
    Trouble(String),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Trouble(error.to_string())
    }
}

fn compile_here() -> Result<(), Refusal> {
    let mut stdin = io::stdin().lock();
    let mut line = String::new();
    stdin.read_line(&mut line)?;
    let request: Request = serde_json::from_str(&line).map_err(|error| {
        Refusal::Trouble(format!("{SUBCOMMAND} is for Innkeeper's own use: {error}"))
    })?;
    bound_this_process(request.cpu_seconds)?;
    let mut bytes = Vec::new();
    stdin.read_to_end(&mut bytes)?;

    let engine = wasmtime::Engine::new(&settings::compiler(request.interruption))
        .map_err(|error| Refusal::Trouble(format!("{error:#}")))?;
    let artifact = engine
        .precompile_component(&bytes)
        .map_err(|error| Refusal::Component(format!("{error:#}")))?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&artifact)?;
    Ok(stdout.flush()?)
}

fn bound_this_process(cpu_seconds: u64) -> io::Result<()> {
    for (resource, limit) in [
        (Resource::As, CHILD_ADDRESS_SPACE_BYTES),
        (Resource::Fsize, ARTIFACT_BYTES_MAX),
        (Resource::Cpu, cpu_seconds),
        (Resource::Core, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}
