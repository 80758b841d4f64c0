//! The driver's inputs and actions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_contract::{Condition, Kind, Manifest};
use innkeeper_sandbox::schema::SchemaError;
use innkeeper_sandbox::{Engine, Guest, Limits, LoadError};
use serde_json::{Map, Value};

use crate::crd_installation::{CrdInstallation, FinishedInstallation};
use crate::machine::{DirectEffect, Event, Rejection, RetryPolicy, reason};
use crate::module::Module;
use crate::parameters::{self, ParametersError};
use crate::revision::{GuestHandle, Revision};
use crate::rollout::Preview;
use crate::source::{Component, Digest, SourceError};
use crate::validated_spec::SourceRef;

/// What happens to a module.
#[derive(Debug)]
pub enum Input<G = Guest> {
    /// The Module was seen, for the first time or changed. Seeing it again unchanged is harmless.
    Module(Box<Module>),
    /// There is a Module of this name whose shape cannot be read.
    Malformed {
        /// Its generation; 0 if that cannot be read either.
        generation: i64,
        /// Why, with the field.
        message: String,
    },
    /// The Module's spec cannot be used, since another module reconciles the same primaries.
    Overlapping {
        /// The Module.
        module: Box<Module>,
        /// Which, and what to do.
        rejection: Rejection,
    },
    /// After [`Action::RetryOverlapping`]: the spec or the candidate that was refused for another
    /// module may fit now.
    RetryOverlapping,
    /// The Module was seen, and its ServiceAccount does not allow it to act as it: nothing of its
    /// spec is used.
    NotAllowed {
        /// The Module.
        module: Box<Module>,
        /// Why, and what to do.
        rejection: Rejection,
    },
    /// The Module does not exist any more.
    Gone,
    /// Its source was read: after [`Action::Fetch`], and whenever it changes.
    Source(Result<Component, SourceError>),
    /// A [`LoadJob`] ended.
    Loaded {
        /// The component.
        digest: Digest,
        /// The guest, or why it is refused.
        result: Result<G, Rejection>,
    },
    /// A [`ParametersJob`] ended.
    ParametersChecked {
        /// The component whose schema it was.
        digest: Digest,
        /// The parameters that were checked.
        parameters: Value,
        /// Whether they fit; if the guest has kind parameters, its manifest with the kinds of
        /// these ([`resolve`](crate::resolved_manifest::resolve)).
        result: Result<Option<Arc<Manifest>>, Rejection>,
    },
    /// An [`Action::CommitKinds`] ended.
    KindsCommitted {
        /// As in the action.
        digest: Digest,
        /// As in the action.
        parameters: Value,
        /// Whether the status names the kinds.
        result: Result<(), Rejection>,
    },
    /// An [`DirectEffect::RestoreSnapshot`] ended.
    Snapshot {
        /// As in the action.
        digest: Digest,
        /// The component, or why it cannot be read.
        result: Result<Component, SourceError>,
    },
    /// An [`Action::Preview`] ended: what the candidate would do, or why that is not known.
    Previewed {
        /// As in the action.
        digest: Digest,
        /// The result.
        result: Result<Preview, Rejection>,
    },
    /// An [`Action::InstallCrds`] ended.
    CrdsInstalled(Box<FinishedInstallation>),
    /// No objects are left of these kinds, which only earlier revisions declared.
    LeftoversGone(Vec<Kind>),
    /// An event for the machine that the driver passes on: a retry, the health of the runs, and the
    /// results of a commit, a rollback window or a teardown.
    Event(Event),
}

impl<G> From<Event> for Input<G> {
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

/// What the owner of the driver does for a module.
#[derive(Debug)]
pub enum Action<G = Guest> {
    /// Read the source, answer with [`Input::Source`], and go on doing so when it changes.
    /// Replaces the source watched for this module before.
    Fetch(SourceRef),
    /// Run the job and hand its answer to [`Driver::handle`].
    Load(LoadJob),
    /// Run the job, find the kinds of kind parameters, and hand the answer to [`Driver::handle`].
    CheckParameters(ParametersJob<G>),
    /// Write the [status](crate::Driver::report), which names owned kinds that it did not name
    /// before; answer with [`Input::KindsCommitted`]. They are kinds of checked parameters, and the
    /// revision that owns them becomes active after the answer.
    CommitKinds {
        /// The component whose kinds they are; part of the answer.
        digest: Digest,
        /// The parameters that name them; part of the answer.
        parameters: Value,
    },
    /// Run this on the present primaries without writes, and compare it with the active revision;
    /// answer with [`Input::Previewed`]. Replaces a preview that is under way for this module.
    Preview {
        /// The component; part of the answer.
        digest: Digest,
        /// The candidate, with the spec that it would run with.
        candidate: Arc<Revision<G>>,
    },
    /// Save a snapshot of the component, then write the
    /// [status with the decision](crate::Driver::committed_status); answer with
    /// [`Event::Committed`].
    Commit {
        /// The component; part of the answer.
        digest: Digest,
        /// The component; `None` if its snapshot is saved already.
        component: Option<Component>,
    },
    /// Write the [status with the decision](crate::Driver::rollback_status) to return to this
    /// revision; answer with [`Event::RollbackCommitted`].
    CommitRollback(Digest),
    /// Save a snapshot of this, if it is known that there is none; nothing waits for it.
    SaveSnapshot(Component),
    /// Count primaries that fail and did not fail before; answer with
    /// [`Event::FailureThresholdExceeded`] if they are more than `failures_max`, and with
    /// [`Event::RollbackWindowOver`] after `time`.
    BeginRollbackWindow {
        /// The active revision.
        digest: Digest,
        /// The number of allowed failures.
        failures_max: u32,
        /// How long.
        time: Duration,
    },
    /// Install these as the module's ServiceAccount, wait until they are established, and answer
    /// with [`Input::CrdsInstalled`].
    InstallCrds(CrdInstallation),
    /// This is the active revision now: watch what it declares, and run every primary. Also after a
    /// change of the spec.
    Activate(Arc<Revision<G>>),
    /// The Module is being deleted: remove its finalizer from its primaries, within bounded time;
    /// the guest finishes those first that are being deleted. Answer with [`Event::TornDown`].
    Teardown(Teardown),
    /// The module reconciles fewer primaries now, or others. Hand [`Input::RetryOverlapping`] in
    /// for these modules, which were refused for it.
    RetryOverlapping(Vec<String>),
    /// Write the Module's status.
    Report(Report),
    /// What the machine asks for needs nothing that the driver knows.
    Direct(DirectEffect),
}

/// What is known of a module whose Module is being deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teardown {
    /// The kind of its primaries; `None` if no revision ever was active.
    pub primary: Option<Kind>,
    /// Its finalizer, as in its manifest; `None` if it has none.
    pub finalizer: Option<String>,
    /// The namespaces of its primaries; empty for all.
    pub namespaces: BTreeSet<String>,
    /// The account; `None` for the host's own identity.
    pub service_account: Option<String>,
    /// Whether a revision is active, whose guest can finish primaries.
    pub is_active: bool,
}

