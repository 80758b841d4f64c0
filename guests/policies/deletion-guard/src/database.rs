use innkeeper_sdk::{Context, ReadError, kind};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::claim::Claim;
use crate::guarded::{GROUP, GuardedMetadata, KIND};

/// The definition of the kind.
pub(crate) const DEFINITION: &str = "postgresqls.exp.wheel.jp";

/// The bytes of an identity.
const IDENTITY_BYTES: usize = 16;

/// A `PostgreSQL` of the guest `postgres`, as the policy reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Database {
    pub(crate) metadata: GuardedMetadata,
    spec: DatabaseSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DatabaseSpec {
    storage: Storage,
    backup: Storage,
    deletion_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Storage {
    claim_name: Option<String>,
}

kind!(Resource for Database = "PostgreSQL", "exp.wheel.jp/v1", "postgresqls");

impl Database {
    /// Returns the databases of a namespace, or of all if it is empty. There are none while the
    /// API server does not serve the kind.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn all(context: &Context, namespace: &str) -> Result<Vec<Self>, ReadError> {
        match context.list::<Self>(namespace, "") {
            Ok(found) => Ok(found.into_iter().map(|one| one.object).collect()),
            Err(ReadError::NotServed) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the claims of the database that have a volume.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn claims_with_data(&self, context: &Context) -> Result<Vec<Claim>, ReadError> {
        let claims = context.list::<Claim>(&self.metadata.namespace, "")?;
        let claims = claims.into_iter().map(|one| one.object);
        Ok(claims.filter(|claim| claim.has_volume() && self.has(claim)).collect())
    }

    /// Returns whether a claim is one of this database's: owned, retained for it, or mounted.
    pub(crate) fn has(&self, claim: &Claim) -> bool {
        claim.owner().is_some_and(|owner| owner.uid == self.metadata.uid)
            || claim.is_retained_for(&self.identity())
            || self.mounts(&claim.metadata.name)
    }

    /// Returns whether the spec names this claim.
    fn mounts(&self, claim: &str) -> bool {
        [&self.spec.storage, &self.spec.backup]
            .iter()
            .any(|storage| storage.claim_name.as_deref() == Some(claim))
    }

    /// Returns whether its own claims are deleted with it.
    pub(crate) fn deletes_claims(&self) -> bool {
        self.spec.deletion_policy == "Delete"
    }

    /// Returns the value of the label by which the host finds the claims of a database that was
    /// deleted and created again: a digest of group, kind, namespace and name.
    fn identity(&self) -> String {
        let mut hash = Sha256::new();
        for part in [GROUP, KIND, &self.metadata.namespace, &self.metadata.name] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let digest = hash.finalize();
        let halves = digest.iter().take(IDENTITY_BYTES).flat_map(|byte| [byte >> 4, byte & 15]);
        halves.filter_map(|half| char::from_digit(half.into(), 16)).collect()
    }
}
