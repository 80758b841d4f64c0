//! `cargo xtask program`: the program of images, optimised by a profile of its work.
//!
//! A first build counts how often each part of the program runs, and a benchmark on a control plane
//! lets it work. The second build gets the counts: the compiler makes the parts that run often fast
//! and keeps them together, and the others small. So the program takes less CPU time, and the
//! kernel loads fewer of its pages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use innkeeper_toolchain::command::ask;
use sha2::{Digest as _, Sha256};

use crate::command::{cargo, root, run as run_command, target};
use crate::guests;
use crate::progress::{Steps, say};

/// The profile of the program in Cargo.toml.
const IMAGE: &str = "image";

/// The program.
const PROGRAM: &str = "innkeeper-operator";

/// The variable by which the benchmark gets the program.
pub(crate) const OPERATOR: &str = "INNKEEPER_OPERATOR_BIN";

/// The guests of the benchmark.
pub(crate) const GUESTS: [&str; 2] = ["bench-guest", "bench-labelled"];

/// The arguments of the benchmark while the program counts: it creates and changes resources,
/// repairs drift, swaps guests, and restarts.
const WORK: [&str; 6] = ["--resources", "300", "--samples", "50", "--swaps", "4"];

/// The number of steps of [`build`].
pub(crate) const STEPS: usize = 3;

/// The program without a profile of its work.
pub(crate) fn plain() -> PathBuf {
    target().join(IMAGE).join(PROGRAM)
}

/// The program that [`build`] writes.
pub(crate) fn guided() -> PathBuf {
    folder().join(PROGRAM)
}

/// The folder of the program and of its profiles.
fn folder() -> PathBuf {
    target().join("guided")
}

/// Builds the program, and says where it is.
///
/// # Errors
/// See [`build`].
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::new(1 + STEPS);
    steps.next("guests of the benchmark");
    guests::build(&root(), Some(&GUESTS))?;
    steps.end("built");
    build(&mut steps)?;
    let program = guided().display().to_string();
    say(&format!("{program}: `cargo xtask image --program {program}` makes an image of it"));
    Ok(())
}

/// Builds the program twice, and runs a benchmark in between. [`GUESTS`] have to be built.
///
/// # Errors
/// If `llvm-profdata` is missing, a build fails, or the benchmark does.
pub(crate) fn build(steps: &mut Steps) -> Result<()> {
    let toolchain = Toolchain::of_rustc()?;
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;

    steps.next("the program that counts (about 15 min the first time)");
    let counts = folder.join("counts");
    let generate = format!("-Cprofile-generate={}", counts.display());
    let counting = compile(&toolchain, &generate, &folder.join("counting"))?;
    steps.end("built");

    steps.next("a benchmark with it on a control plane (about 2 min, and 8 the first time)");
    // The counts of a program serve until it is another one.
    let profile = folder.join(format!("{}.profdata", hash(&counting)?));
    if profile.exists() {
        steps.end("counted before");
    } else {
        if counts.exists() {
            fs::remove_dir_all(&counts).with_context(|| counts.display().to_string())?;
        }
        let bench = ["run", "--package", "innkeeper-cluster-tests", "--bin", "bench", "--"];
        let mut bench = cargo(&bench);
        // The benchmark also needs a command of the whole program.
        run_command(&mut cargo(&["build", "--bin", "innkeeper"]))?;
        let programs = [("INNKEEPER_BIN", target().join("debug/innkeeper")), (OPERATOR, counting)];
        run_command(bench.args(WORK).envs(programs))?;
        toolchain.merge(&counts, &profile)?;
        steps.end("counted");
    }

    steps.next("the program of images (about 15 min the first time)");
    let profiled = format!("-Cprofile-use={}", profile.display());
    let built = compile(&toolchain, &profiled, &folder.join("profiled"))?;
    copy(&built, &guided())?;
    steps.end("built");
    Ok(())
}

