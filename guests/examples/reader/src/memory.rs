//! Searches the guest's own memory: a text that is not in it has not reached the guest.

/// Returns whether the memory contains a text. The argument is the text backwards, so that the
/// argument itself is not a match.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "reads all of the linear memory")]
pub(crate) fn holds(backwards: &str) -> bool {
    const PAGE: usize = 64 << 10;
    let bytes = core::arch::wasm32::memory_size(0) * PAGE;
    let length = backwards.len();
    // The address 0 is as good as any in a linear memory, but Rust does not let it be read.
    (1..bytes.saturating_sub(length)).any(|start| {
        backwards.bytes().rev().enumerate().all(|(offset, wanted)| {
            // SAFETY: the address is within the linear memory, which has `bytes` bytes and never
            // shrinks; every byte of it is initialised. It is read as a volatile byte, so no
            // reference to it comes into being, and nothing else runs meanwhile.
            wanted == unsafe { core::ptr::read_volatile((start + offset) as *const u8) }
        })
    })
}

/// A native build has no memory of the guest's own.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn holds(_backwards: &str) -> bool {
    false
}
