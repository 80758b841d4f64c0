//! From the bytes of a component to code, in a child process or in this one.
//!
//! The compiler is by far the largest piece of code that an untrusted component meets, and
//! the hungriest. In a child process it can be stopped, what it takes is bounded, and its memory
//! goes with it; the artifact is then mapped from a file, so that code is clean page cache
//! instead of memory of ours. With a [`CodeCache`](crate::CodeCache) that file stays, and what is
//! there already is not compiled.
//!
//! [`child`](crate::child) has the other side of the process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use wasmtime::component::Component;

use crate::cache::Entry;
use crate::child::{self, ChildError, Refusal, Request, Task};
use crate::engine::Shared;
use crate::error::{LoadError, text};
use crate::limits::Limits;
use crate::settings::{self, Interruption};

/// Where components are compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compile {
    /// In a child process: the program (this very build of Innkeeper) is started with the one
    /// argument `compile`, which must lead to [`compile_child`](crate::compile_child).
    Child(PathBuf),
    /// In this process, where [`Limits::compile_time`] cannot be held: for
    /// tests, simulations and offline commands, whose components are their user's own.
    InProcess,
}

/// Size of an artifact, in bytes: two of them and their components fit the temporary folder of a
/// pod.
const ARTIFACT_BYTES_MAX: u64 = 192 << 20;

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

    let memory = shared.shares.compiler_bytes;
    let task = Task::Compile(shared.interruption);
    let stdin = Request::new(task, limit, memory, ARTIFACT_BYTES_MAX)
        .file(&shared.artifacts, bytes)
        .map_err(trouble("writing the component for the compiler"))?;
    let stdout = File::create_new(&artifact).map_err(trouble("making the artifact's file"))?;
    let _place = shared.compilers.enter();
    let written = stdout.try_clone().map_err(trouble("opening the artifact's file"))?;
    child::run(program, stdin, stdout, limit)
        // The child holds itself to that size; one that was taken over might not.
        .and_then(|()| match written.metadata() {
            Ok(file) if file.len() > ARTIFACT_BYTES_MAX => Err(ChildError::OutputTooLarge),
            _ => Ok(()),
        })
        .map_err(|error| refused(error, limit, memory))?;
    Ok(Artifact { path: artifact, _folder: folder })
}

/// What it says of the component that the compiler gave no artifact.
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

/// Maps the artifact that our child has written.
fn map(shared: &Shared, artifact: &Path) -> Result<Component, LoadError> {
    let error = match deserialize(&shared.wasm, artifact) {
        Ok(component) => return Ok(component),
        Err(error) => error,
    };
    // An engine without our pool maps it: then it is the component that has more parts than the
    // pool has room for.
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

/// In the child: from a component to its artifact.
pub(crate) fn compile_here(interruption: Interruption, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let engine = wasmtime::Engine::new(&settings::compiler(interruption))
        .map_err(|error| Refusal::Unavailable(format!("{error:#}")))?;
    engine.precompile_component(bytes).map_err(|error| Refusal::Input(format!("{error:#}")))
}
