//! The state of one call: its limits, its usage, and its imports.

use std::sync::Arc;

use innkeeper_contract::Manifest;
use wasmtime::{ResourceLimiter, Result};

use crate::contract::bindings::reconciler::innkeeper::guest::{clock, cluster, log};
use crate::host::{Host, LOAN, Level, ReadError, ResourceKind};
use crate::limits::Limits;
use crate::wapc::exchange::Exchange;

/// The longest selector of a read, in bytes. The bounds keep the record of a guest's reads small.
const SELECTOR_BYTES_MAX: usize = 4_096;

/// The longest name, namespace, kind and API version of a read, in bytes: Kubernetes has no
/// longer ones.
const NAME_BYTES_MAX: usize = 317;

/// The longest error line kept for [`Trap::panic_message`](crate::Trap::panic_message), in bytes.
const PANIC_BYTES_MAX: usize = 1_000;

/// The end of a text that the sandbox has cut.
const CUT: &str = "...";

/// The state of one call, in the store.
pub(crate) struct State {
    pub(crate) limits: Limits,
    /// `None` during `describe`.
    manifest: Option<Arc<Manifest>>,
    pub(crate) usage: Usage,
    reads: usize,
    /// Bytes of the document that the call got.
    given_bytes: usize,
    /// Bytes of all answers so far.
    read_bytes: usize,
    now_ms: Option<u64>,
    log_bytes: usize,
    pub(crate) log_cut_bytes: usize,
    pub(crate) panic_message: Option<String>,
    /// The bytes that pass between the host and a Kubewarden policy.
    pub(crate) exchange: Exchange,
    /// The state of the pseudorandom numbers of a Kubewarden policy.
    pub(crate) random_seed: u64,
}

/// Memory and tables of one call.
#[derive(Default)]
pub(crate) struct Usage {
    limits: Limits,
    memory_bytes: usize,
    pub(crate) memory_peak_bytes: usize,
    table_elements: usize,
    /// The limit by which the sandbox refused memory, or table elements.
    pub(crate) memory_refused: Option<usize>,
    pub(crate) table_refused: Option<usize>,
}

/// The error that ends a call with too many reads.
#[derive(Debug, thiserror::Error)]
#[error("too many reads")]
pub(crate) struct TooManyReads;

/// The error that ends a call with too large reads.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooLarge {
    #[error("one read is too large")]
    OneRead,
    #[error("all reads together are too large")]
    AllReads,
}

impl State {
    pub(crate) fn new(limits: Limits, manifest: Option<Arc<Manifest>>, given_bytes: usize) -> Self {
        Self {
            limits,
            manifest,
            usage: Usage { limits, ..Usage::default() },
            reads: 0,
            given_bytes,
            read_bytes: 0,
            now_ms: None,
            log_bytes: 0,
            log_cut_bytes: 0,
            panic_message: None,
            exchange: Exchange::default(),
            random_seed: 0,
        }
    }

    pub(crate) fn clock_was_read(&self) -> bool {
        self.now_ms.is_some()
    }

    /// Counts a question to the host.
    ///
    /// # Errors
    /// If the call asked too often: it ends.
    pub(crate) fn count_read(&mut self) -> Result<()> {
        self.reads += 1;
        if self.reads > self.limits.reads { Err(TooManyReads.into()) } else { Ok(()) }
    }

    /// Reads an object for the guest.
    ///
    /// # Errors
    /// If the call read too much: it ends.
    pub(crate) fn get_object(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
    ) -> Result<Result<String, ReadError>> {
        if let Some(refusal) = self.refuse(kind, &[namespace, name], "")? {
            return Ok(Err(refusal));
        }
        self.read(|host, room| host.get(kind, namespace, name, room))
    }

    /// Lists objects for the guest.
    ///
    /// # Errors
    /// If the call read too much: it ends.
    pub(crate) fn list_objects(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
    ) -> Result<Result<String, ReadError>> {
        if let Some(refusal) = self.refuse(kind, &[namespace], label_selector)? {
            return Ok(Err(refusal));
        }
        self.read(|host, room| host.list(kind, namespace, label_selector, room))
    }

    /// The time of the call, in milliseconds since 1970: the same until the call ends.
    pub(crate) fn time_ms(&mut self) -> u64 {
        *self.now_ms.get_or_insert_with(|| LOAN.with(|host| host.0.now_ms()))
    }

    /// Counts a read and checks its arguments; `Some` if the sandbox itself answers it.
    fn refuse(
        &mut self,
        kind: &ResourceKind,
        names: &[&str],
        selector: &str,
    ) -> Result<Option<ReadError>> {
        self.count_read()?;
        let mut names = names.iter().copied().chain([&*kind.api_version, &*kind.kind]);
        if names.any(|name| name.len() > NAME_BYTES_MAX) {
            return Ok(Some(ReadError::Invalid(format!(
                "a name is longer than {NAME_BYTES_MAX} bytes"
            ))));
        }
        if selector.len() > SELECTOR_BYTES_MAX {
            return Ok(Some(ReadError::Invalid(format!(
                "the selector is longer than {SELECTOR_BYTES_MAX} bytes"
            ))));
        }
        Ok((!self.declares(kind)).then_some(ReadError::Undeclared))
    }

