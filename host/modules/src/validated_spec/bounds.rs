//! Fixed bounds of what a Module may set, and the defaults.

use std::num::NonZeroU32;
use std::time::Duration;

/// The longest time that a Module may give one run.
pub const RUN_TIME_MAX: Duration = Duration::from_mins(5);

/// The longest time that a Module may give the compiler.
pub const COMPILE_TIME_MAX: Duration = Duration::from_mins(15);

/// The most memory that a Module may give one run, in bytes: all that 32 bits address.
pub const MEMORY_BYTES_MAX: usize = 4 << 30;

/// The longest output or log that a Module may give one run, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 256 << 20;

/// Writes in a second that a module may make, unless its Module sets another number.
pub(crate) const WRITES_PER_SECOND: NonZeroU32 = NonZeroU32::new(200).unwrap();

/// The highest number that a Module may set.
pub(crate) const WRITES_PER_SECOND_MAX: u32 = 10_000;

/// Bytes of the records of what a module's runs read, unless its Module sets another number.
pub(crate) const RECORDED_READ_BYTES: usize = 64 << 20;

/// The fewest bytes of these records that a Module may give, and the most.
pub(crate) const RECORDED_READ_BYTES_MIN: usize = 1 << 20;
pub(crate) const RECORDED_READ_BYTES_MAX: usize = 4 << 30;
