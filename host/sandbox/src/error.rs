//! What can go wrong, for callers to act on. Texts are stable (they go into conditions) and
//! bounded, whatever the guest is.

use std::fmt;
use std::time::Duration;

/// The longest text taken from a guest or from the compiler into an error, in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// The longest function name in a backtrace, in bytes.
const FUNCTION_BYTES_MAX: usize = 200;

/// Why a component is not accepted as a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are something else.
    #[error("not a WebAssembly component: {what}")]
    NotAComponent {
        /// What they are, and what to do.
        what: String,
    },
    /// Larger than [`Limits::component_bytes`](crate::Limits::component_bytes).
    #[error("the component has {bytes} bytes, the limit is {max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A guest of our contract, but of a version that this host does not speak.
    #[error(
        "the component was built against innkeeper:guest@{found}, this host speaks {wanted}: \
         build it with a matching SDK or take another release of the host"
    )]
    WrongContract {
        /// The version that the component names.
        found: String,
        /// The version of this host.
        wanted: &'static str,
    },
    /// It wants something that this host does not give.
    #[error("the component imports {name}, which is not part of innkeeper:guest@{}{}",
        innkeeper_contract::VERSION, wasi_hint(.name))]
    UnknownImport {
        /// The import; `interface#function` for a function of an interface of the contract.
        name: String,
    },
    /// It does not export the interface that makes a guest.
    #[error("the component does not export {name}: it is not an Innkeeper guest")]
    MissingExport {
        /// The missing interface.
        name: &'static str,
    },
    /// The names are right, the types are not.
    #[error("the component does not fit the contract: {what}")]
    WrongType {
        /// What differs.
        what: String,
    },
    /// Compiling took longer than [`Limits::compile_time`](crate::Limits::compile_time).
    #[error("compiling the component took longer than {limit:?} and was stopped")]
    CompileTimeout {
        /// The limit.
        limit: Duration,
    },
    /// The component is invalid, or takes more than the compiler may use.
    #[error("the component cannot be compiled: {what}")]
    CompileFailed {
        /// Why.
        what: String,
    },
    /// Something else than the host killed the compiler: the kernel does where memory is short. It
    /// counts against the component, or it would be compiled and killed without end.
    #[error(
        "the compiler of the component was killed, most likely since memory is short: the component \
         counts as too large to compile; give the host's container more memory, then change the \
         Module's spec, for example limits"
    )]
    CompileKilled,
    /// The compiler could not do its work. That is the host's trouble, not the component's.
    #[error("the host cannot compile: {what}")]
    Compiler {
        /// What happened and what to do.
        what: String,
    },
    /// `describe` failed, or its manifest cannot be read.
    #[error("describe failed: {0}")]
    Describe(#[from] CallError),
}

fn wasi_hint(name: &str) -> &'static str {
    if name.starts_with("wasi:") {
        " (guests have no WASI: build for wasm32-unknown-unknown, or stub WASI away)"
    } else {
        ""
    }
}

impl LoadError {
    /// One CamelCase word for each kind of error: the reason of a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotAComponent { .. } => "NotAComponent",
            Self::TooLarge { .. } => "ComponentTooLarge",
            Self::WrongContract { .. } => "WrongContract",
            Self::UnknownImport { .. } => "UnknownImport",
            Self::MissingExport { .. } => "MissingExport",
            Self::WrongType { .. } => "WrongType",
            Self::CompileTimeout { .. } => "CompileTimeout",
            Self::CompileFailed { .. } => "CompileFailed",
            Self::CompileKilled => "CompileKilled",
            Self::Compiler { .. } => "CompilerUnavailable",
            Self::Describe(_) => "DescribeFailed",
        }
    }

    /// Whether the same bytes may be accepted at another time: the trouble is the host's.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Compiler { .. } | Self::Describe(CallError::Busy { .. }))
    }
}

