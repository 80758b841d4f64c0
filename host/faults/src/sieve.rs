//! Test plans of Sieve (github.com/sieve-project/sieve), carried out at a served API.
//!
//! Sieve instruments the controller under test and several API servers. Here everything happens at
//! the API: a pause of an API server freezes what one served port shows, and a pause of the
//! controller holds its requests and its watches. docs/client-faults.md describes each action.

mod action;
mod api;
mod changes;
mod condition;
mod coordinator;
mod discovery;
mod expression;
mod list_view;
mod pauses;
mod plan;
mod resource_key;
mod session;
mod state_diff;
mod view;
mod view_body;

pub use action::{Action, ActionKind, PausePoint};
pub(crate) use api::{Arrival, SieveApi};
pub use condition::{Condition, Observer, TriggerDefinition};
pub use expression::Expression;
pub use plan::SievePlan;
pub use resource_key::ResourceKey;
