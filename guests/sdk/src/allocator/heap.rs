#![allow(unsafe_code)]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "blocks are aligned to GRAIN, which is more than a usize needs"
)]

use std::alloc::Layout;
use std::ptr;

/// All blocks begin at a multiple of this, and sizes are multiples of it. It is what
/// `malloc` guarantees, so only layouts beyond it need special care.
pub(super) const GRAIN: usize = 16;

/// Sizes up to this have a list each per [`GRAIN`]; above, four lists per doubling.
const SMALL: usize = 512;
const SMALL_LISTS: usize = SMALL / GRAIN;
/// The largest block, 2 GiB: half of what 32-bit wasm can hold.
const LARGEST: usize = 1 << 31;
/// From 512 B up to [`LARGEST`].
const LARGE_LISTS: usize = 4 * (LARGEST.ilog2() - SMALL.ilog2()) as usize;

/// No block: offset 0 is never handed out.
const NONE: usize = 0;

/// A stretch of bytes that can grow at its end.
///
/// # Safety
/// From `base()` on, `len()` bytes are valid for reads and writes, belong to the owner of
/// this value, stay where they are for as long as it lives, and `base()` is a multiple of
/// [`GRAIN`]. A `grow` that gives true has made `len()` larger by at least what was asked
/// for; one that gives false has changed nothing.
pub(super) unsafe trait Memory {
    /// Where it begins.
    fn base(&self) -> *mut u8;
    /// How many bytes there are.
    fn len(&self) -> usize;
    /// Makes it larger by at least this many bytes. False: there is no more.
    fn grow(&mut self, bytes: usize) -> bool;
}

/// An allocator over one [`Memory`]: bump with free lists.
///
/// Invariants, on which every `unsafe` below rests:
/// 1. A block is a range `[offset, offset + size)` with `GRAIN <= offset`, both multiples of
///    `GRAIN`, `offset + size <= top <= memory.len()`.
/// 2. Blocks handed out and blocks in lists never overlap: a block is made by moving `top`
///    over it, and from then on it is either out (owned by the caller) or in exactly one list.
/// 3. A block in list `l` has exactly the size that `l` stands for, and its first bytes hold
///    the offset of the next block of the list, or `NONE`.
/// 4. A block that is out for layout `L` has the size `rounded(L.size())`, so what a caller
///    gives back tells its list.
pub(super) struct Heap<M> {
    memory: M,
    /// Everything from here on has never been handed out (or was handed back at the end).
    top: usize,
    small: [usize; SMALL_LISTS],
    large: [usize; LARGE_LISTS],
}

impl<M: Memory> Heap<M> {
    /// An allocator that has handed out nothing.
    pub(super) const fn new(memory: M) -> Self {
        // The first grain stays unused, so that no block has the offset NONE.
        Self { memory, top: GRAIN, small: [NONE; SMALL_LISTS], large: [NONE; LARGE_LISTS] }
    }

