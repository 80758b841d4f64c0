//! A primary and its stored revisions, which the host keeps as ControllerRevisions.
//!
//! The key by which the host checks a revision is the host's own. So the commands show what a
//! revision would change, and write as the user.

mod read;
mod revision;
mod unreadable;

use innkeeper_cluster::{ApiError, Cluster};
use innkeeper_contract::Kind;
use innkeeper_core::ObjectKey;
use serde_json::Value;

use crate::kube::KubeArguments;

pub(crate) use revision::{Change, StoredRevision};
pub(crate) use unreadable::Unreadable;

/// The arguments that choose a primary.
#[derive(clap::Args)]
pub(crate) struct PrimaryArguments {
    /// Kind of the primary or its plural, in upper or lower case, also with its group: `catset`,
    /// `catsets.example.com`.
    kind: String,
    /// Name of the primary.
    name: String,
    /// Namespace of the primary [default: that of the kubeconfig context].
    #[arg(short, long)]
    namespace: Option<String>,
    #[command(flatten)]
    kube: KubeArguments,
}

impl PrimaryArguments {
    /// Connects as the user of the kubeconfig.
    ///
    /// # Errors
    /// If there is no usable kubeconfig.
    pub(crate) async fn connect(&self) -> anyhow::Result<Cluster> {
        Ok(self.kube.connect().await?)
    }

    /// The primary that the user names.
    pub(crate) fn named<'a>(&'a self, cluster: &'a Cluster) -> PrimaryName<'a> {
        let namespace = self.namespace.as_deref().unwrap_or_else(|| cluster.default_namespace());
        PrimaryName { kind: &self.kind, namespace, name: &self.name }
    }

    /// The arguments that choose the same API server.
    pub(crate) fn kube(&self) -> &KubeArguments {
        &self.kube
    }
}

/// A primary as a user names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrimaryName<'a> {
    /// The kind or its plural, perhaps with its group.
    pub(crate) kind: &'a str,
    /// The namespace.
    pub(crate) namespace: &'a str,
    /// The name.
    pub(crate) name: &'a str,
}

/// A primary and its stored revisions.
#[derive(Debug)]
pub(crate) struct RevisionList {
    /// The kind of the primary.
    pub(crate) kind: Kind,
    /// Namespace and name of the primary.
    pub(crate) key: ObjectKey,
    /// The primary, with `managedFields`.
    pub(crate) primary: Value,
    /// Its revisions, newest first.
    pub(crate) revisions: Vec<StoredRevision>,
    /// Revisions of an earlier primary with the same kind and name.
    pub(crate) foreign: Vec<StoredRevision>,
    /// ControllerRevisions of the namespace that cannot be read.
    pub(crate) unreadable: Unreadable,
}

impl RevisionList {
    /// The API version in which the fields of a revision are, if it is another one than that of
    /// the primary: there they may mean something else.
    pub(crate) fn other_version<'a>(&self, revision: &'a StoredRevision) -> Option<&'a str> {
        revision.other_version(&self.kind.api_version)
    }

    /// The line about ControllerRevisions that cannot be read, if there are any.
    pub(crate) fn note(&self) -> Option<String> {
        self.unreadable.note(self.key.namespace())
    }

    /// The primary for a message.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind.kind, self.key)
    }
}

/// The error of a request of the user. The error of a denied one names the host, which has no part
/// in these requests.
pub(crate) fn of_user(error: ApiError) -> anyhow::Error {
    match error {
        ApiError::Forbidden { message, .. } => anyhow::Error::msg(message),
        error => error.into(),
    }
}

#[cfg(test)]
pub(crate) mod simulated;
