//! The limits of a mask.

/// The deepest path, in elements.
pub const DEPTH_MAX: usize = 16;

/// The most elements of one mask, where `*` counts again for each of its siblings.
pub const ELEMENTS_MAX: usize = 4_096;

/// The longest element, in bytes.
pub const ELEMENT_BYTES_MAX: usize = 512;
