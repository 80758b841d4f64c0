//! The SDKs of languages other than Rust, and their checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::language::{Language, PYTHON_SDK};
use super::tools::Tools;
use super::{UNITTEST, WIT};
use crate::command;

/// The commands that check the types of the SDKs and run their tests.
///
/// # Errors
/// If the tools are missing, or the bindings of the contract cannot be generated.
pub(crate) fn checks(root: &Path) -> Result<Vec<Command>> {
    let folder = root.join("guests/sdk-py");
    let tools = Tools::here(Language::Python, &folder)
        .context("the SDK for Python in guests/sdk-py needs these tools")?;
    let sources = root.join(PYTHON_SDK);
    let made = root.join("target/guests/sdk-py");
    let bindings = bindings(root, &tools, &made)?;
    let types = |files: &[&str]| {
        let mut types = tools.program("mypy");
        types.arg("--cache-dir").arg(made.join("mypy")).args(files).current_dir(&folder);
        let path = std::env::join_paths([&sources, &bindings])?;
        types.env("MYPYPATH", path);
        anyhow::Ok(types)
    };
    let mut tests = tools.program("python");
    tests.args(["-B", "-c", UNITTEST]).env("PYTHONPATH", &sources);
    tests.current_dir(folder.join("tests"));
    Ok(vec![types(&["--package", "innkeeper"])?, types(&["tests"])?, tests])
}

/// Generates what componentize-py would import, for the types of the imports and exports.
fn bindings(root: &Path, tools: &Tools, made: &Path) -> Result<PathBuf> {
    let bindings = made.join("bindings");
    if bindings.exists() {
        std::fs::remove_dir_all(&bindings)
            .with_context(|| format!("cannot remove {}", bindings.display()))?;
    }
    std::fs::create_dir_all(made).with_context(|| format!("cannot create {}", made.display()))?;
    let mut generate = tools.program("componentize-py");
    generate.args(["--quiet", "--world", "reconciler-guest", "--wit-path"]).arg(root.join(WIT));
    command::run(generate.arg("bindings").arg(&bindings))
        .context("cannot generate the bindings of the contract for Python")?;
    Ok(bindings)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sdk_and_guest_for_python_share_their_tools() {
        let root = crate::command::root();
        let read = |folder: &str| {
            std::fs::read_to_string(root.join(folder).join("requirements.txt")).unwrap()
        };
        assert_eq!(read("guests/sdk-py"), read("guests/examples/quota-py"));
    }
}
