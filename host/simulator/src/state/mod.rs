//! The state of the cluster: objects, kinds, watches, queues. It imports no verb and no controller.

pub(crate) mod backup;
pub(crate) mod catalog;
pub(crate) mod cluster;
pub(crate) mod compaction;
pub(crate) mod controller_set;
pub(crate) mod kubelet;
pub(crate) mod label_index;
pub(crate) mod pod_script;
pub(crate) mod snapshot;
pub(crate) mod store;
pub(crate) mod tokens;
pub(crate) mod watch;
pub(crate) mod webhook_handlers;
pub(crate) mod work_queue;
