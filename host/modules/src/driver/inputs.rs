//! Turns inputs into events of the machine, and keeps what they bring.

use innkeeper_contract::Manifest;
use innkeeper_core::foreign;
use serde_json::Value;

use super::message::{self, Action, Input, ParametersJob};
use super::state::{Annotations, ModuleState};
use crate::machine::{ComponentInfo, Event, Rejection, RetryPolicy, Spec, reason};
use crate::module::{self, Module, ModuleStatus};
use crate::revision::GuestHandle;
use crate::source::{Component, Digest, SourceError};
use crate::validated_spec::{SourceKind, SpecContext, ValidatedPolicy, ValidatedSpec};
use crate::{manifest, parameters};

/// How much of an annotation that names no digest is quoted, in bytes.
const ANNOTATION_BYTES_MAX: usize = 80;

impl<G: GuestHandle> ModuleState<G> {
    /// The events of an input, or the actions that come before there is an event.
    pub(super) fn events(
        &mut self,
        input: Input<G>,
        context: &SpecContext,
    ) -> Result<Vec<Event>, Vec<Action<G>>> {
        let check = |job| vec![Action::CheckParameters(job)];
        Ok(match input {
            Input::LeftoversGone(kinds) => return Err(self.forget_kinds(&kinds)),
            Input::Module(module) => self.on_module(&module, context),
            Input::Malformed { generation, message } => vec![invalid_spec(generation, message)],
            Input::Overlapping { module, rejection } => {
                let generation = module.metadata.generation;
                let refused = Event::Spec { generation, spec: Err(rejection) };
                [refused].into_iter().chain(self.on_metadata(&module)).collect()
            }
            // The driver replaces it by the Module or a retry.
            Input::RetryOverlapping => Vec::new(),
            Input::NotAllowed { module, rejection } => {
                let generation = module.metadata.generation;
                let refused = Event::Spec { generation, spec: Err(rejection) };
                self.read_status(&module).into_iter().chain([refused]).collect()
            }
            // A file has no finalizer that would keep it, so the teardown begins when it is gone.
            Input::Gone
                if context.source_kind == SourceKind::Directory && self.needs_teardown() =>
            {
                vec![Event::Deleting]
            }
            Input::Gone => vec![Event::Deleted],
            Input::Source(result) => vec![self.on_source(result)],
            Input::Snapshot { digest, result } => vec![self.on_snapshot(digest, result)],
            Input::Loaded { digest, result } => {
                vec![self.on_loaded(digest, result).map_err(check)?]
            }
            Input::ParametersChecked { digest, parameters, result } => {
                self.on_parameters(digest, parameters, result)?.into_iter().collect()
            }
            Input::KindsCommitted { digest, parameters, result } => {
                self.on_kinds_committed(digest, parameters, result)?.into_iter().collect()
            }
            Input::Previewed { digest, result } => {
                if let Ok(preview) = &result {
                    self.record_preview(digest, preview);
                }
                vec![Event::Previewed { digest, result }]
            }
            Input::CrdsInstalled(finished) => self.on_crds_installed(*finished),
            Input::Event(event) => vec![event],
        })
    }

    /// No events if the Module has not changed.
    fn on_module(&mut self, module: &Module, context: &SpecContext) -> Vec<Event> {
        let mut events = Vec::from_iter(self.read_status(module));
        events.extend(self.on_spec(module, context));
        events.extend(self.on_metadata(module));
        events
    }

    /// The events of the annotations and of a deletion.
    fn on_metadata(&mut self, module: &Module) -> Vec<Event> {
        let mut events = self.on_annotations(module);
        if module.metadata.deletion_timestamp.is_some() {
            events.push(Event::Deleting);
        }
        events
    }

