//! From the bytes of a component or a core module to code, in a child process or in this one.
//!
//! The compiler is by far the largest code that reads an untrusted component, and takes the most
//! memory. The host can stop a child process and bound its resources, and gets the memory back when
//! the child ends. The host maps the artifact from a file, so the code is clean page cache instead
//! of the host's own memory. A [`CodeCache`](crate::CodeCache) keeps that file, and the host
//! compiles no component whose code it has.
//!
//! `child` has the child's side.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::cache::Entry;
use crate::child_process::{self, ChildError, Refusal, Request, Task};
use crate::code::Code;
use crate::error::{LoadError, text};
use crate::format::Format;
use crate::limits::Limits;
use crate::runtime::Runtime;
use crate::settings::{self, Compile, Interruption};

/// Size of an artifact, in bytes: two of them and their components fit the temporary folder of a
/// pod.
const ARTIFACT_BYTES_MAX: u64 = 192 << 20;

/// Refuses bytes that are too large or no WebAssembly, before the compiler reads them.
///
/// # Errors
/// [`LoadError::TooLarge`] and [`LoadError::NotAComponent`].
pub(crate) fn check(bytes: &[u8], limits: &Limits) -> Result<Format, LoadError> {
    if bytes.len() > limits.component_bytes {
        return Err(LoadError::TooLarge { bytes: bytes.len(), max: limits.component_bytes });
    }
    Format::of(bytes)
}

/// The code of a guest, from the cache or compiled; `digest` is the SHA-256 of its bytes.
///
/// # Errors
/// [`LoadError`] if the bytes cannot be compiled or the code not mapped.
pub(crate) fn code(
    runtime: &Runtime,
    (format, bytes): (Format, &[u8]),
    digest: &[u8; 32],
    limits: &Limits,
) -> Result<Code, LoadError> {
    let cache = runtime.cache.as_ref();
    let cached = cache.and_then(|cache| cache.entry(&runtime.wasm, format, digest));
    if let Some(code) = cached.as_ref().and_then(|entry| entry.fetch(&runtime.wasm)) {
        return Ok(code);
    }
    match &runtime.compile {
        Compile::InProcess => in_process(runtime, (format, bytes), cached.as_ref()),
        Compile::Child(program) => {
            let artifact = in_child(runtime, program, bytes, limits.compile_time)?;
            if let Some(code) = cached.and_then(|entry| artifact.keep(runtime, &entry)) {
                return Ok(code);
            }
            map(runtime, format, &artifact.path)
        }
    }
}

fn in_process(
    runtime: &Runtime,
    (format, bytes): (Format, &[u8]),
    cached: Option<&Entry<'_>>,
) -> Result<Code, LoadError> {
    let compiled = Code::compile(&runtime.wasm, format, bytes)
        .map_err(|error| LoadError::CompileFailed { what: text(format!("{error:#}")) })?;
    let kept = cached.and_then(|entry| {
        let artifact = compiled.serialize().ok()?;
        entry.keep(&runtime.wasm, &mut artifact.as_slice(), artifact.len() as u64)
    });
    Ok(kept.unwrap_or(compiled))
}

/// The code that a child has compiled, in a folder of its own. The drop deletes the folder.
struct Artifact {
    path: PathBuf,
    _folder: TempDir,
}

impl Artifact {
    fn keep(&self, runtime: &Runtime, entry: &Entry<'_>) -> Option<Code> {
        // An unreadable file cannot be mapped either, and that error says why.
        let mut file = File::open(&self.path).ok()?;
        let bytes = file.metadata().ok()?.len();
        entry.keep(&runtime.wasm, &mut file, bytes)
    }
}

