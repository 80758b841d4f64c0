//! The SDKs of languages other than Rust, and their checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::language::{Language, PYTHON_SDK, TYPESCRIPT_SDK, UNITTEST, WIT};
use super::tools::Tools;
use super::workshop;
use crate::command;

/// The folder of the SDK for Python with the test of its package.
const PACKAGING: &str = "packaging";

/// The commands that check the types of the SDKs and run their tests.
///
/// # Errors
/// If the tools are missing, or the bindings of the contract cannot be generated.
pub(crate) fn checks(root: &Path) -> Result<Vec<Command>> {
    let mut checks = python_checks(root)?;
    let tools = Tools::here(Language::TypeScript, &root.join("guests/examples/pages-ts"))
        .context("the SDK for TypeScript in guests/sdk-ts needs these tools")?;
    let folder = copy(root, Language::TypeScript, &tools)?;
    let mut typescript = typescript_checks(&tools);
    for check in &mut typescript {
        check.current_dir(&folder);
    }
    checks.extend(typescript);
    Ok(checks)
}

/// Copies the SDK of a language, if it has one, to where builds and tests of guests find it: the
/// interpreters write next to what they import, and node finds modules by their folder.
///
/// # Errors
/// If a file cannot be copied.
pub(super) fn copy(root: &Path, language: Language, tools: &Tools) -> Result<PathBuf> {
    // From a copy of a guest, the paths to it are those from the guest.
    let (from, to) = match language {
        Language::Python => (PYTHON_SDK, "target/sdk-py/src"),
        Language::TypeScript => (TYPESCRIPT_SDK, "target/sdk-ts"),
        Language::JavaScript | Language::Go => return Ok(PathBuf::new()),
    };
    let to = root.join(to);
    workshop::copy(&root.join(from), &to)?;
    tools.link_into(&to)?;
    Ok(to)
}

/// The commands that check the types of a folder in TypeScript and run its tests.
pub(super) fn typescript_checks(tools: &Tools) -> Vec<Command> {
    let types = tools.program("tsc");
    let mut tests = Command::new("node");
    tests.args(["test.mjs", "--test-reporter=tap"]);
    vec![types, tests]
}

fn python_checks(root: &Path) -> Result<Vec<Command>> {
    let folder = root.join("guests/sdk-py");
    let tools = Tools::here(Language::Python, &folder)
        .context("the SDK for Python in guests/sdk-py needs these tools")?;
    let sources = root.join(PYTHON_SDK);
    let made = root.join("target/guests/sdk-py");
    let bindings = bindings(root, &tools, &made)?;
    let path = std::env::join_paths([&sources, &bindings])?;
    let types = |files: &[&str]| {
        let mut types = tools.program("mypy");
        types.arg("--cache-dir").arg(made.join("mypy")).args(files).current_dir(&folder);
        types.env("MYPYPATH", &path);
        types
    };
    let mut tests = tools.program("python");
    tests.args(["-B", "-c", UNITTEST]).env("PYTHONPATH", &path);
    tests.current_dir(folder.join("tests"));
    let checked = [types(&["--package", "innkeeper"]), types(&["tests"]), types(&[PACKAGING])];
    Ok(checked.into_iter().chain([tests, package_test(&folder)?]).collect())
}

/// The command that builds and installs the package of the SDK for Python, by tools of its own:
/// guests need none of them.
fn package_test(sdk: &Path) -> Result<Command> {
    let folder = sdk.join(PACKAGING);
    let tools = Tools::here(Language::Python, &folder)
        .context("the test of the package guests/sdk-py needs these tools")?;
    let mut test = tools.program("python");
    test.args(["-B", "-c", UNITTEST]).current_dir(folder);
    Ok(test)
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
