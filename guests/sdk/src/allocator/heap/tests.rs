use std::alloc::{alloc_zeroed, dealloc};

use super::*;

const PAGE: usize = 64 * 1024;

/// Linear memory for tests: pages up to a limit, which `grow` makes available.
struct Pages {
    base: *mut u8,
    layout: Layout,
    len: usize,
    grown: usize,
}

impl Pages {
    fn new(initial: usize, limit: usize) -> Self {
        let layout = Layout::from_size_align(limit * PAGE, PAGE).unwrap();
        // SAFETY: the layout is not empty.
        let base = unsafe { alloc_zeroed(layout) };
        assert!(!base.is_null());
        Self { base, layout, len: initial * PAGE, grown: 0 }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base, self.layout) };
    }
}

// SAFETY: `len` bytes from `base` are part of the allocation, which lives as long as this.
unsafe impl Memory for Pages {
    fn base(&self) -> *mut u8 {
        self.base
    }

    fn len(&self) -> usize {
        self.len
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let bytes = bytes.next_multiple_of(PAGE);
        if self.len + bytes > self.layout.size() {
            return false;
        }
        self.len += bytes;
        self.grown += 1;
        true
    }
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

/// A small generator with a seed (splitmix64), so that a failure can be repeated.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// Mostly small, as in guests, sometimes large.
    fn size(&mut self) -> usize {
        let bits = self.below(15);
        1 + self.below(1 << bits)
    }

    fn align(&mut self) -> usize {
        [1, 2, 4, 8, 8, 8, 16, 32, 256][self.below(9)]
    }
}

/// A block that is out, filled with its own byte.
struct Block {
    at: *mut u8,
    layout: Layout,
    fill: u8,
}

impl Block {
    fn paint(&self) {
        // SAFETY: the block is out, for this many bytes.
        unsafe { self.at.write_bytes(self.fill, self.layout.size()) };
    }

    fn assert_painted(&self, bytes: usize) {
        // SAFETY: the block is out, is at least this long, and has been painted.
        let content = unsafe { std::slice::from_raw_parts(self.at, bytes) };
        assert!(content.iter().all(|byte| *byte == self.fill), "somebody else wrote into a block");
    }
}

#[test]
fn blocks_are_aligned_and_never_overlap_and_keep_their_content() {
    for seed in 0..8 {
        let mut random = Seeded(seed);
        let mut heap = Heap::new(Pages::new(32, 2048));
        let mut out: Vec<Block> = Vec::new();
        for step in 0..2_000_usize {
            let fill = u8::try_from(step % 251).unwrap();
            match random.below(10) {
                0..5 => {
                    let layout = layout(random.size(), random.align());
                    let at = heap.allocate(layout);
                    assert!(!at.is_null(), "seed {seed}: out of memory at step {step}");
                    assert_eq!(at.addr() % layout.align(), 0, "seed {seed}: not aligned");
                    let block = Block { at, layout, fill };
                    block.paint();
                    out.push(block);
                }
                5..8 if !out.is_empty() => {
                    let block = out.swap_remove(random.below(out.len()));
                    block.assert_painted(block.layout.size());
                    // SAFETY: the block is out for this layout, and is not used any more.
                    unsafe { heap.release(block.at, block.layout) };
                }
                _ if !out.is_empty() => {
                    let mut block = out.swap_remove(random.below(out.len()));
                    let size = random.size();
                    // SAFETY: the block is out for this layout; the size is small and not 0.
                    block.at = unsafe { heap.reallocate(block.at, block.layout, size) };
                    assert!(!block.at.is_null(), "seed {seed}: out of memory at step {step}");
                    assert_eq!(
                        block.at.addr() % block.layout.align(),
                        0,
                        "seed {seed}: not aligned"
                    );
                    block.assert_painted(size.min(block.layout.size()));
                    block.layout = layout(size, block.layout.align());
                    block.fill = fill;
                    block.paint();
                    out.push(block);
                }
                _ => {}
            }
            if let Some(last) = out.last() {
                let end = heap.offset(last.at) + last.layout.size();
                assert!(end <= heap.top && heap.top <= heap.memory.len(), "seed {seed}: outside");
            }
        }
        for block in &out {
            block.assert_painted(block.layout.size());
        }
    }
}

