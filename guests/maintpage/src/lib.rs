//! maintpage: an application and its Service, which a switch points at a maintenance page.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `MaintPage` |
//! | `side` | the two sides that the Service can route to, and when it moves from one to the other |
//! | `clash` | other objects whose pods the Service would catch |
//! | `probe` | whether the maintenance Pod is to have a readiness probe |
//! | `objects` | the objects that are desired |
//! | `reconcile` | what should be, from what is |

mod clash;
mod objects;
mod primary;
mod probe;
mod reconcile;
mod side;

pub use objects::page_name;
pub use primary::{
    AppConfig, MaintPage, MaintPageSpec, MaintPageStatus, MaintpageConfig, PublishStatus,
};
pub use reconcile::Guest;

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
