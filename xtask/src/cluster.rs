//! `cargo xtask cluster up|down`.

use anyhow::Result;
use clap::Subcommand;
use innkeeper_controlplane::{Background, Options, Programs};

use crate::progress::say;

/// What to do with the control plane.
#[derive(Subcommand)]
pub(crate) enum Task {
    /// Start it, unless it is up, and print its KUBECONFIG
    Up,
    /// End it and remove its state
    Down,
}

/// Does it.
pub(crate) fn run(task: &Task) -> Result<()> {
    let background = Background::of_user()?;
    match task {
        Task::Up => {
            let was_up = background.is_up();
            let options = Options { controller_manager: true, ..Options::default() };
            background.up(&options, &mut |line| say(&format!("  {line}")))?;
            say(if was_up {
                "The control plane is up already."
            } else {
                "The control plane is up."
            });
            say(&format!("  export KUBECONFIG={}", background.kubeconfig().display()));
            if let Some(kubectl) = kubectl_hint()? {
                say(&format!("  {kubectl}"));
            }
            say("It runs until `cargo xtask cluster down`.");
        }
        Task::Down => {
            let was_up = background.is_up();
            background.down()?;
            say(if was_up {
                "The control plane has ended."
            } else {
                "There was no control plane."
            });
        }
    }
    Ok(())
}

/// How to have kubectl where none is installed: the control plane's program has one.
pub(crate) fn kubectl_hint() -> Result<Option<String>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join("kubectl").is_file()) {
        return Ok(None);
    }
    let command = Programs::find(&mut |_| ())?.command("kubectl")?;
    Ok(Some(format!("alias kubectl='{}'", crate::command::line(&command))))
}
