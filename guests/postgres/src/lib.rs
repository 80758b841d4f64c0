//! postgres: a PostgreSQL server with a volume for its data and another volume for its backups.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `PostgreSQL` |
//! | `names` | names of the desired objects |
//! | `password` | the Secret, of which the guest sees only digests |
//! | `parameters` | the Module's parameters |
//! | `volume_spec`, `desired_volumes` | where a volume is to be, by spec and parameters |
//! | `resolved_volumes`, `resolver`, `problem` | where it is, by that and the observed claims |
//! | `consent` | the claims that the user allows to leave |
//! | `safety` | what the leaving of a volume would lose |
//! | `last_copy` | how to save rows that are only in the pod |
//! | `claim`, `deployed` | observed claims, the observed Deployment |
//! | `scripts` | the scripts of the containers: `scripts/*.sh` |
//! | `volume_source`, `volumes`, `server`, `backup` | the desired objects |
//! | `pods` | the server's pods, and the label `appReady` that is merged onto them |
//! | `report` | status and conditions |
//! | `restored_from`, `restored` | the backup from which the data was restored, and its report |
//! | `reconcile` | desired state from observed state |

mod backup;
mod claim;
mod consent;
mod deployed;
mod desired_volumes;
mod last_copy;
mod names;
mod parameters;
mod password;
mod pods;
mod primary;
mod problem;
mod reconcile;
mod report;
mod resolved_volumes;
mod resolver;
mod restored;
mod restored_from;
mod safety;
mod scripts;
mod server;
mod volume_source;
mod volume_spec;
mod volumes;

pub use consent::LEAVE_ANNOTATION;
pub use names::Names;
pub use parameters::Parameters;
pub use password::{DIGEST_ANNOTATION, SECRET_KEY};
pub use primary::{Backup, DeletionPolicy, PostgreSQL, PostgreSQLSpec, PostgreSQLStatus, Storage};
pub use reconcile::Guest;
pub use restored_from::{ReportedStatus, RestoredFrom};
pub use volume_spec::VolumeSpec;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
