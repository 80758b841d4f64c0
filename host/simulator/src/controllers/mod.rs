//! What reacts to writes: at once, as admission and registries do, or when time passes, as
//! controllers do.

pub(crate) mod address;
pub(crate) mod claim;
pub(crate) mod client;
pub(crate) mod cron_job;
pub(crate) mod definition;
pub(crate) mod deployment;
pub(crate) mod endpoints;
pub(crate) mod event;
pub(crate) mod garbage;
pub(crate) mod grace_period;
pub(crate) mod job;
pub(crate) mod manager;
pub(crate) mod namespace;
pub(crate) mod owner;
pub(crate) mod pod;
pub(crate) mod pod_status;
pub(crate) mod replica_set;
pub(crate) mod rollout;
pub(crate) mod schedule;
pub(crate) mod stateful_set;
pub(crate) mod volume;