fn in_child(
    runtime: &Runtime,
    program: &Path,
    bytes: &[u8],
    limit: Duration,
) -> Result<Artifact, LoadError> {
    let failed = |doing: &'static str| {
        move |error: io::Error| LoadError::Compiler { what: format!("{doing}: {error}") }
    };
    // No other user can enter the folder. A mapped artifact stays mapped after its deletion.
    let folder = tempfile::Builder::new()
        .prefix("innkeeper-compile-")
        .tempdir_in(&runtime.artifacts)
        .map_err(|error| LoadError::Compiler {
            what: format!("no folder for the artifact in {}: {error}", runtime.artifacts.display()),
        })?;
    let artifact = folder.path().join("artifact");

    let memory = runtime.shares.compiler_bytes;
    let task = Task::Compile(runtime.interruption);
    let stdin = Request::new(task, limit, memory, ARTIFACT_BYTES_MAX)
        .file(&runtime.artifacts, bytes)
        .map_err(failed("writing the component for the compiler"))?;
    let stdout = File::create_new(&artifact).map_err(failed("making the artifact's file"))?;
    let _place = runtime.compilers.enter();
    let written = stdout.try_clone().map_err(failed("opening the artifact's file"))?;
    child_process::run(program, stdin, stdout, limit)
        // A child that runs an attacker's code may not respect its own limit.
        .and_then(|()| match written.metadata() {
            Ok(file) if file.len() > ARTIFACT_BYTES_MAX => Err(ChildError::OutputTooLarge),
            _ => Ok(()),
        })
        .map_err(|error| refused(error, limit, memory))?;
    Ok(Artifact { path: artifact, _folder: folder })
}

/// The error of a component for which the child gave no artifact.
fn refused(error: ChildError, limit: Duration, memory: u64) -> LoadError {
    match error {
        ChildError::TimedOut => LoadError::CompileTimeout { limit },
        ChildError::Refused(reason) => LoadError::CompileFailed { what: text(reason) },
        ChildError::OutputTooLarge => LoadError::CompileFailed {
            what: format!("its code would have more than {ARTIFACT_BYTES_MAX} bytes"),
        },
        ChildError::Crashed(reason) => LoadError::CompileFailed {
            what: text(format!(
                "the compiler gave up, which may take {memory} bytes, a part of the memory of the \
                 host's container ({reason})"
            )),
        },
        ChildError::Killed => LoadError::CompileKilled,
        ChildError::Unavailable(what) => LoadError::Compiler { what: text(what) },
    }
}

/// Maps the artifact that the child has written.
fn map(runtime: &Runtime, format: Format, artifact: &Path) -> Result<Code, LoadError> {
    let error = match deserialize(&runtime.wasm, format, artifact) {
        Ok(code) => return Ok(code),
        Err(error) => error,
    };
    // If an engine without the pool maps it, the component has more parts than fit the pool.
    let without_pool = wasmtime::Engine::new(&settings::compiler(runtime.interruption));
    if without_pool.is_ok_and(|engine| deserialize(&engine, format, artifact).is_ok()) {
        return Err(LoadError::CompileFailed { what: text(format!("{error:#}")) });
    }
    Err(LoadError::Compiler {
        what: text(format!(
            "the artifact in {} cannot be mapped: {error:#} (is its file system mounted noexec, \
             or was the program replaced by another release?)",
            runtime.artifacts.display()
        )),
    })
}

fn deserialize(wasm: &wasmtime::Engine, format: Format, artifact: &Path) -> wasmtime::Result<Code> {
    // SAFETY: the file must be an artifact of this build of wasmtime that nobody changes while
    // it is mapped. The host's own child wrote it and ended with success, in a folder that the
    // host made for it and that no other user can enter. No other process knows its name, and the
    // caller of `map`, the only caller of this function, drops the folder. wasmtime itself refuses
    // an artifact of another version or of other settings (if the program file was replaced).
    #[expect(unsafe_code, reason = "mapping native code is unsafe by nature")]
    unsafe {
        Code::map(wasm, format, artifact)
    }
}

/// Compiles a component or a core module to its artifact, in the child.
///
/// # Errors
/// [`Refusal`].
pub(crate) fn compile_here(interruption: Interruption, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let format = Format::of(bytes).map_err(|error| Refusal::Input(error.to_string()))?;
    let engine = wasmtime::Engine::new(&settings::compiler(interruption))
        .map_err(|error| Refusal::Unavailable(format!("{error:#}")))?;
    Code::artifact(&engine, format, bytes).map_err(|error| Refusal::Input(format!("{error:#}")))
}
