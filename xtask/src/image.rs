//! `cargo xtask image`: Innkeeper's own image.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use innkeeper_controlplane::Background;
use innkeeper_images::{Sources, recipes};
use innkeeper_node::background;

use crate::program;
use crate::progress::say;

/// What to do with it.
#[derive(Args)]
pub(crate) struct Task {
    /// Write its files into this folder, which must not be there
    #[arg(long, conflicts_with = "push")]
    tree: Option<PathBuf>,
    /// Push it by this name to the registry of `cargo xtask cluster up --node`
    #[arg(long)]
    push: Option<String>,
    /// The program, built by `cargo build --profile image --bin innkeeper-operator` or, for less
    /// CPU time and memory, by `cargo xtask program`
    #[arg(long)]
    program: Option<PathBuf>,
}

/// Makes it of the program, and says what it is.
///
/// # Errors
/// If the program does not build, or the image cannot be written.
pub(crate) fn run(task: &Task) -> Result<()> {
    let program = task.program.clone().unwrap_or_else(program::plain);
    if !program.is_file() {
        bail!(
            "{} is not there: run `cargo build --profile image --bin innkeeper-operator` first",
            program.display()
        );
    }
    let sources = Sources::default();
    if let Some(folder) = &task.tree {
        if folder.exists() {
            bail!("{} is there already: name a folder that is not", folder.display());
        }
        return recipes::innkeeper_tree(&sources, &program)?.unfold(folder);
    }
    let image = recipes::innkeeper(&sources, &program)?;
    say(&format!("{}, {} KiB", image.digest(), image.size() / 1024));
    if let Some(name) = &task.push {
        let registry = background::registry(&Background::of_user()?)
            .context("there is no node: run `cargo xtask cluster up --node` first")?;
        registry.push(name, &image)?;
        say(&format!("pushed: pods pull it as {name}"));
    }
    Ok(())
}
