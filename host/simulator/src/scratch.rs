//! Memory in which texts are written before it is known how long they are. It is kept: asking for much and giving it
//! back makes the allocator tidy up each time, which costs more than the writing.

use std::cell::RefCell;

use bytes::Bytes;

/// More is not kept.
const BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// One for each that is written while another one is.
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
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
