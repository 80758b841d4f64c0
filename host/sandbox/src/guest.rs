//! A loaded guest, and its calls: [`Guest`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use innkeeper_contract::{Desired, Failure, Manifest};
use sha2::{Digest, Sha256};
use wasmtime::{PoolConcurrencyLimitError, Store, WasmBacktrace};

use crate::contract::bindings::exports::innkeeper::guest::reconciler;
use crate::contract::bindings::{ReconcilerGuest, ReconcilerGuestPre};
use crate::error::{Backtrace, CallError, LoadError, Trap, text};
use crate::host::{Host, LOAN, Loan, NoHost};
use crate::limits::Limits;
use crate::runtime::Runtime;
use crate::settings::{FUEL_PER_MS, Interruption, TICK};
use crate::state::{State, TooLarge, TooManyReads};
use crate::{compile, contract, output};

/// Bytes that a guest may pass to one import beyond its memory: those of the record itself.
const HOSTCALL_SLACK_BYTES: usize = 64 << 10;

/// A component that is a guest of the contract, ready to run. Clones are cheap.
#[derive(Clone)]
pub struct Guest {
    loaded: Arc<Loaded>,
    /// The manifest in use: the described one, or that with the kinds of a Module's parameters.
    manifest: Arc<Manifest>,
    limits: Limits,
}

struct Loaded {
    runtime: Arc<Runtime>,
    /// The component with its imports resolved and its exports found, both once per guest.
    pre: ReconcilerGuestPre<State>,
    described: Arc<Manifest>,
    warnings: Vec<String>,
    digest: String,
    size_bytes: usize,
}

/// The result of a call, and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The outcome.
    pub outcome: Outcome,
    /// The figures of the call.
    pub figures: Figures,
}

/// The outcome of a call, decoded strictly.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The complete desired state: the host deletes owned objects that are not in it.
    Complete(Desired),
    /// A part of the desired state: the host applies it and keeps the other objects.
    Partial(Desired),
    /// The guest failed: the host keeps all objects.
    Failed(Failure),
}

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

