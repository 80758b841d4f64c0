//! `cargo xtask cluster up|down`.

use anyhow::Result;
use clap::Subcommand;
use innkeeper_controlplane::{Background, Options, Programs};
use innkeeper_node::background as node_background;

use crate::progress::say;

/// What to do with the control plane.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Start it, unless it is up, and print its KUBECONFIG
    Up {
        /// With a node, on which pods run (needs Linux and root)
        #[arg(long)]
        node: bool,
    },
    /// End it and remove its state
    Down,
}

/// Does it.
///
/// # Errors
/// If the control plane cannot be started or stopped.
pub(crate) fn run(task: &Task) -> Result<()> {
    let background = Background::of_user()?;
    match task {
        Task::Up { node } => up(&background, *node)?,
        Task::Down => {
            let was_up = background.is_up();
            node_background::down(&background)?;
            say(if was_up {
                "The control plane has ended."
            } else {
                "There was no control plane."
            });
        }
    }
    Ok(())
}

fn up(background: &Background, node: bool) -> Result<()> {
    let was_up = if node { node_background::is_up(background) } else { background.is_up() };
    let mut tell = |line: &str| say(&format!("  {line}"));
    if node {
        node_background::up(background, &mut tell)?;
    } else {
        let options = Options { controller_manager: true, ..Options::default() };
        background.up(&options, &mut tell)?;
    }
    let what = if node { "The control plane and its node are" } else { "The control plane is" };
    say(&format!("{what} up{}.", if was_up { " already" } else { "" }));
    say(&format!("  export KUBECONFIG={}", background.kubeconfig().display()));
    if let Some(kubectl) = kubectl_hint()? {
        say(&format!("  {kubectl}"));
    }
    say("It runs until `cargo xtask cluster down`.");
    Ok(())
}

/// How to have kubectl where none is installed: the control plane's program has one.
///
/// # Errors
/// If the programs of the control plane cannot be found.
pub(crate) fn kubectl_hint() -> Result<Option<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("kubectl").is_file()) {
        return Ok(None);
    }
    let command = Programs::find(&mut |_| ())?.command("kubectl")?;
    Ok(Some(format!("alias kubectl='{}'", crate::command::line(&command))))
}
