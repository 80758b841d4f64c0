use innkeeper_sdk::kinds::PersistentVolumeClaim;
use innkeeper_sdk::{Desired, Policy};

use crate::{DeletionPolicy, Names, PostgreSQL};

/// The volume of the data.
pub(crate) const DATA: &str = "data";
/// The directory at which containers mount the data.
pub(crate) const DATA_FOLDER: &str = "/data";
/// The volume of the backups.
pub(crate) const BACKUPS: &str = "backups";
/// The directory at which containers mount the backups.
pub(crate) const BACKUPS_FOLDER: &str = "/backups";

/// Desires the claims of data and backups.
pub(crate) fn desire(desired: Desired, postgres: &PostgreSQL, names: &Names) -> Desired {
    let spec = &postgres.spec;
    let claims = [(&names.data, &spec.storage.size), (&names.backups, &spec.backup.size)];
    claims.into_iter().fold(desired, |desired, (name, size)| {
        let mut claim = PersistentVolumeClaim::new(name, size);
        if let Some(class) = &spec.storage.class_name {
            claim = claim.storage_class(class);
        }
        let policy = match spec.deletion_policy {
            // The host labels them with the primary that may adopt them.
            DeletionPolicy::Retain => Policy::Orphan,
            DeletionPolicy::Delete => Policy::Deletable,
        };
        desired.object_with(claim, [policy])
    })
}
