//! The controller of Deployments, in the parts that its Go original has: `rolling`, `recreate`,
//! `progress`, and `replica_sets` for what that has in `sync`.

pub(crate) mod controller;
pub(crate) mod progress;
pub(crate) mod recreate;
pub(crate) mod replica_sets;
pub(crate) mod rolling;
pub(crate) mod rollout;
pub(crate) mod scaling;

pub(crate) use crate::controllers::deployment::controller::sync;
