//! What a control plane should have.

use std::net::Ipv4Addr;
use std::path::PathBuf;

/// What a control plane should have.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Run kube-controller-manager: Deployments make replica sets and Pods, owners'
    /// children are collected.
    pub controller_manager: bool,
    /// More flags for kube-apiserver, as in `--feature-gates=...`.
    pub apiserver_flags: Vec<String>,
    /// More flags for kube-controller-manager.
    pub controller_manager_flags: Vec<String>,
    /// A node that this control plane is to have, started by somebody else.
    pub node: Option<NodeSide>,
}

/// What a control plane must know of the node that it is to have.
#[derive(Clone, Debug)]
pub struct NodeSide {
    /// The address of this machine that the node reaches: the API server listens there.
    pub address: Ipv4Addr,
    /// The command that runs another, given after it, with the files that the node sees: the
    /// controller manager makes the folders of volumes there.
    pub inside: Vec<String>,
    /// Under which path the control plane's folder is seen there.
    pub folder: PathBuf,
}
