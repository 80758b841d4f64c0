//! kabocha: a parent of Imos, Kuris and smaller Kabochas, each of which is reconciled by its
//! own module. It reports their readiness upwards, and when it is deleted takes them down in order.
//!
//! | file | what |
//! |---|---|
//! | `primary` | the `Kabocha` |
//! | `children` | the children that are wanted, and their names |
//! | `progress` | how ready they are |
//! | `teardown` | their end, one kind after the other |
//! | `reconcile` | what should be, from what is |

mod children;
mod primary;
mod progress;
mod reconcile;
mod teardown;

pub use primary::{
    ChildStatus, Kabocha, KabochaPhase, KabochaSpec, KabochaStatus, NamedImo, NamedKabocha,
    NamedKuri,
};
pub use reconcile::{FINALIZER, Guest};

#[cfg(feature = "component")]
innkeeper_sdk::export!(Guest);
