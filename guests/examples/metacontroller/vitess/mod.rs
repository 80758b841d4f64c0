//! The example of Vitess: what its four guests share, and for the tests the guests themselves.

pub mod cell;
pub mod children;
pub mod flags;
pub mod inherited;
pub mod keyspace;
pub mod shard;
pub mod tablet;
pub mod tablets;

#[cfg(not(target_arch = "wasm32"))]
#[path = "cell/guest.rs"]
pub mod cell_guest;
#[cfg(not(target_arch = "wasm32"))]
#[path = "cluster/guest.rs"]
pub mod cluster_guest;
#[cfg(not(target_arch = "wasm32"))]
#[path = "keyspace/guest.rs"]
pub mod keyspace_guest;
#[cfg(not(target_arch = "wasm32"))]
#[path = "shard/guest.rs"]
pub mod shard_guest;
