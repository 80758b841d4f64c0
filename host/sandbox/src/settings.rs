//! wasmtime's settings. The compiling child and the running engine must agree on all settings that
//! shape code, so both take them from here.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmtime::{
    Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, Strategy,
};

use crate::permits::cores;

/// The time between two epochs while a call runs (its first one may take five times as long), and
/// the unit of [`Limits::time`](crate::Limits::time).
pub const TICK: Duration = Duration::from_millis(10);

/// Units of fuel that count as one millisecond: about the cost of instructions on a machine of
/// today, but the same on every machine.
pub const FUEL_PER_MS: u64 = 1_000_000;

/// The way to stop a guest that runs too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interruption {
    /// By the wall clock: the cheaper way, for real clusters.
    #[default]
    Epoch,
    /// By a count of instructions: the same run ends at the same instruction on every machine. For
    /// simulations and replays; an instruction that moves much memory counts as one.
    Fuel,
    /// Not at all, to measure the cost of interruption: a guest that loops never ends.
    #[doc(hidden)]
    Never,
}

/// Where the host compiles components.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compile {
    /// In a child process: the host starts this program (this very build of Innkeeper) with the
    /// one argument `compile`, which must call [`compile_child`](crate::compile_child).
    Child(PathBuf),
    /// In this process, where [`Limits::compile_time`](crate::Limits::compile_time) does not hold:
    /// for tests, simulations and offline commands, whose components belong to their user.
    InProcess,
}

/// Guest stack, in bytes, of wasm frames on the host's stack. A thread that calls guests needs
/// twice as much; 2 MiB (the default of Rust and tokio) is plenty.
const WASM_STACK_BYTES: usize = 512 << 10;

/// Frames of a backtrace that are kept.
const BACKTRACE_FRAMES: std::num::NonZeroUsize = match std::num::NonZeroUsize::new(32) {
    Some(frames) => frames,
    None => std::num::NonZeroUsize::MIN,
};

/// Of each linear memory, the bytes reset in place after a call instead of being unmapped.
const MEMORY_KEEP_RESIDENT_BYTES: usize = 256 << 10;

/// Of each table, the bytes reset in place after a call.
const TABLE_KEEP_RESIDENT_BYTES: usize = 64 << 10;

/// Limits on the parts of one component. Guests in Rust have one core module; those that bring an
/// interpreter have more: one in Python 38 instances, of its libraries and of the stubs for WASI.
/// Unused room costs nothing.
const CORE_INSTANCES_PER_COMPONENT: u32 = 64;
const MEMORIES_PER_COMPONENT: u32 = 4;
const TABLES_PER_COMPONENT: u32 = 16;

/// Elements that one table slot can hold; [`Limits::table_elements`](crate::Limits::table_elements)
/// goes no higher.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 1 << 20;

/// Settings that shape the compiled code.
pub(crate) fn compiler(interruption: Interruption) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .epoch_interruption(interruption == Interruption::Epoch)
        .consume_fuel(interruption == Interruption::Fuel)
        .max_wasm_stack(WASM_STACK_BYTES)
        .wasm_backtrace_max_frames(Some(BACKTRACE_FRAMES))
        .memory_init_cow(true)
        // Fibers cost 1.5 us a call, and calls of guests never suspend.
        .concurrency_support(false)
        // A replay on another machine must give the same bytes.
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        // wasmtime checks the bounds of a 64-bit memory in software; no guest needs 4 GiB.
        .wasm_memory64(false);
    config
}

/// The parts of a pool with so many memories, each with its share of the warm ones: a thread keeps
/// to the memories of one part. wasmtime 48 makes one for each core, up to 16, of a pool of 128
/// memories or more (`ShardLayout` in its `index_allocator.rs`).
fn pool_parts(memories: u32) -> u32 {
    let cores = u32::try_from(cores()).unwrap_or(u32::MAX);
    if memories < 128 { 1 } else { cores.clamp(1, 16) }
}

/// Settings of an engine that runs: the compiler's, and a pool for `calls` at once that keeps the
/// memories of the last `guests` guests warm.
pub(crate) fn runtime(interruption: Interruption, guests: u32, calls: u32) -> Config {
    // One memory per warm guest, so that each finds its own slot, and room for calls of components
    // with several.
    let memories = guests.saturating_add(calls.saturating_mul(MEMORIES_PER_COMPONENT));
    let tables = guests.saturating_add(calls.saturating_mul(TABLES_PER_COMPONENT));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(guests.saturating_add(calls))
        .total_core_instances(
            guests.saturating_add(calls.saturating_mul(CORE_INSTANCES_PER_COMPONENT)),
        )
        .total_memories(memories)
        .total_tables(tables)
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .max_memories_per_component(MEMORIES_PER_COMPONENT)
        .max_tables_per_component(TABLES_PER_COMPONENT)
        .max_memories_per_module(MEMORIES_PER_COMPONENT)
        .max_tables_per_module(TABLES_PER_COMPONENT)
        .table_elements(TABLE_ELEMENTS_MAX)
        // A slot keeps the pages that its last guest wrote: about 36 KiB of a guest in Rust, and
        // up to the bounds below. Without a limit each idle guest would hold that much.
        .max_unused_warm_slots(guests.saturating_mul(pool_parts(memories)))
        .linear_memory_keep_resident(MEMORY_KEEP_RESIDENT_BYTES)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    let mut config = compiler(interruption);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}
