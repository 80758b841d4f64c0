//! The guest's memory.
//!
//! Every call of a guest runs in a fresh instance, so an allocator for guests has to be
//! cheap to start rather than thrifty over days: it hands out the initial memory from
//! `__heap_base` on, keeps what is freed in lists by size, and asks for more memory
//! (`memory.grow`, which costs as much as a small reconcile) only when that is used up.

mod heap;
#[cfg(all(target_arch = "wasm32", feature = "allocator"))]
mod wasm;
