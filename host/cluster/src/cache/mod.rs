//! Caches of the objects that modules read: one per kind and scope, filled by a watch.
//!
//! A module opens a [`View`] with its own identity. The client of the first identity fills a cache
//! (its holder). Another identity becomes a member of it after an access review of its own, which
//! the host repeats from time to time. When the holder leaves or loses its right, another member
//! becomes the holder.
//!
//! # The way of a watch event
//!
//! 1. The API server sends an event; the cache's task receives and decodes it (`watch.rs`,
//!    `watch/event.rs`).
//! 2. The cache's compressor leaves out what no view needs (`kept_fields.rs`), and makes the rest
//!    small (`compressor.rs`). The store takes its lock; an event of an object that the host is
//!    writing waits (`store/watch_events.rs`).
//! 3. The cache changes its objects, if the event is news by version and uid (`objects.rs`).
//! 4. The queue calls the listener with the change, after the lock is released (`notices.rs`,
//!    `listener.rs`).
//!
//! # Guarantees
//! - A [`CacheSnapshot`] shows all kinds at one moment.
//! - A view reads no cache before its first list has ended, and none whose objects lack fields that
//!   the view needs: a list of fields brings these first (`watch/field_list.rs`).
//! - A view reads the host's own writes at once ([`Caches::record_write`]), and the listener gets
//!   them as such ([`Caches::begin_write`]), unless the response shows that an older backup of etcd
//!   was restored ([`Caches::record_write`]).
//! - A watch whose connection is silently dead resumes after `watch_timeout + watch_grace` at the
//!   latest.
//! - A kind that is not served, or that an identity may not read, works as soon as it is served or
//!   the right is granted.
//!
//! # Caveats
//! - A cache may lag behind the server. For that reason each write has a guard, and a writer
//!   reports a wrong cache by [`Caches::mark_unknown`].

mod cache_id;
mod cache_size;
mod caches;
mod change;
mod compressor;
mod in_flight_write;
mod in_flight_writes;
mod kept_fields;
mod kind_cache;
mod kind_state;
mod known_version;
mod listener;
mod live_objects;
mod member;
mod notices;
mod objects;
mod owner_index;
mod raw;
mod review;
mod snapshot;
mod store;
mod view;
mod watch;
mod watch_event;

pub use cache_size::CacheSize;
pub use caches::Caches;
pub use change::{Change, Source};
pub use in_flight_write::InFlightWrite;
pub use kind_state::{KindState, StateChange};
pub use listener::Listener;
pub use snapshot::{CacheLookup, CacheReadError, CacheSnapshot};
pub use view::{Namespaces, View, ViewedKind};

#[cfg(test)]
mod tests;