    /// Reads the status that the host wrote before it was started, when the Module is first seen.
    fn read_status(&mut self, module: &Module) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.restored.is_read, true);
        let status = module.status.as_ref().filter(|_| is_first)?;
        let owned = status.owned_kinds.iter();
        self.owned_kinds.extend(owned.map(|kind| (kind.name(), kind.clone())));
        self.previews.extend(status.preview.clone());
        self.versions.extend(versions(status));
        self.restored.primary.clone_from(&status.primary);
        self.restored.decorates = status.decorates;
        self.restored.selector.clone_from(&status.selector);
        self.restored.finalizer.clone_from(&status.finalizer);
        self.restored.policy.clone_from(&status.policy);
        // If the annotations are gone, they count again when somebody writes them.
        let digest = |text: &Option<String>| text.as_ref().and_then(|text| text.parse().ok());
        self.annotations.approve = digest(&status.used_approval);
        self.annotations.reject = digest(&status.used_rejection);
        Some(status_loaded(status))
    }

    /// No events if the annotations have not changed.
    fn on_annotations(&mut self, module: &Module) -> Vec<Event> {
        let annotations = Annotations::of(module);
        let mut events = Vec::new();
        if annotations.invalid != self.annotations.invalid {
            events.push(Event::InvalidApproval(annotations.invalid.clone()));
        }
        let (approve, reject) = (annotations.approve, annotations.reject);
        if (approve, reject) != (self.annotations.approve, self.annotations.reject) {
            events.push(Event::Approval { approve, reject });
        }
        self.annotations = annotations;
        events
    }

    /// `None` if the spec has not changed.
    fn on_spec(&mut self, module: &Module, context: &SpecContext) -> Option<Event> {
        let generation = module.metadata.generation;
        let spec = match context.validate(module) {
            Ok(spec) => spec,
            Err(errors) => return Some(invalid_spec(generation, errors.to_string())),
        };
        if spec.policy.is_some() && !context.namespaces.is_empty() {
            return Some(Event::Spec { generation, spec: Err(needs_cluster_scope()) });
        }
        if self.machine.is_spec_valid()
            && self.machine.generation() == generation
            && self.spec.as_ref() == Some(&spec)
        {
            return None;
        }
        let other_source = self.spec.as_ref().is_none_or(|old| old.source != spec.source);
        let other_parameters =
            self.active().is_some_and(|active| active.spec.parameters != spec.parameters);
        let (paused, rollout) = (spec.paused, spec.rollout.clone());
        let adopts_crds = spec.adopts_now();
        self.spec = Some(spec);
        let changes = Spec { other_source, paused, other_parameters, adopts_crds, rollout };
        Some(Event::Spec { generation, spec: Ok(changes) })
    }

    fn on_source(&mut self, result: Result<Component, SourceError>) -> Event {
        Event::Source(match result {
            Ok(component) => {
                let digest = component.digest;
                self.components.insert(digest, component);
                Ok(digest)
            }
            // The source is read again when it changes: the machine needs no retry of its own.
            Err(error) => Err(unavailable(&error)),
        })
    }

    fn on_snapshot(&mut self, digest: Digest, result: Result<Component, SourceError>) -> Event {
        let result = match result {
            Ok(component) if component.digest == digest => {
                self.components.insert(digest, component);
                Ok(())
            }
            Ok(component) => {
                let message = format!(
                    "the snapshot of {} holds {}, so somebody changed it",
                    digest.short(),
                    component.digest.short()
                );
                Err(Rejection::new("SnapshotChanged", message, RetryPolicy::Never))
            }
            Err(error) => Err(unavailable(&error)),
        };
        Event::SnapshotRestored { digest, result }
    }

    /// An event, or the check of the parameters that comes first.
    fn on_loaded(
        &mut self,
        digest: Digest,
        result: Result<G, Rejection>,
    ) -> Result<Event, ParametersJob<G>> {
        let checked = result.and_then(|guest| {
            manifest::check(guest.manifest()).map_err(|errors| {
                Rejection::new(
                    "InvalidManifest",
                    format!("the guest's manifest cannot be used: {}", errors.join("; ")),
                    RetryPolicy::Never,
                )
            })?;
            Ok(guest)
        });
        let guest = match checked {
            Ok(guest) => guest,
            Err(rejection) => return Ok(Event::Loaded { digest, result: Err(rejection) }),
        };
        let parameters = self.parameters();
        if guest.manifest().parameters_schema.is_some() {
            self.candidate.unchecked = Some((digest, guest.clone()));
            return Err(self.parameters_job(digest, guest));
        }
        // Without a schema nothing is evaluated.
        let fits = parameters::check(guest.manifest(), &parameters);
        let fits = fits.map_err(|error| message::misfit(&error));
        Ok(self.store_candidate(digest, guest, parameters, fits))
    }

    /// Keeps a loaded guest until it is active.
    pub(super) fn store_candidate(
        &mut self,
        digest: Digest,
        guest: G,
        parameters: Value,
        fits: Result<(), Rejection>,
    ) -> Event {
        let manifest = guest.manifest();
        // A revision that was active before the host started becomes active again without its
        // finalizer and its policy being granted; the misfit is only reported.
        let spec = self.spec.as_ref().filter(|_| !self.machine.is_restored(digest));
        let granted = spec.map_or(Ok(()), |spec| self.granted_to(manifest, spec));
        let info = ComponentInfo {
            title: title(manifest),
            has_crds: !manifest.crds.is_empty(),
            enforces: manifest.policy.is_some() && self.spec.as_ref().is_some_and(enforces),
            fits: granted.and(fits),
        };
        if !manifest.version.is_empty() {
            self.versions.insert(digest, manifest.version.clone());
        }
        self.candidate.checked = Some((digest, guest));
        self.candidate.parameters = parameters;
        Event::Loaded { digest, result: Ok(info) }
    }
}

