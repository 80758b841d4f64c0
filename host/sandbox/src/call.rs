//! One call of a guest: its bounds, its figures and its errors.

use std::sync::Arc;
use std::time::{Duration, Instant};

use innkeeper_contract::Manifest;
use wasmtime::{PoolConcurrencyLimitError, Store, WasmBacktrace};

use crate::error::{Backtrace, CallError, Trap, text};
use crate::host::{Host, LOAN, Loan};
use crate::limits::Limits;
use crate::runtime::Runtime;
use crate::settings::{FUEL_PER_MS, Interruption, TICK};
use crate::state::{State, TooLarge, TooManyReads};
use crate::ticker::Ticker;
use crate::wapc::exchange::ResponseTooLarge;

/// Bytes that a guest may pass to one import beyond its memory: those of the record itself.
const HOSTCALL_SLACK_BYTES: usize = 64 << 10;

/// The figures of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Time in the sandbox: instantiation, the guest, and its imports. Counted from fuel under
    /// [`Interruption::Fuel`], so that it is the same on every machine.
    pub time: Duration,
    /// The peak of the linear memory, in bytes.
    pub memory_peak_bytes: usize,
    /// Size of the output document, in bytes.
    pub output_bytes: usize,
    /// Bytes of log lines beyond the limit, which the host has cut off.
    pub log_cut_bytes: usize,
    /// Whether the guest read the clock.
    pub clock_read: bool,
    /// Units of fuel that the call used; `None` under [`Interruption::Epoch`].
    pub fuel: Option<u64>,
}

/// Makes one call in a new store, bounded by `limits`: `function` instantiates the component there
/// and calls it. The manifest has the kinds that the guest may read; `given_bytes` is the size of
/// the input.
pub(crate) fn call<R>(
    runtime: &Runtime,
    limits: &Limits,
    (manifest, given_bytes): (Option<Arc<Manifest>>, usize),
    host: &mut dyn Host,
    function: impl FnOnce(&mut Store<State>) -> wasmtime::Result<R>,
) -> (Result<R, CallError>, Figures) {
    let interruption = runtime.interruption;
    let mut store = Store::new(&runtime.wasm, State::new(*limits, manifest, given_bytes));
    store.limiter(|state| &mut state.usage);
    // The host copies the arguments of an import: never more than the guest's memory.
    store.set_hostcall_fuel(limits.memory_bytes.saturating_add(HOSTCALL_SLACK_BYTES));

    let fuel = fuel(limits.time);
    let run = || {
        match interruption {
            Interruption::Epoch => store.set_epoch_deadline(ticks(limits.time)),
            Interruption::Fuel => store.set_fuel(fuel)?,
            Interruption::Never => {}
        }
        LOAN.set(Loan(host), || function(&mut store))
    };
    // Figures by fuel are the same on every machine, so they use no clock.
    let started = (interruption != Interruption::Fuel).then(Instant::now);
    let ticking = runtime.ticker.as_ref().map(Ticker::tick);
    let result = run();
    drop(ticking);
    let elapsed = started.map(|started| started.elapsed());

    let burned = match interruption {
        Interruption::Epoch | Interruption::Never => None,
        Interruption::Fuel => store.get_fuel().ok().map(|left| fuel.saturating_sub(left)),
    };
    let state = store.data();
    let figures = Figures {
        time: elapsed
            .unwrap_or_else(|| Duration::from_micros(burned.unwrap_or(0) / (FUEL_PER_MS / 1_000))),
        memory_peak_bytes: state.usage.memory_peak_bytes,
        output_bytes: 0,
        log_cut_bytes: state.log_cut_bytes,
        clock_read: state.clock_was_read(),
        fuel: burned,
    };
    (result.map_err(|error| classify(&error, state)), figures)
}

/// The number of epochs after which `time` has passed for sure: the current one may end soon.
fn ticks(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(TICK.as_nanos())).unwrap_or(u64::MAX).saturating_add(1)
}

fn fuel(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX).saturating_mul(FUEL_PER_MS / 1_000)
}

/// The error of a call, by the type of wasmtime's error and by the state of the call.
fn classify(error: &wasmtime::Error, state: &State) -> CallError {
    let limits = &state.limits;
    if error.is::<TooManyReads>() {
        return CallError::TooManyReads { limit: limits.reads };
    }
    match error.downcast_ref::<TooLarge>() {
        Some(TooLarge::OneRead) => return CallError::ReadTooLarge { limit: limits.memory_bytes },
        Some(TooLarge::AllReads) => return CallError::ReadsTooLarge { limit: limits.read_bytes() },
        None => {}
    }
    if let Some(ResponseTooLarge { bytes }) = error.downcast_ref() {
        let (document, limit) = ("response", limits.output_bytes);
        return CallError::OutputTooLarge { document, bytes: *bytes, limit };
    }
    if let Some(error) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        return CallError::Busy { what: text(error.to_string()) };
    }
    let trap = error.downcast_ref::<wasmtime::Trap>();
    if matches!(trap, Some(wasmtime::Trap::Interrupt | wasmtime::Trap::OutOfFuel)) {
        return CallError::Timeout { limit: limits.time };
    }
    if let Some(error) = error.downcast_ref::<std::str::Utf8Error>() {
        return CallError::OutputUnreadable {
            document: "output",
            what: error.to_string(),
            place: String::new(),
        };
    }
    // A guest without memory aborts, which looks like any other trap.
    if let Some(limit) = state.usage.memory_refused {
        return CallError::OutOfMemory { limit };
    }
    if let Some(limit) = state.usage.table_refused {
        return CallError::TableTooLarge { limit };
    }
    CallError::Trap(Box::new(Trap {
        message: text(trap.map_or_else(|| error.root_cause().to_string(), ToString::to_string)),
        panic_message: state.panic_message.clone(),
        backtrace: error
            .downcast_ref::<WasmBacktrace>()
            .map(Backtrace::from_wasm)
            .unwrap_or_default(),
    }))
}
