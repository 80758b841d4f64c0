//! Helpers for the tests of the command.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use expect_test::Expect;
use tempfile::TempDir;

/// The folder in which the tests share compiled guests.
pub(crate) const CODE_CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/code-cache");

/// The command, with compiled guests from [`CODE_CACHE`].
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_innkeeper"));
    command.env("INNKEEPER_CACHE_DIR", CODE_CACHE).env("INNKEEPER_CACHE_MIB", "256");
    command
}

/// Runs the command.
pub(crate) fn innkeeper(arguments: &[&str]) -> Output {
    command()
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env_remove("RUST_LOG")
        .env_remove("INNKEEPER_SDK")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The path of a component of the repository.
pub(crate) fn component(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../guests/target/components")
        .join(format!("{name}.wasm"));
    assert!(
        path.exists(),
        "{} does not exist; run `cargo xtask guests` to build it",
        path.display()
    );
    path.to_str().unwrap().to_owned()
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The standard output of a successful call.
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = innkeeper(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Expects that a call fails with a status and an error. `hidden` replaces paths of this machine.
pub(crate) fn failed(arguments: &[&str], status: i32, hidden: &[(&str, &str)], expected: &Expect) {
    let output = innkeeper(arguments);
    let mut stderr = text(&output.stderr);
    for (path, name) in hidden {
        stderr = stderr.replace(path, name);
    }
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    assert_eq!(text(&output.stdout), "", "{arguments:?}");
    expected.assert_eq(&stderr);
}

/// A temporary folder of a test.
pub(crate) struct Files(pub(crate) TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}
