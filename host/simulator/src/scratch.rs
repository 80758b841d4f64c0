//! A reused buffer for texts of unknown length: allocating and freeing large buffers makes the
//! allocator consolidate memory each time, which costs more than the writing.

use std::cell::RefCell;

use bytes::Bytes;
use serde::Serialize;

/// Larger buffers are freed.
const BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// One buffer for each nested write.
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Prints a value as JSON.
pub(crate) fn json(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    // A tree whose names are texts can be written, and memory takes it.
    let _ = serde_json::to_writer(out, value);
}

/// The text that `write` prints.
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
