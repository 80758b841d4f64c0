use innkeeper_sdk::kinds::PersistentVolumeClaim;
use innkeeper_sdk::{Apply as _, Desired, Policy};

use crate::{DeletionPolicy, Names, PostgreSQL};

/// Whom a volume without an owner is kept for: a digest of group, kind, namespace and name.
pub const KEPT_FOR_LABEL: &str = "innkeeper.dev/kept-for";

/// The volume of the data.
pub(crate) const DATA: &str = "data";
/// Where the containers see it.
pub(crate) const DATA_FOLDER: &str = "/data";
/// The volume of the backups.
pub(crate) const BACKUPS: &str = "backups";
/// Where the containers see it.
pub(crate) const BACKUPS_FOLDER: &str = "/backups";

/// The claims of data and backups.
pub(crate) fn desire(desired: Desired, postgres: &PostgreSQL, names: &Names) -> Desired {
    let spec = &postgres.spec;
    let claims = [(&names.data, &spec.storage.size), (&names.backups, &spec.backup.size)];
    claims.into_iter().fold(desired, |desired, (name, size)| {
        let mut claim = PersistentVolumeClaim::new(name, size);
        if let Some(class) = &spec.storage.class_name {
            claim = claim.storage_class(class);
        }
        match spec.deletion_policy {
            DeletionPolicy::Retain => {
                desired.object_with(claim.label(KEPT_FOR_LABEL, &names.identity), [Policy::Orphan])
            }
            DeletionPolicy::Delete => desired.object_with(claim, [Policy::Deletable]),
        }
    })
}
