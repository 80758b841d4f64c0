use innkeeper_sdk::kinds::{PersistentVolumeClaim, Volume, VolumeMount};
use innkeeper_sdk::{Desired, Observed, Policy};

use crate::claim::Claim;
use crate::volume_source::VolumeSource;
use crate::{DeletionPolicy, Names, PostgreSQL};

/// The volume of the data. A Deployment that is adopted keeps the volumes of others, which may be
/// named `data`, and no volume may be of two types.
pub(crate) const DATA: &str = "server-data";
/// The directory at which containers mount the data.
pub(crate) const DATA_FOLDER: &str = "/data";
/// The volume of the backups.
pub(crate) const BACKUPS: &str = "server-backups";
/// The directory at which containers mount the backups.
pub(crate) const BACKUPS_FOLDER: &str = "/backups";

/// The volumes of a `PostgreSQL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volumes {
    /// The volume of the data.
    pub(crate) data: VolumeSource,
    /// The volume of the backups, never ephemeral.
    pub(crate) backups: VolumeSource,
}

impl Volumes {
    /// Returns the volume of the data, for a pod.
    pub(crate) fn data(&self) -> Volume {
        self.data.volume(DATA)
    }

    /// Returns the volume of the backups, for a pod.
    pub(crate) fn backups(&self) -> Volume {
        self.backups.volume(BACKUPS)
    }

    /// Returns the mount of the backups. Several databases may share an existing claim, so each
    /// has a directory of its own there. No name of a database contains a dot.
    pub(crate) fn backups_mount(&self, names: &Names) -> VolumeMount {
        let sub_path = match &self.backups {
            VolumeSource::Existing(_) => Some(format!("{}.backups", names.server)),
            _ => None,
        };
        VolumeMount {
            name: BACKUPS.to_owned(),
            mount_path: BACKUPS_FOLDER.to_owned(),
            read_only: false,
            sub_path,
        }
    }

    /// Returns the mount of an existing claim's root, where the original operator wrote its backups
    /// of all databases. The scripts look for `backup/<name>.sql` there. `prepare` has to make a
    /// folder of root readable for the user postgres; the server must not write there.
    pub(crate) fn originals_mount(&self, read_only: bool) -> Option<VolumeMount> {
        matches!(self.backups, VolumeSource::Existing(_)).then(|| VolumeMount {
            name: BACKUPS.to_owned(),
            mount_path: format!("{BACKUPS_FOLDER}/backup"),
            read_only,
            sub_path: None,
        })
    }

    /// Returns whether the data is in the pod.
    pub(crate) fn is_ephemeral(&self) -> bool {
        self.data == VolumeSource::Ephemeral
    }

    /// Desires the claims that the guest creates, and keeps those that it has created before.
    pub(crate) fn desire(
        &self,
        desired: Desired,
        observed: &Observed<PostgreSQL>,
        names: &Names,
    ) -> Desired {
        let spec = &observed.primary().spec;
        let claims = [
            (&self.data, &names.data, &spec.storage.size),
            (&self.backups, &names.backups, &spec.backup.size),
        ];
        claims.into_iter().fold(desired, |desired, (source, own, size)| {
            let VolumeSource::Own { name, class } = source else {
                // The volume has been elsewhere: also with the policy Delete its content stays.
                let has_own = observed.owned::<Claim>(own).is_some();
                return if has_own {
                    desired.keep::<PersistentVolumeClaim>("", own)
                } else {
                    desired
                };
            };
            let mut claim = PersistentVolumeClaim::new(name, size);
            if let Some(class) = class {
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
}
