//! Memory in which texts are written before it is known how long they are. It is kept: asking for
//! much and giving it back makes the allocator tidy up each time, which costs more than the
//! writing.

use std::cell::RefCell;

use bytes::Bytes;
use serde::Serialize;

/// More is not kept.
const BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// One for each that is written while another one is.
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Writes something as JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // A tree whose names are texts can be written, and memory takes it.
    let _ = serde_json::to_writer(out, value);
}

/// A text that `write` writes.
pub(crate) fn text(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut scratch = FREE.with(|free| free.borrow_mut().pop()).unwrap_or_default();
    write(&mut scratch);
    let text = Bytes::copy_from_slice(&scratch);
    if scratch.capacity() <= BYTES_MAX {
        scratch.clear();
        FREE.with(|free| free.borrow_mut().push(scratch));
    }
    text
}
