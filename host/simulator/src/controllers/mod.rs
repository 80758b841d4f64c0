//! The controllers of a cluster, each in a file named as its Go original. They write as clients of
//! the API.
//!
//! `manager` runs them, `client` is how they read and write. They stay in this crate: they call the
//! verbs in process, without texts, and need the whole state for it.

pub(crate) mod client;
pub(crate) mod cron_job;
pub(crate) mod custom_resource_definition;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod endpoints;
pub(crate) mod event_recorder;
pub(crate) mod garbage_collector;
pub(crate) mod horizontal_pod_autoscaler;
pub(crate) mod job;
pub(crate) mod kubelet;
pub(crate) mod manager;
pub(crate) mod namespace;
pub(crate) mod node_fit;
pub(crate) mod owner_lookup;
pub(crate) mod persistent_volume;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod_grace_period;
pub(crate) mod pod_status;
pub(crate) mod replica_set;
pub(crate) mod replication_controller;
pub(crate) mod restart;
pub(crate) mod revision_history;
pub(crate) mod root_ca_publisher;
pub(crate) mod service_account;
pub(crate) mod stateful_set;
pub(crate) mod template_hash;
