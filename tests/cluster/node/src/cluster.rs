//! A control plane with a node.

use anyhow::{Context as _, Result};
use innkeeper_controlplane::{ControlPlane, Options, Programs};
use tempfile::TempDir;

use crate::Node;

/// A control plane and its node, for as long as this value lives.
#[derive(Debug)]
pub struct Cluster {
    // In this order they go: what runs in the node before what it talks to, the folder last.
    node: Node,
    plane: ControlPlane,
    folder: TempDir,
}

impl Cluster {
    /// Starts both, and returns when the node is ready. The controller manager always runs. `say`
    /// gets a line before something takes long.
    ///
    /// # Errors
    /// What is missing, by name, and what to do; or the program that failed and the end of its
    /// log.
    pub fn start(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Self> {
        let programs = Programs::find(say)?;
        let folder = tempfile::Builder::new()
            .prefix("innkeeper-node-")
            .tempdir()
            .context("making a temporary folder")?;
        let mut node = Node::prepare(folder.path(), say)?;
        let options = with_node(options, &node);
        let control = ControlPlane::start_in(folder.path(), &programs, &options)?;
        node.join(&programs)?;
        node.push_all()?;
        Ok(Self { node, plane: control, folder })
    }

    /// The control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Its parts, in the order in which they have to go.
    pub fn into_parts(self) -> (Node, ControlPlane, TempDir) {
        (self.node, self.plane, self.folder)
    }

    /// Checks that every process of the control plane and of the node runs.
    ///
    /// # Errors
    /// The first process that has ended, with the end of its log.
    pub fn check(&mut self) -> Result<()> {
        self.plane.check()?;
        self.node.check()
    }
}

/// `options` for a control plane that is to have `node`.
pub(crate) fn with_node(options: &Options, node: &Node) -> Options {
    Options { controller_manager: true, node: Some(node.side()), ..options.clone() }
}
