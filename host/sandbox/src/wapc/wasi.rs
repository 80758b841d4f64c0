//! The functions of WASI preview 1 that a policy may import. They give it nothing of this machine:
//! no files, arguments or environment, and the time of the call as the clock. Random numbers are
//! the same in each call of a guest, so that the same request gives the same verdict.

use wasmtime::{Caller, FuncType, Linker, Result, Val, ValType};

use super::exchange::Exited;
use super::memory;
use crate::host::Level;
use crate::state::State;

/// The module of the imports.
pub(crate) const MODULE: &str = "wasi_snapshot_preview1";

/// Error numbers of WASI.
const SUCCESS: i32 = 0;
const BAD_DESCRIPTOR: i32 = 8;
const NOT_SUPPORTED: i32 = 52;

const STDOUT: i32 = 1;
const STDERR: i32 = 2;

/// The most bytes that one `fd_write` takes. A guest writes the rest by another one.
const WRITE_BYTES_MAX: usize = 16 << 10;

/// The most parts of one `fd_write` that the host reads.
const WRITE_PARTS_MAX: i32 = 64;

/// The most bytes of one `random_get`: enough for a seed of any generator.
const RANDOM_BYTES_MAX: i32 = 64 << 10;

/// The size of `fdstat`, and the file type of standard input and output in it.
const FDSTAT_BYTES: usize = 24;
const CHARACTER_DEVICE: u8 = 2;

/// The most subscriptions of one `poll_oneoff` that are looked at.
const POLL_MAX: i32 = 64;

/// Sizes of a subscription and of an event of `poll_oneoff`, and the type of both for a clock.
const SUBSCRIPTION_BYTES: u32 = 48;
const EVENT_BYTES: usize = 32;
const CLOCK: u8 = 0;

/// The functions that only answer with an error number: their parameters (`i` for 32 bits, `I` for
/// 64), and the number.
const STUBS: &[(&str, &str, i32)] = &[
    ("args_get", "ii", SUCCESS),
    ("environ_get", "ii", SUCCESS),
    ("sched_yield", "", SUCCESS),
    ("fd_advise", "iIIi", BAD_DESCRIPTOR),
    ("fd_allocate", "iII", BAD_DESCRIPTOR),
    ("fd_close", "i", BAD_DESCRIPTOR),
    ("fd_datasync", "i", BAD_DESCRIPTOR),
    ("fd_fdstat_set_flags", "ii", BAD_DESCRIPTOR),
    ("fd_fdstat_set_rights", "iII", BAD_DESCRIPTOR),
    ("fd_filestat_get", "ii", BAD_DESCRIPTOR),
    ("fd_filestat_set_size", "iI", BAD_DESCRIPTOR),
    ("fd_filestat_set_times", "iIIi", BAD_DESCRIPTOR),
    ("fd_pread", "iiiIi", BAD_DESCRIPTOR),
    ("fd_prestat_get", "ii", BAD_DESCRIPTOR),
    ("fd_prestat_dir_name", "iii", BAD_DESCRIPTOR),
    ("fd_pwrite", "iiiIi", BAD_DESCRIPTOR),
    ("fd_read", "iiii", BAD_DESCRIPTOR),
    ("fd_readdir", "iiiIi", BAD_DESCRIPTOR),
    ("fd_renumber", "ii", BAD_DESCRIPTOR),
    ("fd_seek", "iIii", BAD_DESCRIPTOR),
    ("fd_sync", "i", BAD_DESCRIPTOR),
    ("fd_tell", "ii", BAD_DESCRIPTOR),
    ("path_create_directory", "iii", BAD_DESCRIPTOR),
    ("path_filestat_get", "iiiii", BAD_DESCRIPTOR),
    ("path_filestat_set_times", "iiiiIIi", BAD_DESCRIPTOR),
    ("path_link", "iiiiiii", BAD_DESCRIPTOR),
    ("path_open", "iiiiiIIii", BAD_DESCRIPTOR),
    ("path_readlink", "iiiiii", BAD_DESCRIPTOR),
    ("path_remove_directory", "iii", BAD_DESCRIPTOR),
    ("path_rename", "iiiiii", BAD_DESCRIPTOR),
    ("path_symlink", "iiiii", BAD_DESCRIPTOR),
    ("path_unlink_file", "iii", BAD_DESCRIPTOR),
    ("proc_raise", "i", NOT_SUPPORTED),
    ("sock_accept", "iii", BAD_DESCRIPTOR),
    ("sock_recv", "iiiiii", BAD_DESCRIPTOR),
    ("sock_send", "iiiii", BAD_DESCRIPTOR),
    ("sock_shutdown", "ii", BAD_DESCRIPTOR),
];

/// The names of the other functions that [`add`] defines.
const FUNCTIONS: [&str; 9] = [
    "args_sizes_get",
    "environ_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "fd_fdstat_get",
    "fd_write",
    "proc_exit",
    "random_get",
    "poll_oneoff",
];

/// Whether there is a function of this name.
pub(crate) fn has(function: &str) -> bool {
    FUNCTIONS.contains(&function) || STUBS.iter().any(|(name, ..)| *name == function)
}

