//! From a watch event to a reconcile request.
//!
//! 1. `innkeeper_cluster::cache` receives the event, updates the cache and calls its `Listener`.
//! 2. [`cache_events`] is that listener. It finds the requests that the change concerns, wakes them
//!    in the queue, and sends the supervisor of modules what concerns Modules.
//! 3. [`dependency_index`] holds what the last run of each request read ([`read_record`]), and
//!    answers which requests a change concerns.
//! 4. [`read_scope`] holds which fields the runs could read: a request sleeps through a change of
//!    other fields that the host does not need either.
//! 5. [`own_writes`] knows which request caused a change by its own write: that request is not
//!    woken.

pub mod cache_events;
pub mod dependency_index;
pub mod own_writes;
pub mod read_record;
pub mod read_scope;
pub mod reader;
