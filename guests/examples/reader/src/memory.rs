//! All of the guest's own memory, looked through: what is not in it the guest does not have.

/// Whether the memory holds a text. It is given backwards, so that being asked for it does not put
/// it there.
#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "reads what lies in the linear memory, whosever it is")]
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

/// Natively there is no memory of the guest's own to look through.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn holds(_backwards: &str) -> bool {
    false
}