    /// Asks the host, and ends the call if the answer has more bytes than fit.
    fn read(
        &mut self,
        ask: impl FnOnce(&mut dyn Host, usize) -> Result<String, ReadError>,
    ) -> Result<Result<String, ReadError>> {
        let of_one = self.limits.memory_bytes.saturating_sub(self.given_bytes);
        let of_call = self.limits.read_bytes().saturating_sub(self.read_bytes);
        let answer = LOAN.with(|host| ask(&mut *host.0, of_one.min(of_call)));
        let is_too_large = match &answer {
            Ok(text) => text.len() > of_one.min(of_call),
            Err(error) => *error == ReadError::TooLarge,
        };
        if is_too_large {
            return Err(
                if of_call < of_one { TooLarge::AllReads } else { TooLarge::OneRead }.into()
            );
        }
        self.read_bytes = self.read_bytes.saturating_add(answer.as_ref().map_or(0, String::len));
        Ok(answer)
    }

    fn declares(&self, kind: &ResourceKind) -> bool {
        let Some(manifest) = &self.manifest else { return false };
        let primary = manifest.primary.iter();
        primary
            .chain(manifest.owned.iter().map(|owned| &owned.kind))
            .chain(&manifest.reads)
            .any(|one| one.api_version == kind.api_version && one.kind == kind.kind)
    }
}

impl cluster::Host for State {
    fn get(
        &mut self,
        kind: cluster::ResourceKind,
        namespace: String,
        name: String,
    ) -> Result<Result<String, cluster::ReadError>> {
        Ok(self.get_object(&kind.into(), &namespace, &name)?.map_err(Into::into))
    }

    fn list(
        &mut self,
        kind: cluster::ResourceKind,
        namespace: String,
        label_selector: String,
    ) -> Result<Result<String, cluster::ReadError>> {
        Ok(self.list_objects(&kind.into(), &namespace, &label_selector)?.map_err(Into::into))
    }
}

impl clock::Host for State {
    fn now_ms(&mut self) -> Result<f64> {
        // Exact up to 2^53 ms, the year 287396.
        #[expect(clippy::cast_precision_loss, reason = "exact for every date there will be")]
        Ok(self.time_ms() as f64)
    }
}

impl State {
    /// Writes a line of the guest to the log, as far as its limit allows.
    pub(crate) fn write_log(&mut self, level: Level, mut message: String) {
        if level == Level::Error {
            self.panic_message = Some(cut(&message, PANIC_BYTES_MAX));
        }
        // The end of the line costs one, so that empty lines end too.
        let left = self.limits.log_bytes.saturating_sub(self.log_bytes).saturating_sub(1);
        let mut cut_bytes = message.len().saturating_sub(left);
        let first_cut = self.log_cut_bytes == 0;
        if self.log_bytes < self.limits.log_bytes && (cut_bytes == 0 || left > 0) {
            if cut_bytes > 0 {
                // The code that masks Secrets in the line sees by the dots that a value may be cut.
                let kept = message.floor_char_boundary(left.saturating_sub(CUT.len()));
                cut_bytes = message.len() - kept;
                message.truncate(kept);
                message.push_str(&CUT[..CUT.len().min(left)]);
            }
            LOAN.with(|host| host.0.log(level, &message));
        }
        self.log_bytes = self.log_bytes.saturating_add(message.len()).saturating_add(1);
        self.log_cut_bytes = self.log_cut_bytes.saturating_add(cut_bytes);
        if cut_bytes > 0 && first_cut {
            let limit = self.limits.log_bytes;
            LOAN.with(|host| {
                host.0.log(Level::Warn, &format!("the log of this call is cut at {limit} bytes"));
            });
        }
    }
}

impl log::Host for State {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        self.write_log(level.into(), message);
        Ok(())
    }
}

impl From<cluster::ResourceKind> for ResourceKind {
    fn from(kind: cluster::ResourceKind) -> Self {
        Self { api_version: kind.api_version, kind: kind.kind }
    }
}

impl From<ReadError> for cluster::ReadError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound => Self::NotFound,
            ReadError::NotServed => Self::NotServed,
            ReadError::Forbidden(text) => Self::Forbidden(text),
            ReadError::Undeclared => Self::Undeclared,
            ReadError::Invalid(text) => Self::Invalid(text),
            // The call has ended by then.
            ReadError::TooLarge => Self::Invalid("the answer is too large".to_owned()),
        }
    }
}

impl From<log::Level> for Level {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Debug => Self::Debug,
            log::Level::Info => Self::Info,
            log::Level::Warn => Self::Warn,
            log::Level::Error => Self::Error,
        }
    }
}

impl ResourceLimiter for Usage {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        let total = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        self.memory_refused =
            refused(total, self.limits.memory_bytes, desired, maximum).or(self.memory_refused);
        if self.memory_refused.is_some() {
            return Ok(false);
        }
        self.memory_bytes = total;
        self.memory_peak_bytes = self.memory_peak_bytes.max(total);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        self.table_refused =
            refused(total, self.limits.table_elements, desired, maximum).or(self.table_refused);
        if self.table_refused.is_some() {
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }
}

/// The first bytes of a text, and dots if there are more.
fn cut(text: &str, bytes_max: usize) -> String {
    let kept = &text[..text.floor_char_boundary(bytes_max)];
    if kept.len() < text.len() { format!("{kept}{CUT}") } else { kept.to_owned() }
}

/// The limit that a request exceeds, if any: the one on the total, or the maximum of the guest or
/// the pool for the one memory or table.
fn refused(total: usize, limit: usize, desired: usize, maximum: Option<usize>) -> Option<usize> {
    if total > limit { Some(limit) } else { maximum.filter(|maximum| desired > *maximum) }
}