/// Adds the imports to a linker.
///
/// # Errors
/// That of wasmtime, for a name that is there already.
pub(crate) fn add(linker: &mut Linker<State>) -> Result<()> {
    for &(name, parameters, answer) in STUBS {
        let parameters =
            parameters.chars().map(|one| if one == 'I' { ValType::I64 } else { ValType::I32 });
        let ty = FuncType::new(linker.engine(), parameters, [ValType::I32]);
        linker.func_new(MODULE, name, ty, move |_, _, results| {
            results[0] = Val::I32(answer);
            Ok(())
        })?;
    }
    linker
        .func_wrap(MODULE, "args_sizes_get", no_texts)?
        .func_wrap(MODULE, "environ_sizes_get", no_texts)?
        .func_wrap(MODULE, "clock_res_get", clock_resolution)?
        .func_wrap(MODULE, "clock_time_get", clock_time)?
        .func_wrap(MODULE, "fd_fdstat_get", descriptor_state)?
        .func_wrap(MODULE, "fd_write", write)?
        .func_wrap(MODULE, "proc_exit", exit)?
        .func_wrap(MODULE, "random_get", random)?
        .func_wrap(MODULE, "poll_oneoff", poll)?;
    Ok(())
}

/// Says that there are neither arguments nor variables.
fn no_texts(mut caller: Caller<'_, State>, count: i32, bytes: i32) -> Result<i32> {
    memory::write_u32(&mut caller, count, 0)?;
    memory::write_u32(&mut caller, bytes, 0)?;
    Ok(SUCCESS)
}

fn clock_resolution(mut caller: Caller<'_, State>, _clock: i32, address: i32) -> Result<i32> {
    const MILLISECOND_NS: u64 = 1_000_000;
    memory::write(&mut caller, address, &MILLISECOND_NS.to_le_bytes())?;
    Ok(SUCCESS)
}

/// The time of the call, by every clock: it stands still.
fn clock_time(
    mut caller: Caller<'_, State>,
    _clock: i32,
    _precision: i64,
    address: i32,
) -> Result<i32> {
    // There is no time while a policy is loaded, and Go's runtime does not start at zero.
    let now_ns = caller.data_mut().time_ms().saturating_mul(1_000_000).max(1);
    memory::write(&mut caller, address, &now_ns.to_le_bytes())?;
    Ok(SUCCESS)
}

/// Ends every wait for a clock at once: the clock stands still, so the wait would have no end.
fn poll(
    mut caller: Caller<'_, State>,
    subscriptions: i32,
    events: i32,
    count: i32,
    events_count: i32,
) -> Result<i32> {
    let mut found = Vec::new();
    for subscription in 0..count.clamp(0, POLL_MAX).cast_unsigned() {
        let offset = subscription.wrapping_mul(SUBSCRIPTION_BYTES);
        let at = subscriptions.cast_unsigned().wrapping_add(offset);
        // What the guest gives with it, and the type.
        let head = memory::read_at(&mut caller, at, 9)?;
        if head[8] == CLOCK {
            let mut event = [0; EVENT_BYTES];
            event[..8].copy_from_slice(&head[..8]);
            found.extend(event);
        }
    }
    if found.is_empty() {
        return Ok(NOT_SUPPORTED);
    }
    memory::write(&mut caller, events, &found)?;
    let count = u32::try_from(found.len() / EVENT_BYTES).unwrap_or(u32::MAX);
    memory::write_u32(&mut caller, events_count, count)?;
    Ok(SUCCESS)
}

fn descriptor_state(mut caller: Caller<'_, State>, descriptor: i32, address: i32) -> Result<i32> {
    if !(0..=STDERR).contains(&descriptor) {
        return Ok(BAD_DESCRIPTOR);
    }
    let mut state = [0; FDSTAT_BYTES];
    state[0] = CHARACTER_DEVICE;
    memory::write(&mut caller, address, &state)?;
    Ok(SUCCESS)
}

/// Writes standard output and standard error to the guest's log, line by line.
fn write(
    mut caller: Caller<'_, State>,
    descriptor: i32,
    parts: i32,
    parts_count: i32,
    written: i32,
) -> Result<i32> {
    let level = match descriptor {
        STDOUT => Level::Info,
        STDERR => Level::Error,
        _ => return Ok(BAD_DESCRIPTOR),
    };
    let mut text = Vec::new();
    for part in 0..parts_count.clamp(0, WRITE_PARTS_MAX).cast_unsigned() {
        let at = parts.cast_unsigned().wrapping_add(part.wrapping_mul(8));
        let record = memory::read_at(&mut caller, at, 8)?;
        let number = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let length = (number(4) as usize).min(WRITE_BYTES_MAX - text.len());
        text.extend(memory::read_at(&mut caller, number(0), length)?);
    }
    for line in String::from_utf8_lossy(&text).lines().filter(|line| !line.is_empty()) {
        caller.data_mut().write_log(level, line.to_owned());
    }
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    memory::write_u32(&mut caller, written, length)?;
    Ok(SUCCESS)
}

fn exit(_: Caller<'_, State>, status: i32) -> Result<()> {
    Err(Exited(status).into())
}

/// Fills memory with pseudorandom numbers (SplitMix64). They continue within one call, so that a
/// guest that draws again until a number suits it gets other numbers.
fn random(mut caller: Caller<'_, State>, address: i32, length: i32) -> Result<i32> {
    if !(0..=RANDOM_BYTES_MAX).contains(&length) {
        return Ok(NOT_SUPPORTED);
    }
    let length = length.cast_unsigned() as usize;
    let mut state = caller.data().random_seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend((mixed ^ (mixed >> 31)).to_le_bytes());
    }
    caller.data_mut().random_seed = state;
    memory::write(&mut caller, address, &bytes[..length])?;
    Ok(SUCCESS)
}