/// The status of a Module, but for times: `innkeeper-core` compares it with the live one.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The generation that it is about.
    pub generation: i64,
    /// Members of `status` but for `conditions` and `observedGeneration`.
    pub members: Map<String, Value>,
    /// The conditions.
    pub conditions: Vec<Condition>,
}

/// A component to be compiled and asked to describe itself.
#[derive(Clone, Debug)]
pub struct LoadJob {
    /// The component.
    pub component: Component,
    /// Bounds of loading and of `describe`.
    pub limits: Limits,
}

impl LoadJob {
    /// Loads the component; blocks the thread, up to the compile time of the limits.
    pub fn run(&self, engine: &Engine) -> Input {
        let result =
            engine.load(&self.component.bytes, &self.limits).map_err(|error| refused(&error));
        Input::Loaded { digest: self.component.digest, result }
    }
}

/// Parameters of a Module to be checked against the schema that its guest describes, and by the
/// guest itself if it is a policy of Kubewarden.
#[derive(Clone, Debug)]
pub struct ParametersJob<G = Guest> {
    /// The component whose schema it is.
    pub digest: Digest,
    /// The guest.
    pub guest: G,
    /// The parameters.
    pub parameters: Value,
    /// The kinds that the component used when it was active: it may use them again while the API
    /// server does not serve them.
    pub known_kinds: Vec<Kind>,
}

impl<G: GuestHandle> ParametersJob<G> {
    /// Checks the parameters; blocks the thread, up to
    /// [`VALIDATE_TIME`](innkeeper_sandbox::schema::VALIDATE_TIME), the jobs before this one, and
    /// one call of the guest.
    pub fn run(&self, engine: &Engine) -> Input<G> {
        self.run_with(|schema, document| engine.validate(schema, document))
    }

    /// The same with another way to evaluate a schema against a document.
    pub fn run_with(
        &self,
        validate: impl FnOnce(&Value, &Value) -> Result<(), SchemaError>,
    ) -> Input<G> {
        let result = parameters::check_with(self.guest.manifest(), &self.parameters, validate)
            .and_then(|()| self.guest.ask_about(&self.parameters));
        Input::ParametersChecked {
            digest: self.digest,
            parameters: self.parameters.clone(),
            result: result.map(|()| None).map_err(|error| misfit(&error)),
        }
    }
}

/// Turns a failed check of parameters into a rejection.
pub(super) fn misfit(error: &ParametersError) -> Rejection {
    let (reason, retry) = match error {
        ParametersError::Schema(_) => (reason::INVALID_PARAMETERS_SCHEMA, RetryPolicy::Never),
        // Other parameters may take less.
        ParametersError::TooCostly(_) => {
            (reason::INVALID_PARAMETERS_SCHEMA, RetryPolicy::WhenSpecChanges)
        }
        ParametersError::Unexpected(_)
        | ParametersError::Misfit(_)
        | ParametersError::Refused(_)
        | ParametersError::Unanswered(_) => {
            (reason::INVALID_PARAMETERS, RetryPolicy::WhenSpecChanges)
        }
        ParametersError::Unavailable(_) => (reason::PARAMETERS_NOT_CHECKED, RetryPolicy::Later),
    };
    Rejection::new(reason, error.to_string(), retry)
}

fn refused(error: &LoadError) -> Rejection {
    let retry = match error {
        _ if error.is_temporary() => RetryPolicy::Later,
        // More memory helps a compiler that was killed; a change of the spec asks for another try.
        LoadError::Describe(_) | LoadError::CompileTimeout { .. } | LoadError::CompileKilled => {
            RetryPolicy::WhenSpecChanges
        }
        _ => RetryPolicy::Never,
    };
    Rejection::new(error.reason(), error.to_string(), retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_that_is_killed_is_not_tried_again_until_the_spec_changes() {
        let rejection = refused(&LoadError::CompileKilled);
        assert_eq!(
            (&*rejection.reason, rejection.retry),
            ("CompileKilled", RetryPolicy::WhenSpecChanges)
        );
        let what = "no disk".to_owned();
        assert_eq!(refused(&LoadError::Compiler { what }).retry, RetryPolicy::Later);
    }
}
