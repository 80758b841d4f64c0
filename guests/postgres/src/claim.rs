use innkeeper_sdk::{Context, Labels, Observed, ReadError, kind};
use serde::Deserialize;

use crate::PostgreSQL;

/// The labels of claims that outlive their `PostgreSQL`, today's and that of earlier versions.
const RETAINED: [&str; 2] = ["innkeeper.dev/retained-for", "innkeeper.dev/kept-for"];

/// A `PersistentVolumeClaim`, as the guest reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Claim {
    metadata: ClaimMetadata,
    spec: ClaimSpec,
    status: ClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimMetadata {
    labels: Labels,
    deletion_timestamp: Option<String>,
    owner_references: Vec<Owner>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
    uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSpec {
    storage_class_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimStatus {
    phase: String,
}

impl Claim {
    /// Reads a claim of the primary's namespace; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read(
        context: &Context,
        observed: &Observed<PostgreSQL>,
        name: &str,
    ) -> Result<Option<Self>, ReadError> {
        match context.get::<Self>(observed.namespace(), name) {
            Ok(claim) => Ok(Some(claim.object)),
            Err(ReadError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the storage class; `None` if it has none, also the empty name.
    pub(crate) fn class(&self) -> Option<&str> {
        self.spec.storage_class_name.as_deref().filter(|class| !class.is_empty())
    }

    /// Returns whether the API server found no storage class for the claim, which gives none.
    pub(crate) fn lacks_class(&self) -> bool {
        self.is_pending() && self.spec.storage_class_name.is_none()
    }

    /// Returns whether the claim has a volume.
    pub(crate) fn is_bound(&self) -> bool {
        self.status.phase == "Bound"
    }

    /// Returns whether the claim waits for a volume.
    pub(crate) fn is_pending(&self) -> bool {
        self.status.phase == "Pending"
    }

    /// Returns whether the volume of the claim is gone.
    pub(crate) fn is_lost(&self) -> bool {
        self.status.phase == "Lost"
    }

    /// Returns whether somebody has deleted the claim.
    pub(crate) fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns whose the claim is, if it has an owner or outlives its primary.
    pub(crate) fn owner(&self) -> Option<String> {
        let owner = self.metadata.owner_references.first();
        owner.map(|owner| format!("{} {}", owner.kind, owner.name)).or_else(|| {
            self.is_retained().then(|| "the custom resource that created it".to_owned())
        })
    }

    /// Returns whether the claim belongs to the primary of this uid, or to nobody since it outlives
    /// its primary. The claim of a `StatefulSet` may have the same name.
    pub(crate) fn is_made_by(&self, uid: &str) -> bool {
        let owners = &self.metadata.owner_references;
        if owners.is_empty() {
            self.is_retained()
        } else {
            !uid.is_empty() && owners.iter().any(|owner| owner.uid == uid)
        }
    }

    fn is_retained(&self) -> bool {
        RETAINED.iter().any(|label| self.metadata.labels.contains_key(*label))
    }
}

kind!(Resource for Claim = "PersistentVolumeClaim", "v1", "persistentvolumeclaims");
