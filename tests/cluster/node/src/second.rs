//! A second node of a cluster, which can go away.

use std::fs;

use anyhow::{Context as _, Result};
use innkeeper_controlplane::Programs;

use crate::node::Identity;
use crate::{Machine, Node};

/// The second node. The control plane has a certificate for it.
const SECOND: Identity = Identity { name: "node-2", pods: "10.245.0.0/16" };
/// Its kubeconfigs: their names in the control plane's folder, and in its own.
const KUBECONFIGS: [(&str, &str); 2] =
    [("kubelet-2.kubeconfig", "kubelet.kubeconfig"), ("proxy.kubeconfig", "proxy.kubeconfig")];

impl Node {
    /// Starts a second node of this node's cluster, whose control plane runs, and returns when it
    /// is ready. It is a machine of its own: what it has of its own is containerd, kubelet,
    /// kube-proxy and its files. Scheduler, DNS, registry and controller manager stay with the
    /// first node.
    ///
    /// The first node must live longer.
    ///
    /// # Errors
    /// What the kernel refuses; or the program that failed and the end of its log.
    pub fn second(&self) -> Result<Self> {
        let programs = Programs::find(&mut |_| ())?;
        let folder = self.plane.join(SECOND.name);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for (from, to) in KUBECONFIGS.into_iter().chain([("ca.crt", "ca.crt")]) {
            let from = self.plane.join(from);
            fs::copy(&from, folder.join(to)).with_context(|| from.display().to_string())?;
        }
        let packages = self.packages.clone();
        let machine = Machine::start(SECOND.name, &folder, &self.plane.join("shared"), &packages)?;
        self.machine.connect(self.identity.pods, (&machine, SECOND.pods))?;
        let mut node = Self {
            identity: SECOND,
            processes: Vec::new(),
            machine,
            packages,
            program: self.program.clone(),
            plane: self.plane.clone(),
        };
        let plugins = node.machine.seen(&node.packages.cni()?);
        node.settings(&plugins, self.address()).write(&folder)?;
        node.run_containerd()?;
        node.wait_for_socket(self.address())?;
        node.run_kubelet()?;
        node.run_proxy(&programs)?;
        node.until_node(&programs, "ready", &["--for=condition=Ready"])?;
        Ok(node)
    }

    /// Ends a node as a loss of power does: the kernel kills all its processes at once, and nobody
    /// drains it. Its files are removed.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn lose(self) -> Result<()> {
        let folder = self.machine.folder().to_owned();
        drop(self);
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())
    }
}