impl Annotations {
    /// Reads the annotations of a Module. They name a component by its whole digest: two components
    /// that share some first digits can be made on purpose, and one approval would fit both.
    fn of(module: &Module) -> Self {
        let mut invalid = Vec::new();
        let mut digest = |annotation: &str| {
            let text = module.metadata.annotations.get(annotation)?.trim();
            let digest = text.parse().ok();
            if digest.is_none() && !text.is_empty() {
                let quoted = foreign::one_line(text, ANNOTATION_BYTES_MAX);
                invalid.push(format!("`{annotation}: {quoted}`"));
            }
            digest
        };
        let approve = digest(module::APPROVE_ANNOTATION);
        let reject = digest(module::REJECT_ANNOTATION);
        let invalid = (!invalid.is_empty()).then(|| {
            let name = &module.metadata.name;
            format!(
                "The annotation {} has no effect: it needs all 64 hex digits of a component's digest; `innkeeper modules approve {name}` or `innkeeper modules reject {name}` writes them.",
                invalid.join(" and ")
            )
        });
        Self { approve, reject, invalid }
    }
}

/// Whether a spec lets a policy deny requests.
fn enforces(spec: &ValidatedSpec) -> bool {
    spec.policy.as_ref().is_some_and(ValidatedPolicy::enforces)
}

/// The event of a spec that cannot be used.
fn invalid_spec(generation: i64, message: String) -> Event {
    let rejection = Rejection::new(reason::INVALID_SPEC, message, RetryPolicy::WhenSpecChanges);
    Event::Spec { generation, spec: Err(rejection) }
}

/// Why a namespaced host refuses a policy.
fn needs_cluster_scope() -> Rejection {
    let message = "spec.policy: this host runs with --namespaces and cannot review requests, since webhook configurations are cluster-scoped; remove spec.policy, or use a host for the whole cluster";
    Rejection::new(reason::POLICIES_NEED_CLUSTER_SCOPE, message, RetryPolicy::WhenSpecChanges)
}

fn unavailable(error: &SourceError) -> Rejection {
    Rejection::new(error.reason(), error.to_string(), RetryPolicy::Never)
}

fn status_loaded(status: &ModuleStatus) -> Event {
    let digest = |text: &str| text.parse::<Digest>().ok();
    let rejected = status.rejected.iter().filter_map(|one| {
        let rejection = Rejection::new(&one.reason, &one.message, RetryPolicy::Never);
        Some((digest(&one.digest)?, rejection))
    });
    // Without an active revision only a lost one leaves what it reconciled or reviewed.
    let is_lost = status.digest.is_none() && (status.primary.is_some() || status.policy.is_some());
    Event::StatusLoaded {
        is_lost,
        revision: status.digest.as_deref().and_then(digest),
        history: status.earlier_revisions().iter().filter_map(|one| digest(&one.digest)).collect(),
        rejected: rejected.collect(),
        used_approval: status.used_approval.as_deref().and_then(digest),
        used_rejection: status.used_rejection.as_deref().and_then(digest),
    }
}

/// The versions that a status names.
fn versions(status: &ModuleStatus) -> Vec<(Digest, String)> {
    let active = status.digest.as_ref().zip(status.guest.as_ref().map(|guest| &guest.version));
    let candidate = status.candidate.iter().map(|one| (&one.digest, &one.version));
    let history = status.history.iter().map(|one| (&one.digest, &one.version));
    let rejected = status.rejected.iter().map(|one| (&one.digest, &one.version));
    let all = active.into_iter().chain(candidate).chain(history).chain(rejected);
    let known = all.filter(|(_, version)| !version.is_empty());
    known.filter_map(|(digest, version)| Some((digest.parse().ok()?, version.clone()))).collect()
}

/// A guest's name and version, for users.
fn title(manifest: &Manifest) -> String {
    format!("{} {}", manifest.name, manifest.version).trim_end().to_owned()
}
