//! postgres: a PostgreSQL whose data outlives its pods, and whose backups outlive its volume.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `PostgreSQL` |
//! | `names` | the names of what is made of it |
//! | `password` | the Secret, of which only digests are seen |
//! | `deployed` | the Deployment as it is |
//! | `scripts` | what the containers run: `scripts/*.sh` |
//! | `volumes`, `server`, `backup` | the objects that are desired |
//! | `ready_pods` | the label `appReady`, merged onto pods |
//! | `report` | status and conditions |
//! | `reconcile` | what should be, from what is |

mod backup;
mod deployed;
mod names;
mod password;
mod primary;
mod ready_pods;
mod reconcile;
mod report;
mod scripts;
mod server;
mod volumes;

pub use names::Names;
pub use password::{DIGEST_ANNOTATION, SECRET_KEY};
pub use primary::{Backup, DeletionPolicy, PostgreSQL, PostgreSQLSpec, PostgreSQLStatus, Storage};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
