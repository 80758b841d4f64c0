//! The limits of one guest: [`Limits`].

use std::time::Duration;

/// Default of [`Limits::component_bytes`]: 32 MiB, enough for a guest that brings an interpreter.
pub const COMPONENT_BYTES_DEFAULT: usize = 32 << 20;
/// Default of [`Limits::compile_time`].
pub const COMPILE_TIME_DEFAULT: Duration = Duration::from_mins(1);
/// Default of [`Limits::time`].
pub const TIME_DEFAULT: Duration = Duration::from_secs(1);
/// Default of [`Limits::memory_bytes`]: 64 MiB.
pub const MEMORY_BYTES_DEFAULT: usize = 64 << 20;
/// Default of [`Limits::table_elements`].
pub const TABLE_ELEMENTS_DEFAULT: usize = 20_000;
/// Default of [`Limits::output_bytes`]: 4 MiB.
pub const OUTPUT_BYTES_DEFAULT: usize = 4 << 20;
/// Default of [`Limits::objects`].
pub const OBJECTS_DEFAULT: usize = 1_000;
/// Default of [`Limits::reads`].
pub const READS_DEFAULT: usize = 10_000;
/// Default of [`Limits::log_bytes`]: 16 KiB.
pub const LOG_BYTES_DEFAULT: usize = 16 << 10;

/// The ratio of the answers of reads in one call to the guest's memory ([`Limits::read_bytes`]).
const READ_BYTES_PER_MEMORY: usize = 4;

/// The limits of one guest. The first two bound the load, the others each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size of the component before it is compiled, in bytes.
    pub component_bytes: usize,
    /// Wall-clock time of the compilation. It does not hold for
    /// [`Compile::InProcess`](crate::Compile::InProcess).
    pub compile_time: Duration,
    /// Time of one call, instantiation included. By epoch it ends up to six
    /// [`TICK`](crate::TICK)s late, and more on a machine so busy that the ticks are late
    /// themselves; by fuel it is counted in instructions ([`FUEL_PER_MS`](crate::FUEL_PER_MS)).
    pub time: Duration,
    /// Linear memory of one instance, all its memories together, in bytes.
    pub memory_bytes: usize,
    /// Table elements of one instance, all its tables together.
    pub table_elements: usize,
    /// Size of the output document of a call, in bytes of UTF-8.
    pub output_bytes: usize,
    /// Objects in one `desired` document.
    pub objects: usize,
    /// Calls of `cluster.get` and `cluster.list` in one call.
    pub reads: usize,
    /// Log lines of one call, in bytes, one more for each line. The sandbox cuts the rest off.
    pub log_bytes: usize,
}

impl Limits {
    /// Bytes of all answers of `cluster.get` and `cluster.list` in one call: four times the guest's
    /// memory, so that a guest may look through more than it can keep. One answer and the
    /// `observed` document together may have as many bytes as the guest's memory.
    pub fn read_bytes(&self) -> usize {
        self.memory_bytes.saturating_mul(READ_BYTES_PER_MEMORY)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            component_bytes: COMPONENT_BYTES_DEFAULT,
            compile_time: COMPILE_TIME_DEFAULT,
            time: TIME_DEFAULT,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            table_elements: TABLE_ELEMENTS_DEFAULT,
            output_bytes: OUTPUT_BYTES_DEFAULT,
            objects: OBJECTS_DEFAULT,
            reads: READS_DEFAULT,
            log_bytes: LOG_BYTES_DEFAULT,
        }
    }
}
