use innkeeper_sdk::{Labels, kind};
use serde::Deserialize;

use crate::guarded::{GuardedMetadata, Owner};

/// The labels of objects that outlive the primary they were made for, today's and that of earlier
/// versions.
const RETAINED: [&str; 2] = ["innkeeper.dev/retained-for", "innkeeper.dev/kept-for"];

/// A `PersistentVolumeClaim`, as the policy reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Claim {
    pub(crate) metadata: GuardedMetadata,
    status: ClaimStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimStatus {
    phase: String,
    capacity: Labels,
}

impl Claim {
    /// Returns whether the claim has a volume, which may hold data.
    pub(crate) fn has_volume(&self) -> bool {
        self.status.phase == "Bound"
    }

    /// Returns whether the claim outlives the primary that it was made for.
    pub(crate) fn is_retained(&self) -> bool {
        RETAINED.iter().any(|label| self.metadata.label(label).is_some())
    }

    /// Returns the database that owns the claim: Kubernetes deletes the claim after it.
    pub(crate) fn owner(&self) -> Option<&Owner> {
        let mut owners = self.metadata.owner_references.iter().flatten();
        owners.find(|owner| owner.is_database())
    }

    /// Returns whether the claim outlives the primary with this identity.
    pub(crate) fn is_retained_for(&self, identity: &str) -> bool {
        RETAINED.iter().any(|label| self.metadata.label(label) == Some(identity))
    }

    /// Returns the claim as messages name it, with its size if it is known.
    pub(crate) fn title(&self) -> String {
        let name = &self.metadata.name;
        match self.status.capacity.get("storage") {
            Some(size) => format!("PersistentVolumeClaim {name} ({size})"),
            None => format!("PersistentVolumeClaim {name}"),
        }
    }
}

kind!(Resource for Claim = "PersistentVolumeClaim", "v1", "persistentvolumeclaims");