#[test]
fn memory_grows_only_when_it_is_used_up() {
    let mut heap = Heap::new(Pages::new(32, 64));
    for _ in 0..31 {
        assert!(!heap.allocate(layout(PAGE, 8)).is_null());
    }
    assert_eq!(heap.memory.grown, 0, "32 pages hold 31 blocks of a page");
    for _ in 0..2 {
        assert!(!heap.allocate(layout(PAGE, 8)).is_null());
    }
    assert_eq!(heap.memory.grown, 1, "a growth is larger than what is missing");
}

#[test]
fn the_last_pages_can_be_had_although_a_whole_quarter_is_not_left() {
    let mut heap = Heap::new(Pages::new(32, 34));
    assert!(!heap.allocate(layout(32 * PAGE, 8)).is_null());
    assert_eq!((heap.memory.grown, heap.memory.len), (1, 33 * PAGE));
    assert!(heap.allocate(layout(4 * PAGE, 8)).is_null(), "there is no more: null, not a trap");
    assert!(!heap.allocate(layout(100, 8)).is_null(), "a small block still fits");
}

#[test]
fn released_blocks_are_used_again() {
    let mut heap = Heap::new(Pages::new(32, 32));
    for round in 0..10_000 {
        let sizes = [24, 300, 700, 5_000, 100_000];
        let blocks = sizes.map(|size| heap.allocate(layout(size, 8)));
        assert!(blocks.iter().all(|block| !block.is_null()), "out of memory in round {round}");
        // In the order of allocation, so that the lists are used and not the end alone.
        for (block, size) in blocks.into_iter().zip(sizes) {
            // SAFETY: out for this layout.
            unsafe { heap.release(block, layout(size, 8)) };
        }
    }
    assert_eq!(heap.memory.grown, 0);
}

#[test]
fn a_text_that_grows_at_the_end_stays_where_it_is() {
    let mut heap = Heap::new(Pages::new(32, 32));
    let first = heap.allocate(layout(16, 1));
    let (mut block, mut size) = (first, 16);
    while size < 1024 * 1024 {
        // SAFETY: out for this layout; sizes are small.
        block = unsafe { heap.reallocate(block, layout(size, 1), size * 2) };
        size *= 2;
        assert_eq!(block, first, "moved at {size} bytes");
    }
}

#[test]
fn a_request_beyond_all_bounds_gives_null() {
    let mut heap = Heap::new(Pages::new(32, 32));
    let huge = layout(isize::MAX.unsigned_abs() & !7, 8);
    assert!(heap.allocate(huge).is_null());
    let block = heap.allocate(layout(100, 8));
    // SAFETY: out for this layout; the new size fits in isize.
    assert!(unsafe { heap.reallocate(block, layout(100, 8), huge.size()) }.is_null());
}

#[test]
fn every_size_has_a_list_of_its_own() {
    let mut last = 0;
    let mut seen = std::collections::BTreeSet::new();
    for exponent in 0..310_u32 {
        // About 10 sizes to a doubling, from 1 byte to 2 GiB.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most 2 GiB"
        )]
        let size = 2_f64.powf(f64::from(exponent) / 10.0) as usize;
        let block = rounded(size).unwrap();
        assert!(block >= size && block.is_multiple_of(GRAIN), "{size} became {block}");
        assert!(size <= 16 || block < size + size / 4 + GRAIN, "{size} wastes: {block}");
        assert_eq!(rounded(block), Some(block), "a block's own size must lead to its list");
        let index = match list_of(block) {
            List::Small(index) => {
                assert!(index < SMALL_LISTS);
                index
            }
            List::Large(index) => {
                assert!(index < LARGE_LISTS);
                SMALL_LISTS + index
            }
        };
        assert!(
            block == last || seen.insert(index),
            "two sizes in list {index}: {last} and {block}"
        );
        last = block;
    }
    assert_eq!(rounded(LARGEST), Some(LARGEST));
    assert_eq!(rounded(LARGEST + 1), None);
}
