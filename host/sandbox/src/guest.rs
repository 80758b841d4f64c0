//! A loaded guest, and its calls: [`Guest`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use innkeeper_contract::{Desired, Failure, Manifest, RECONCILER_INTERFACE};
use serde_json::Value;

use crate::call::{Figures, call};
use crate::contract::bindings::reconciler::ReconcilerGuestPre;
use crate::contract::bindings::reconciler::exports::innkeeper::guest::reconciler;
use crate::error::{CallError, LoadError, SettingsError};
use crate::host::Host;
use crate::kubewarden::metadata::KubewardenMetadata;
use crate::limits::Limits;
use crate::load::load;
use crate::loaded::Loaded;
use crate::output;
use crate::program::Program;
use crate::runtime::Runtime;
use crate::state::State;

/// A component that is a guest of the contract, or a Kubewarden policy, ready to run. Clones are
/// cheap.
#[derive(Clone)]
pub struct Guest {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) loaded: Arc<Loaded>,
    /// The manifest in use: the described one, or that with the kinds of a Module's parameters.
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) limits: Limits,
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

impl Guest {
    pub(crate) fn load(
        runtime: &Arc<Runtime>,
        bytes: &[u8],
        limits: &Limits,
    ) -> Result<Self, LoadError> {
        let loaded = load(runtime, bytes, limits)?;
        let (runtime, manifest) = (Arc::clone(runtime), Arc::clone(&loaded.described));
        Ok(Self { runtime, loaded, manifest, limits: *limits })
    }

    /// Whether the component exports `reconciler`.
    pub fn has_reconciler(&self) -> bool {
        self.loaded.program.reconciler().is_some()
    }

    /// Whether the guest reviews requests: it exports `policy`, or is a Kubewarden policy.
    pub fn has_policy(&self) -> bool {
        self.loaded.program.has_policy()
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

    /// The metadata of a Kubewarden policy; `None` for a component.
    pub fn kubewarden(&self) -> Option<&KubewardenMetadata> {
        match &self.loaded.program {
            Program::Component(_) => None,
            Program::Kubewarden(policy) => Some(&policy.metadata),
        }
    }

    /// Asks a Kubewarden policy whether it can work with the parameters of a Module. The host
    /// compares those of a component with its schema only, so a component accepts them here.
    ///
    /// Blocks the thread for up to [`Limits::time`].
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn check_settings(&self, parameters: &Value) -> Result<(), SettingsError> {
        match &self.loaded.program {
            Program::Component(_) => Ok(()),
            Program::Kubewarden(policy) => {
                policy.check_settings(&self.runtime, &self.limits, parameters)
            }
        }
    }

    /// The interfaces that the component imports, or the functions of a Kubewarden policy, in its
    /// own order.
    pub fn imports(&self) -> Vec<String> {
        self.loaded.program.imports()
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
        let limit = self.limits.memory_bytes;
        let pre = match self.reconciler() {
            Ok(_) if observed.len() > limit => {
                return (Err(CallError::ObservedTooLarge { limit }), Figures::default());
            }
            Ok(pre) => pre,
            Err(error) => return (Err(error), Figures::default()),
        };
        let given = (Some(Arc::clone(&self.manifest)), observed.len());
        call(&self.runtime, &self.limits, given, host, |store| {
            let guest = pre.instantiate(&mut *store)?;
            guest.innkeeper_guest_reconciler().call_reconcile(store, observed)
        })
    }

    fn reconciler(&self) -> Result<&ReconcilerGuestPre<State>, CallError> {
        let reconciler = self.loaded.program.reconciler();
        reconciler.ok_or(CallError::NotExported { interface: RECONCILER_INTERFACE })
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
        let pre = self.reconciler()?;
        let given = (Some(Arc::clone(&self.manifest)), observed.len());
        let (time, _) = call(&self.runtime, &self.limits, given, host, |store| {
            let guest = pre.instantiate(&mut *store)?;
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