/// Builds the program without a profile of its work.
///
/// # Errors
/// If it does not build.
pub(crate) fn build_plain() -> Result<()> {
    let image = ["build", "--profile", IMAGE, "--package", "innkeeper-cli", "--bin", PROGRAM];
    run_command(&mut cargo(&image))
}

/// Compiles the program with a flag of rustc, in a folder of its own: another flag in the same
/// folder compiles everything again. The named target keeps the flag away from build scripts and
/// procedural macros, which run in the compiler.
fn compile(toolchain: &Toolchain, flag: &str, folder: &Path) -> Result<PathBuf> {
    let triple = &*toolchain.triple;
    let mut build = cargo(&["build", "--locked", "--profile", IMAGE, "--target", triple]);
    build.args(["--package", "innkeeper-cli", "--bin", PROGRAM, "--target-dir"]).arg(folder);
    run_command(build.env("RUSTFLAGS", flag))?;
    Ok(folder.join(triple).join(IMAGE).join(PROGRAM))
}

/// What a build with a profile needs of the toolchain.
struct Toolchain {
    /// The target for which it compiles by default.
    triple: String,
    /// `llvm-profdata`, which adds up the counts of processes.
    profdata: PathBuf,
}

impl Toolchain {
    /// That of the `rustc` that cargo runs.
    fn of_rustc() -> Result<Self> {
        let version = ask(Command::new("rustc").arg("-vV"))?;
        let (triple, major) = target_and_llvm(&version)?;
        let sysroot = ask(Command::new("rustc").args(["--print", "sysroot"]))?;
        let component = Path::new(sysroot.trim()).join("lib/rustlib").join(triple);
        let of_component = component.join("bin/llvm-profdata");
        let of_system = PathBuf::from(format!("llvm-profdata-{major}"));
        let runs = |program: &Path| ask(Command::new(program).arg("--version")).is_ok();
        let Some(profdata) = [of_component, of_system].into_iter().find(|one| runs(one)) else {
            bail!(
                "llvm-profdata of LLVM {major} is not there: run `rustup component add llvm-tools`, or install the package llvm-{major} of your system"
            );
        };
        Ok(Self { triple: triple.to_owned(), profdata })
    }

    /// Adds up the counts in a folder.
    fn merge(&self, counts: &Path, profile: &Path) -> Result<()> {
        let part = profile.with_extension("part");
        let mut merge = Command::new(&self.profdata);
        run_command(merge.arg("merge").arg("-o").arg(&part).arg(counts))?;
        fs::rename(&part, profile).with_context(|| profile.display().to_string())
    }
}

/// The target for which rustc compiles by default, and the major version of its LLVM, as
/// `rustc -vV` prints them.
fn target_and_llvm(version: &str) -> Result<(&str, &str)> {
    let value = |name: &str| version.lines().find_map(|line| line.strip_prefix(name));
    let triple = value("host: ").context("`rustc -vV` names no host")?;
    let llvm = value("LLVM version: ").context("`rustc -vV` names no LLVM")?;
    Ok((triple, llvm.split('.').next().unwrap_or_default()))
}

/// The hash of a file, as a name.
fn hash(file: &Path) -> Result<String> {
    let content = fs::read(file).with_context(|| file.display().to_string())?;
    Ok(hex::encode(Sha256::digest(content)))
}

/// Replaces a file that may be running.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let next = to.with_extension("next");
    fs::copy(from, &next).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::rename(&next, to).with_context(|| format!("cannot write {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_of_rustc_names_the_target_and_llvm() {
        let version = "rustc 1.93.0 (254b59607 2026-01-19)\nbinary: rustc\nhost: aarch64-unknown-linux-gnu\nrelease: 1.93.0\nLLVM version: 21.1.8\n";
        assert_eq!(target_and_llvm(version).unwrap(), ("aarch64-unknown-linux-gnu", "21"));
        assert!(target_and_llvm("rustc 1.93.0").unwrap_err().to_string().contains("no host"));
    }
}