/// Why a call gave no outcome. The guest's own [`Failure`](innkeeper_contract::Failure) is not
/// here: it is an outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The guest stopped itself, or broke the rules of WebAssembly.
    #[error("the guest trapped: {0}")]
    Trap(Box<Trap>),
    /// It ran longer than [`Limits::time`](crate::Limits::time).
    #[error("the guest ran longer than {limit:?} and was stopped")]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It was refused memory and did not get over it.
    #[error("the guest wanted more than {limit} bytes of memory")]
    OutOfMemory {
        /// The limit.
        limit: usize,
    },
    /// It was refused table elements and did not get over it.
    #[error("the guest wanted more than {limit} table elements")]
    TableTooLarge {
        /// The limit.
        limit: usize,
    },
    /// It gave a document larger than [`Limits::output_bytes`](crate::Limits::output_bytes).
    #[error("the {document} of the guest has {bytes} bytes, the limit is {limit}")]
    OutputTooLarge {
        /// Which document of the contract.
        document: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It gave a document that is not JSON of the contract's shape.
    #[error("the {document} of the guest cannot be read: {what}{}", at(.place))]
    OutputUnreadable {
        /// Which document of the contract.
        document: &'static str,
        /// What is wrong.
        what: String,
        /// The member where it is wrong, as in `objects[2].policy[0]`; empty if it is the whole.
        place: String,
    },
    /// It desires more than [`Limits::objects`](crate::Limits::objects).
    #[error("the guest desires {count} objects, the limit is {limit}")]
    TooManyObjects {
        /// How many.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// It read more often than [`Limits::reads`](crate::Limits::reads).
    #[error("the guest read from the cluster more than {limit} times in one call")]
    TooManyReads {
        /// The limit.
        limit: usize,
    },
    /// One answer of a read would not fit into the guest's memory beside the `observed` document.
    #[error(
        "one read of the guest has more bytes than its memory of {limit} bytes has room for: let it \
         read less (by a namespace or a selector), or raise spec.limits.memory"
    )]
    ReadTooLarge {
        /// The guest's memory, in bytes.
        limit: usize,
    },
    /// All answers of one call would have more than
    /// [`Limits::read_bytes`](crate::Limits::read_bytes).
    #[error(
        "the guest read more than {limit} bytes from the cluster in one call: let it read less, or \
         raise spec.limits.memory, which this is four times"
    )]
    ReadsTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The `observed` document would have more bytes than the guest's memory.
    #[error(
        "the primary and what it owns have more than {limit} bytes, which is the guest's memory: \
         make them fewer or smaller, or raise spec.limits.memory"
    )]
    ObservedTooLarge {
        /// The limit.
        limit: usize,
    },
    /// More calls run at once than the engine has room for. That is the caller's trouble.
    #[error("the sandbox has no room for another call: {what}")]
    Busy {
        /// Which room.
        what: String,
    },
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" (at {place})") }
}

impl CallError {
    /// One CamelCase word for each kind of error: the reason of a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Trap(_) => "GuestTrapped",
            Self::Timeout { .. } => "GuestTimeout",
            Self::OutOfMemory { .. } => "GuestOutOfMemory",
            Self::TableTooLarge { .. } => "GuestTableTooLarge",
            Self::OutputTooLarge { .. } => "OutputTooLarge",
            Self::OutputUnreadable { .. } => "OutputUnreadable",
            Self::TooManyObjects { .. } => "TooManyObjects",
            Self::TooManyReads { .. } => "TooManyReads",
            Self::ReadTooLarge { .. } => "ReadTooLarge",
            Self::ReadsTooLarge { .. } => "ReadsTooLarge",
            Self::ObservedTooLarge { .. } => "ObservedTooLarge",
            Self::Busy { .. } => "SandboxBusy",
        }
    }

    /// Where the guest was, if it trapped.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        match self {
            Self::Trap(trap) => Some(&trap.backtrace),
            _ => None,
        }
    }
}

/// How a guest trapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// What WebAssembly says.
    pub message: String,
    /// The last line that the guest logged as an error before it: a panic message, from
    /// guests whose SDK logs it.
    pub panic_message: Option<String>,
    /// Where it was.
    pub backtrace: Backtrace,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(said) = &self.panic_message {
            write!(f, "; it said: {said}")?;
        }
        Ok(())
    }
}

/// The functions that a guest was in, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backtrace {
    /// One for each call.
    pub frames: Vec<Frame>,
}

/// One function of a [`Backtrace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its name, or `function <index>` where the component names none.
    pub function: String,
    /// Where in the core module, in bytes from its start.
    pub offset: Option<usize>,
}

impl Backtrace {
    pub(crate) fn from_wasm(backtrace: &wasmtime::WasmBacktrace) -> Self {
        let frames = backtrace
            .frames()
            .iter()
            .map(|frame| Frame {
                function: frame.func_name().map_or_else(
                    || format!("function {}", frame.func_index()),
                    // Without the hash, so that the text does not change with the compiler.
                    |name| {
                        bounded(format!("{:#}", rustc_demangle::demangle(name)), FUNCTION_BYTES_MAX)
                    },
                ),
                offset: frame.module_offset(),
            })
            .collect();
        Self { frames }
    }
}

impl fmt::Display for Backtrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, frame) in self.frames.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{index}: {}", frame.function)?;
            if let Some(offset) = frame.offset {
                write!(f, " ({offset:#x})")?;
            }
        }
        Ok(())
    }
}

/// A text from outside, cut to what an error may carry.
pub(crate) fn text(text: impl Into<String>) -> String {
    bounded(text.into(), TEXT_BYTES_MAX)
}

fn bounded(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push_str("...");
    }
    text
}