    /// A block for this layout; null if there is no more memory.
    pub(super) fn allocate(&mut self, layout: Layout) -> *mut u8 {
        let Some(size) = rounded(layout.size()) else { return ptr::null_mut() };
        if layout.align() > GRAIN {
            return self.bump(size, layout.align());
        }
        let list = self.list(size);
        let offset = *list;
        if offset == NONE {
            return self.bump(size, GRAIN);
        }
        let block = self.memory.base().wrapping_add(offset);
        // SAFETY: by invariants 1 and 3 the block lies in the memory and its first bytes hold
        // an offset that `release` wrote there; a block is at least GRAIN = 16 bytes, aligned to
        // that, so a usize fits and is aligned. By invariant 2 nobody else has it.
        let next = unsafe { block.cast::<usize>().read() };
        *self.list(size) = next;
        block
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// `block` came from `allocate` or `reallocate` of this heap for `layout`, and nobody
    /// uses it any more.
    pub(super) unsafe fn release(&mut self, block: *mut u8, layout: Layout) {
        let Some(size) = rounded(layout.size()) else { return };
        let offset = self.offset(block);
        if offset + size == self.top {
            // The last block: give it back to the untouched part.
            self.top = offset;
            return;
        }
        let next = *self.list(size);
        // SAFETY: the caller gives the block up, and by invariant 4 it is `size` >= GRAIN bytes
        // long, aligned to GRAIN, inside the memory: a usize fits and is aligned. From
        // here on it is in exactly this list (invariants 2 and 3).
        unsafe { block.cast::<usize>().write(next) };
        *self.list(size) = offset;
    }

    /// Makes a block larger or smaller, in place where it can; null (and the block as it was)
    /// if there is no more memory.
    ///
    /// # Safety
    /// As for `release`; `new_size` is not 0 and, rounded up to `layout.align()`, fits in `isize`.
    pub(super) unsafe fn reallocate(
        &mut self,
        block: *mut u8,
        layout: Layout,
        new_size: usize,
    ) -> *mut u8 {
        let (Some(old), Some(new)) = (rounded(layout.size()), rounded(new_size)) else {
            return ptr::null_mut();
        };
        if old == new {
            return block;
        }
        let offset = self.offset(block);
        if offset + old == self.top && self.reserve(offset, new) {
            // The last block grows or shrinks where it is: the texts that a guest writes do.
            self.top = offset + new;
            return block;
        }
        // SAFETY: the caller vouches that `new_size` with this alignment is a valid layout.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let moved = self.allocate(new_layout);
        if !moved.is_null() {
            // SAFETY: both blocks are out, so they do not overlap (invariant 2), and each is at
            // least as long as the smaller of the two sizes.
            unsafe { ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size)) };
            // SAFETY: as this function's own contract; the content has been copied.
            unsafe { self.release(block, layout) };
        }
        moved
    }

    /// A block from the untouched part.
    fn bump(&mut self, size: usize, align: usize) -> *mut u8 {
        // Alignment is of the address, not of the offset.
        let start = self.memory.base().wrapping_add(self.top);
        let Some(offset) = self.top.checked_add(start.align_offset(align)) else {
            return ptr::null_mut();
        };
        if !self.reserve(offset, size) {
            return ptr::null_mut();
        }
        self.top = offset + size;
        self.memory.base().wrapping_add(offset)
    }

    /// Makes sure that `[offset, offset + size)` lies in the memory; false if that cannot be.
    fn reserve(&mut self, offset: usize, size: usize) -> bool {
        let Some(end) = offset.checked_add(size) else { return false };
        let len = self.memory.len();
        if end <= len {
            return true;
        }
        let missing = end - len;
        // Each growth costs the host a system call: ask for a quarter of what there is, and for
        // what is needed alone if the limit forbids that.
        self.memory.grow(missing.max(len / 4)) || self.memory.grow(missing)
    }

    fn offset(&self, block: *mut u8) -> usize {
        block.addr() - self.memory.base().addr()
    }

    fn list(&mut self, size: usize) -> &mut usize {
        match list_of(size) {
            List::Small(index) => &mut self.small[index],
            List::Large(index) => &mut self.large[index],
        }
    }
}

enum List {
    Small(usize),
    Large(usize),
}

/// The list of blocks of this (rounded) size.
fn list_of(size: usize) -> List {
    if size <= SMALL {
        return List::Small(size / GRAIN - 1);
    }
    let (doubling, step) = large_step(size);
    List::Large(4 * doubling + (size - 1) / step - 4)
}

/// For a size over SMALL: how often SMALL doubles below it, and the distance between two sizes
/// there.
fn large_step(size: usize) -> (usize, usize) {
    // (size - 1) has its highest bit at 9 for 513..=1024, at 10 for 1025..=2048, ...
    let highest = (size - 1).ilog2();
    ((highest - SMALL.ilog2()) as usize, 1 << (highest - 2))
}

/// The size of the block for a request: the sizes that the lists stand for. None beyond
/// [`LARGEST`].
fn rounded(size: usize) -> Option<usize> {
    if size <= SMALL {
        return Some(size.max(1).next_multiple_of(GRAIN));
    }
    if size > LARGEST {
        return None;
    }
    let (_, step) = large_step(size);
    Some(size.next_multiple_of(step))
}

#[cfg(test)]
mod tests;
