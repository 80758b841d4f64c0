//! maintpage: an application and its Service, which a toggle points at a maintenance page.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `MaintPage` |
//! | `names` | names of the maintenance Pod and its container |
//! | `parameters` | the Module's parameters |
//! | `side` | the two sides that the Service can route to, and when it switches |
//! | `observed` | the fields of a Pod and a Deployment that say why they are not ready |
//! | `wait` | what the switch waits for, and how to end the wait |
//! | `clash` | pods of other owners that the Service would select |
//! | `probe` | whether the maintenance Pod gets a readiness probe |
//! | `objects` | the desired objects |
//! | `reconcile` | desired state from observed state |

mod clash;
mod names;
mod objects;
mod observed;
mod parameters;
mod primary;
mod probe;
mod reconcile;
mod side;
mod wait;

pub use names::page_name;
pub use parameters::Parameters;
pub use primary::{
    AppConfig, MaintPage, MaintPageSpec, MaintPageStatus, MaintpageConfig, PublishStatus, Switch,
};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
