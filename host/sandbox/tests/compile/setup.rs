//! Engines with this program as their compiler.

use std::path::{Path, PathBuf};

use innkeeper_sandbox::{Compile, Engine, Interruption};
use tempfile::TempDir;

/// An engine with its own folder for artifacts, and this program under `name` as compiler.
pub(crate) struct Setup {
    pub(crate) folder: TempDir,
    pub(crate) engine: Engine,
    _programs: TempDir,
}

pub(crate) fn setup(name: &str, interruption: Interruption) -> Setup {
    let programs = tempfile::tempdir().unwrap();
    let program = programs.path().join(name);
    std::os::unix::fs::symlink(std::env::current_exe().unwrap(), &program).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let engine = build(program, folder.path(), interruption);
    Setup { folder, engine, _programs: programs }
}

pub(crate) fn build(program: PathBuf, folder: &Path, interruption: Interruption) -> Engine {
    Engine::builder()
        .guests(2)
        .interruption(interruption)
        .compile(Compile::Child(program))
        .artifacts(folder)
        .build()
        .unwrap()
}
