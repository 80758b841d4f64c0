//! kabocha: a parent of Imos, Kuris and smaller Kabochas, each of which its own module reconciles.
//! A Kabocha reports the readiness of its children, and deletes them in order when it is deleted.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `Kabocha` |
//! | `parameters` | the Module's parameters |
//! | `children` | the desired children and their names |
//! | `progress` | the readiness of the children |
//! | `teardown` | deletion of the children, one kind after the other |
//! | `reconcile` | desired state from observed state |

mod children;
mod parameters;
mod primary;
mod progress;
mod reconcile;
mod teardown;

pub use parameters::Parameters;
pub use primary::{
    ChildStatus, Kabocha, KabochaPhase, KabochaSpec, KabochaStatus, NamedImo, NamedKabocha,
    NamedKuri,
};
pub use reconcile::{FINALIZER, Guest};

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
