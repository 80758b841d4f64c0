//! What each verb does with stored objects.

pub(crate) mod connect;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod ip_allocator;
pub(crate) mod list;
pub(crate) mod list_options;
pub(crate) mod owner_references;
pub(crate) mod patch;
pub(crate) mod review;
pub(crate) mod scale;
pub(crate) mod update;
pub(crate) mod watch;
pub(crate) mod write;
pub(crate) mod write_hooks;