impl Guest {
    pub(crate) fn load(
        runtime: &Arc<Runtime>,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Self, LoadError> {
        compile::check(bytes, limits)?;
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let component = compile::component(runtime, bytes, &digest, limits)?;
        contract::check(&component, &runtime.wasm)?;
        let wrong_type =
            |error: wasmtime::Error| LoadError::WrongType { what: text(format!("{error:#}")) };
        let pre = runtime.linker.instantiate_pre(&component).map_err(wrong_type)?;
        let pre = ReconcilerGuestPre::new(pre).map_err(wrong_type)?;

        let mut host = NoHost::default();
        let (described, _) = call(runtime, &pre, limits, (None, 0), &mut host, |guest, store| {
            guest.innkeeper_guest_reconciler().call_describe(store)
        });
        let manifest: Manifest = output::read(&described?, limits)?;
        let manifest = Arc::new(manifest);
        Ok(Self {
            loaded: Arc::new(Loaded {
                runtime: Arc::clone(runtime),
                pre,
                described: Arc::clone(&manifest),
                warnings: host.warnings,
                digest: hex::encode(digest),
                size_bytes: bytes.len(),
            }),
            manifest,
            limits: *limits,
        })
    }

    /// The manifest in use: the one that `describe` gave, or that of [`Guest::with_manifest`].
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The manifest that `describe` gave.
    pub fn described(&self) -> &Arc<Manifest> {
        &self.loaded.described
    }

    /// The warnings and errors that `describe` logged, at most 20; each has any characters.
    pub fn describe_warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// SHA-256 of the component, in hexadecimal.
    pub fn digest(&self) -> &str {
        &self.loaded.digest
    }

    /// The interfaces that the component imports, in its own order.
    pub fn imports(&self) -> Vec<String> {
        let component = self.loaded.pre.instance_pre().component();
        let wasm = &self.loaded.runtime.wasm;
        component.component_type().imports(wasm).map(|(name, _)| name.to_owned()).collect()
    }

    /// Size of the component, in bytes.
    pub fn size_bytes(&self) -> usize {
        self.loaded.size_bytes
    }

    /// The limits of its calls.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same guest with other limits on its calls. The host compiles nothing.
    #[must_use]
    pub fn with_limits(&self, limits: Limits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// The same guest with another manifest in use: it may read the kinds of this one. The host
    /// compiles nothing.
    #[must_use]
    pub fn with_manifest(&self, manifest: Arc<Manifest>) -> Self {
        Self { manifest, ..self.clone() }
    }

    /// Calls `reconcile` of the guest in a new instance.
    ///
    /// `observed` is an `observed` document. Blocks the thread for up to [`Limits::time`] and the
    /// time of `host`; the caller holds a [`Permit`](crate::Permit).
    ///
    /// # Errors
    /// [`CallError`]. If the guest reports its own failure, the outcome is [`Outcome::Failed`].
    pub fn reconcile(&self, observed: &str, host: &mut dyn Host) -> Result<Run, CallError> {
        let (outcome, mut figures) = self.call(observed, host);
        let outcome = outcome?;
        figures.output_bytes = text_of(&outcome).len();
        let outcome = match &outcome {
            reconciler::Outcome::Complete(text) => {
                Outcome::Complete(output::read_desired(text, &self.limits)?)
            }
            reconciler::Outcome::Partial(text) => {
                Outcome::Partial(output::read_desired(text, &self.limits)?)
            }
            reconciler::Outcome::Failed(text) => Outcome::Failed(output::read(text, &self.limits)?),
        };
        Ok(Run { outcome, figures })
    }

    fn call(
        &self,
        observed: &str,
        host: &mut dyn Host,
    ) -> (Result<reconciler::Outcome, CallError>, Figures) {
        let Loaded { runtime, pre, .. } = &*self.loaded;
        let limit = self.limits.memory_bytes;
        if observed.len() > limit {
            return (Err(CallError::ObservedTooLarge { limit }), Figures::default());
        }
        let given = (Some(Arc::clone(&self.manifest)), observed.len());
        call(runtime, pre, &self.limits, given, host, |guest, store| {
            guest.innkeeper_guest_reconciler().call_reconcile(store, observed)
        })
    }

    /// The text of the outcome without decoding, which the benches compare with the native
    /// function.
    ///
    /// # Errors
    /// [`CallError`].
    #[doc(hidden)]
    pub fn reconcile_text(&self, observed: &str, host: &mut dyn Host) -> Result<String, CallError> {
        let (outcome, _) = self.call(observed, host);
        outcome.map(|outcome| text_of(&outcome).to_owned())
    }

    /// The mean time of a call in an instance after its first call, which the benches compare with
    /// [`Guest::reconcile`]. All calls together have the limits of a single call.
    ///
    /// # Errors
    /// [`CallError`].
    #[doc(hidden)]
    pub fn time_warm(
        &self,
        observed: &str,
        host: &mut dyn Host,
        calls: u32,
    ) -> Result<Duration, CallError> {
        let Loaded { runtime, pre, .. } = &*self.loaded;
        let given = (Some(Arc::clone(&self.manifest)), observed.len());
        let (time, _) = call(runtime, pre, &self.limits, given, host, |guest, store| {
            let guest = guest.innkeeper_guest_reconciler();
            guest.call_reconcile(&mut *store, observed)?;
            let started = Instant::now();
            for _ in 0..calls {
                guest.call_reconcile(&mut *store, observed)?;
            }
            Ok(started.elapsed() / calls.max(1))
        });
        time
    }
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest")
            .field("name", &self.manifest.name)
            .field("version", &self.manifest.version)
            .field("digest", &self.loaded.digest)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

fn text_of(outcome: &reconciler::Outcome) -> &str {
    let (reconciler::Outcome::Complete(text)
    | reconciler::Outcome::Partial(text)
    | reconciler::Outcome::Failed(text)) = outcome;
    text
}

/// Makes one call in a new instance, bounded by `limits`. The manifest has the kinds that the guest
/// may read; `given_bytes` is the size of the input.
fn call<R>(
    runtime: &Runtime,
    pre: &ReconcilerGuestPre<State>,
    limits: &Limits,
    (manifest, given_bytes): (Option<Arc<Manifest>>, usize),
    host: &mut dyn Host,
    function: impl FnOnce(&ReconcilerGuest, &mut Store<State>) -> wasmtime::Result<R>,
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
        LOAN.set(Loan(host), || {
            let guest = pre.instantiate(&mut store)?;
            function(&guest, &mut store)
        })
    };
    // Figures by fuel are the same on every machine, so they use no clock.
    let started = (interruption != Interruption::Fuel).then(Instant::now);
    let result = run();
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
