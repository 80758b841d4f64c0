#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32;
use std::cell::UnsafeCell;

use super::heap::{GRAIN, Heap, Memory};

const PAGE: usize = 64 * 1024;

unsafe extern "C" {
    /// Where the linker's data ends: its address is the value, there is no byte to read.
    static mut __heap_base: u8;
}

/// The instance's linear memory from `__heap_base` on.
struct Linear;

// SAFETY: the linker puts stack and data below `__heap_base` and nothing above it, memory.grow
// only appends, and linear memory never moves or shrinks. Nothing else in a guest
// grows memory or uses what lies there: this is its only allocator. The base is
// rounded up to GRAIN.
unsafe impl Memory for Linear {
    fn base(&self) -> *mut u8 {
        let base = &raw mut __heap_base;
        base.wrapping_add(base.align_offset(GRAIN))
    }

    fn len(&self) -> usize {
        // 65,536 pages are 4 GiB, one more than a usize holds; the last page is left alone.
        (wasm32::memory_size::<0>().min(65_535) * PAGE).saturating_sub(self.base().addr())
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let pages = bytes.div_ceil(PAGE);
        wasm32::memory_size::<0>() + pages <= 65_535
            && wasm32::memory_grow::<0>(pages) != usize::MAX
    }
}

struct GuestAllocator {
    heap: UnsafeCell<Heap<Linear>>,
}

// SAFETY: a guest has one thread: the target is built without atomics, and the contract has
// no way to start another.
unsafe impl Sync for GuestAllocator {}

#[global_allocator]
static GUEST: GuestAllocator = GuestAllocator { heap: UnsafeCell::new(Heap::new(Linear)) };

// SAFETY: blocks come from `Heap`, whose invariants give each to one holder at a time with the
// size and alignment of its layout. The `&mut` of each method is the only one: there is one
// thread, and `Heap` calls nothing that allocates. No method unwinds.
unsafe impl GlobalAlloc for GuestAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above: no other reference exists during the call.
        unsafe { &mut *self.heap.get() }.allocate(layout)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: see above; the caller keeps `release`'s contract, which is GlobalAlloc's.
        unsafe { (*self.heap.get()).release(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: see above; the caller keeps `reallocate`'s contract, which is GlobalAlloc's.
        unsafe { (*self.heap.get()).reallocate(block, layout, new_size) }
    }
}
