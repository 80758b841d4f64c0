//! The errors of loads and calls, by type. Their texts are stable (the host puts them into
//! conditions) and bounded for any guest.

use std::fmt;
use std::time::Duration;

/// The longest text taken from a guest or from the compiler into an error, in bytes.
const TEXT_BYTES_MAX: usize = 2_000;

/// The longest function name in a backtrace, in bytes.
const FUNCTION_BYTES_MAX: usize = 200;

/// The reason why the host does not accept a component as a guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes are no component.
    #[error("not a WebAssembly component: {what}")]
    NotAComponent {
        /// The format of the bytes, and the remedy.
        what: String,
    },
    /// The component is larger than [`Limits::component_bytes`](crate::Limits::component_bytes).
    #[error("the component has {bytes} bytes, the limit is {max}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The component is a guest of a version of the contract that this host does not support.
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
    /// The component has an import that is not part of the contract.
    #[error("the component imports {name}, which is not part of innkeeper:guest@{}{}",
        innkeeper_contract::VERSION, wasi_hint(.name))]
    UnknownImport {
        /// The import; `interface#function` for a function of an interface of the contract.
        name: String,
    },
    /// The core module has an import that the host does not offer to Kubewarden policies.
    #[error(
        "the module imports {name}, which is neither of waPC nor of WASI preview 1: the host offers \
         nothing else to Kubewarden policies"
    )]
    UnknownModuleImport {
        /// The import, as `module#function`.
        name: String,
    },
    /// The core module lacks an export of waPC, or has it with another type.
    #[error(
        "the module does not export `{name}` as waPC has it: build the policy with an SDK of \
         Kubewarden"
    )]
    WrongModuleExport {
        /// The export.
        name: &'static str,
    },
    /// The metadata of a Kubewarden policy cannot be used.
    #[error("the Kubewarden policy cannot run: its metadata cannot be used: {what}")]
    InvalidMetadata {
        /// The problem and the remedy.
        what: String,
    },
    /// The Kubewarden policy speaks a version of the protocol that this host does not support.
    #[error("the Kubewarden policy speaks the protocol {found:?}, this host speaks {wanted:?}")]
    WrongProtocol {
        /// The version that the policy names, or the error that it gives instead.
        found: String,
        /// The version of this host.
        wanted: &'static str,
    },
    /// The component exports no interface of a guest.
    #[error("the component does not export {name}: it is not an Innkeeper guest")]
    MissingExport {
        /// The interfaces, of which a guest exports at least one.
        name: &'static str,
    },
    /// The component has the names of the contract with other types.
    #[error("the component does not fit the contract: {what}")]
    WrongType {
        /// The difference.
        what: String,
    },
    /// The component exports two interfaces, and they describe different manifests.
    #[error(
        "describe of {} and describe of {} give different manifests: return the same document from \
         both",
        innkeeper_contract::RECONCILER_INTERFACE,
        innkeeper_contract::POLICY_INTERFACE
    )]
    DescribesDiffer,
    /// The manifest lacks the member of an interface that the component exports, or has that of one
    /// that it does not export.
    #[error("{}", mismatch(interface, member, *is_exported))]
    ManifestMismatch {
        /// The interface.
        interface: &'static str,
        /// The member of the manifest that belongs to it.
        member: &'static str,
        /// Whether the component exports the interface.
        is_exported: bool,
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
        /// The reason.
        what: String,
    },
    /// Another process or the kernel killed the compiler; the kernel does if memory is short. The
    /// error is permanent, or the host would compile the component again without end.
    #[error(
        "the compiler of the component was killed, most likely since memory is short: the component \
         counts as too large to compile; give the host's container more memory, then change the \
         Module's spec, for example limits"
    )]
    CompileKilled,
    /// The compiler could not work, for a reason that the component does not cause.
    #[error("the host cannot compile: {what}")]
    Compiler {
        /// The reason and the remedy.
        what: String,
    },
    /// `describe` failed, or its manifest cannot be read.
    #[error("describe failed: {0}")]
    Describe(#[from] CallError),
}

fn mismatch(interface: &str, member: &str, is_exported: bool) -> String {
    if is_exported {
        format!(
            "the component exports {interface}, and its manifest has no `{member}`: describe \
             `{member}`, or leave out the export"
        )
    } else {
        format!(
            "the manifest has `{member}`, and the component does not export {interface}: export it, \
             or leave out `{member}`"
        )
    }
}

fn wasi_hint(name: &str) -> &'static str {
    if name.starts_with("wasi:") {
        " (guests have no WASI: build for wasm32-unknown-unknown, or stub WASI away)"
    } else {
        ""
    }
}

