//! A control plane with a node that outlives the process that started it.

use std::fs;

use anyhow::{Context as _, Result};
use innkeeper_controlplane::{Background, Options, Programs};
use innkeeper_images::Registry;

use crate::cluster::with_node;
use crate::{Node, machine, node};

/// Whether `background` runs and has a node that runs.
pub fn is_up(background: &Background) -> bool {
    background.is_up() && machine::is_up(background.folder())
}

/// Starts `background` with a node, or leaves it if it is up and has one. What is left of a broken
/// one is ended first, and so is a control plane without a node.
///
/// # Errors
/// If a broken one cannot be removed, a program is missing, or the control plane or the node does
/// not start.
pub fn up(background: &Background, say: &mut dyn FnMut(&str)) -> Result<()> {
    if is_up(background) {
        return Ok(());
    }
    down(background)?;
    let programs = Programs::find(say)?;
    let folder = background.folder();
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let started = Node::prepare(folder, say).and_then(|mut node| {
        background.start(&with_node(&Options::default(), &node), say)?;
        node.join(&programs)?;
        node.push_all()?;
        node.leave();
        Ok(())
    });
    if started.is_err() {
        background.down()?;
    }
    started
}

/// Ends it, each process by its pid, and removes its state. Nothing happens if there is none.
///
/// # Errors
/// If a process of the node does not end, or the folder cannot be removed.
pub fn down(background: &Background) -> Result<()> {
    machine::end_left(background.folder())?;
    background.down()?;
    Ok(())
}

/// The registry of `background`'s node, if it is up.
pub fn registry(background: &Background) -> Option<Registry> {
    machine::address_left(background.folder()).map(node::registry)
}
