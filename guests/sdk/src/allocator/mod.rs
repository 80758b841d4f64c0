//! The guest's global allocator.
//!
//! Every call of a guest runs in a fresh instance, so this allocator is made for a cheap start and
//! not for a long life: it hands out the initial memory from `__heap_base` on, keeps freed blocks
//! in lists by size, and requests more memory (`memory.grow`, which costs as much as a small
//! reconcile) only when the initial memory is used up.

mod heap;
#[cfg(all(target_arch = "wasm32", feature = "allocator"))]
mod wasm;