impl LoadError {
    /// The CamelCase reason of a condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotAComponent { .. } => "NotAComponent",
            Self::TooLarge { .. } => "ComponentTooLarge",
            Self::WrongContract { .. } | Self::WrongProtocol { .. } => "WrongContract",
            Self::UnknownImport { .. } | Self::UnknownModuleImport { .. } => "UnknownImport",
            Self::InvalidMetadata { .. } => "InvalidMetadata",
            Self::MissingExport { .. } | Self::WrongModuleExport { .. } => "MissingExport",
            Self::WrongType { .. } => "WrongType",
            Self::DescribesDiffer => "DescribesDiffer",
            Self::ManifestMismatch { .. } => "ManifestMismatch",
            Self::CompileTimeout { .. } => "CompileTimeout",
            Self::CompileFailed { .. } => "CompileFailed",
            Self::CompileKilled => "CompileKilled",
            Self::Compiler { .. } => "CompilerUnavailable",
            Self::Describe(_) => "DescribeFailed",
        }
    }

    /// Whether the host may accept the same bytes later: the component does not cause the error.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Compiler { .. } | Self::Describe(CallError::Busy { .. }))
    }
}

/// The reason why a call gave no outcome. The guest's own [`Failure`](innkeeper_contract::Failure)
/// is an outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The guest stopped itself, or broke the rules of WebAssembly.
    #[error("the guest trapped: {0}")]
    Trap(Box<Trap>),
    /// The guest ran longer than [`Limits::time`](crate::Limits::time).
    #[error("the guest ran longer than {limit:?} and was stopped")]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// The sandbox refused memory to the guest, and the guest failed.
    #[error("the guest wanted more than {limit} bytes of memory")]
    OutOfMemory {
        /// The limit.
        limit: usize,
    },
    /// The sandbox refused table elements to the guest, and the guest failed.
    #[error("the guest wanted more than {limit} table elements")]
    TableTooLarge {
        /// The limit.
        limit: usize,
    },
    /// A document of the guest is larger than
    /// [`Limits::output_bytes`](crate::Limits::output_bytes).
    #[error("the {document} of the guest has {bytes} bytes, the limit is {limit}")]
    OutputTooLarge {
        /// The name of the document in the contract.
        document: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A document of the guest is not JSON of the contract's schema.
    #[error("the {document} of the guest cannot be read: {what}{}", at(.place))]
    OutputUnreadable {
        /// The name of the document in the contract.
        document: &'static str,
        /// The problem.
        what: String,
        /// The member with the problem, as in `objects[2].policy[0]`; empty for the whole document.
        place: String,
    },
    /// The guest desires more objects than [`Limits::objects`](crate::Limits::objects).
    #[error("the guest desires {count} objects, the limit is {limit}")]
    TooManyObjects {
        /// The number of objects.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The guest read more often than [`Limits::reads`](crate::Limits::reads).
    #[error("the guest read from the cluster more than {limit} times in one call")]
    TooManyReads {
        /// The limit.
        limit: usize,
    },
    /// One answer of a read and the document that the call got together do not fit into the guest's
    /// memory.
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
    /// The `review-request` document would have more bytes than the guest's memory.
    #[error(
        "the review request has more than {limit} bytes, which is the guest's memory: raise \
         spec.limits.memory"
    )]
    RequestTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The `review-request` document cannot be read.
    #[error("the review request cannot be read: {what}")]
    RequestUnreadable {
        /// The problem.
        what: String,
    },
    /// The component does not export the interface of the function that the caller calls.
    #[error("the guest does not export {interface}")]
    NotExported {
        /// The interface.
        interface: &'static str,
    },
    /// The caller makes more calls at once than the engine has room for.
    #[error("the sandbox has no room for another call: {what}")]
    Busy {
        /// The resource that is exhausted.
        what: String,
    },
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" (at {place})") }
}

impl CallError {
    /// The CamelCase reason of a condition.
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
            Self::RequestTooLarge { .. } => "RequestTooLarge",
            Self::RequestUnreadable { .. } => "RequestUnreadable",
            Self::NotExported { .. } => "NotExported",
            Self::Busy { .. } => "SandboxBusy",
        }
    }

    /// The backtrace of a trap.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        match self {
            Self::Trap(trap) => Some(&trap.backtrace),
            _ => None,
        }
    }
}

/// The reason why a Kubewarden policy does not work with its settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The policy refuses them, for this reason of any characters.
    #[error("the policy refuses its settings: {0}")]
    Refused(String),
    /// The policy gave no answer.
    #[error("validate_settings of the policy failed: {0}")]
    Failed(#[from] CallError),
}

/// The trap of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// The message of the trap.
    pub message: String,
    /// The last line that the guest logged as an error before the trap: a panic message, if the
    /// guest's SDK logs it.
    pub panic_message: Option<String>,
    /// The functions at the trap.
    pub backtrace: Backtrace,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(message) = &self.panic_message {
            write!(f, "; its last error: {message}")?;
        }
        Ok(())
    }
}

/// The functions on the stack of a guest, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backtrace {
    /// One frame per call.
    pub frames: Vec<Frame>,
}

/// One function of a [`Backtrace`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The name, or `function <index>` for a function without one.
    pub function: String,
    /// The place in the core module, in bytes from its start.
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

/// Cuts a foreign text to the length that an error may have.
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
