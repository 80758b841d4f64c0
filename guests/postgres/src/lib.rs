//! postgres: a PostgreSQL server with a volume for its data and another volume for its backups.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `PostgreSQL` |
//! | `names` | names of the desired objects |
//! | `password` | the Secret, of which the guest sees only digests |
//! | `parameters` | the Module's parameters |
//! | `placement` | where a volume is to be, by spec and parameters |
//! | `storage`, `resolver`, `problem` | the volumes, by that and the observed claims |
//! | `consent` | the claims that the user allows to leave |
//! | `safety` | what the leaving of a volume would lose |
//! | `last_copy` | how to save rows that are only in the pod |
//! | `claim`, `deployed` | observed claims, the observed Deployment |
//! | `scripts` | the scripts of the containers: `scripts/*.sh` |
//! | `volumes`, `server`, `backup` | the desired objects |
//! | `ready_pods` | the label `appReady`, merged onto pods |
//! | `report` | status and conditions |
//! | `restored_from`, `restored` | the backup from which the data was restored, and its report |
//! | `reconcile` | desired state from observed state |

mod backup;
mod claim;
mod consent;
mod deployed;
mod last_copy;
mod names;
mod parameters;
mod password;
mod placement;
mod primary;
mod problem;
mod ready_pods;
mod reconcile;
mod report;
mod resolver;
mod restored;
mod restored_from;
mod safety;
mod scripts;
mod server;
mod storage;
mod volumes;

pub use consent::LEAVE_ANNOTATION;
pub use names::Names;
pub use parameters::{Parameters, Placement};
pub use password::{DIGEST_ANNOTATION, SECRET_KEY};
pub use primary::{Backup, DeletionPolicy, PostgreSQL, PostgreSQLSpec, PostgreSQLStatus, Storage};
pub use reconcile::Guest;
pub use restored_from::{ReportedStatus, RestoredFrom};

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
