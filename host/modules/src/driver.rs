//! The glue around the machines: holds one for each module, keeps the bytes and the guests
//! that they decide about, and hands out what needs I/O or time as [`Action`]s.
//!
//! One driver serves one operator. Every call of [`Driver::handle`] is short: loading is a
//! [`LoadJob`] and a check of parameters a [`ParametersJob`], for a thread that may block, or for
//! the same thread where everything must be in one order.

mod kinds;
mod message;
mod overlap;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::Manifest;
use innkeeper_core::foreign;
use innkeeper_sandbox::{Guest, Limits};
use serde_json::Value;

use crate::machine::{
    Candidate, ComponentInfo, DecidedDigests, Effect, Event, Machine, Rejection, RetryPolicy, Spec,
    reason,
};
use crate::module::{self, KindName, KindStatus, ModuleStatus, RehearsalStatus};
use crate::parameters;
use crate::registry::{Loaded, Modules, Revision};
use crate::source::{Component, Digest, SourceError};
use crate::{Module, SourceKind, ValidatedSpec, definitions, finalizers, manifest};

pub use message::{Action, CrdInstallation, Input, LoadJob, ParametersJob, Report, Teardown};

/// The name of the ConfigMap, in [`module::NAMESPACE`], with the host's copy of a version.
pub fn snapshot_name(module: &str, digest: Digest) -> String {
    format!("{module}-copy-{}", digest.short())
}

/// How much of an annotation that names no digest is quoted, in bytes.
const ANNOTATION_BYTES_MAX: usize = 80;

/// All modules of one host. See the [module's docs](self).
#[derive(Debug)]
pub struct Driver<G = Guest> {
    modules: Arc<Modules<G>>,
    source_kind: SourceKind,
    defaults: Limits,
    host_namespace: Option<Box<str>>,
    states: BTreeMap<String, ModuleState<G>>,
}

#[derive(Debug)]
struct ModuleState<G> {
    machine: Machine,
    /// The last spec that could be used.
    settings: Option<ValidatedSpec>,
    /// Components, as long as they may have to be loaded or copied: the source's, and what
    /// served last while it is fetched.
    components: BTreeMap<Digest, Component>,
    /// What is loaded, while the parameters are checked against its schema.
    loaded: Option<(Digest, G)>,
    /// What is loaded and does not serve yet.
    loaded_candidate: Option<(Digest, G)>,
    /// The parameters that fit what is aside.
    valid_parameters: Value,
    active: Option<Arc<Revision<G>>>,
    /// What served before, as long as it may have to serve again.
    rollback_target: Option<Arc<Revision<G>>>,
    /// The kind that it reconciled when the host was here last.
    primary: Option<KindStatus>,
    /// It decorated them.
    decorates: bool,
    /// The finalizer that it wrote on them.
    finalizer: Option<String>,
    /// What the Module's annotations said last.
    approval: (Option<Digest>, Option<Digest>),
    /// What is wrong with the annotations, if something is.
    invalid_approval: Option<String>,
    /// The module has been seen, and with it what its status said of the time before.
    known: bool,
    /// What it may have made objects of.
    owned_kinds: BTreeMap<KindName, KindStatus>,
    /// What was found of the version that serves, and of the one that may be next.
    previews: Vec<RehearsalStatus>,
}

impl<G> Default for ModuleState<G> {
    fn default() -> Self {
        Self {
            machine: Machine::default(),
            settings: None,
            components: BTreeMap::new(),
            loaded: None,
            loaded_candidate: None,
            valid_parameters: Value::Null,
            active: None,
            rollback_target: None,
            primary: None,
            decorates: false,
            finalizer: None,
            approval: (None, None),
            invalid_approval: None,
            known: false,
            owned_kinds: BTreeMap::new(),
            previews: Vec::new(),
        }
    }
}

impl<G: Loaded> Driver<G> {
    /// A driver without modules. `defaults` are the limits of Modules that give none.
    pub fn new(source_kind: SourceKind, defaults: Limits) -> Self {
        let (modules, states) = (Arc::default(), BTreeMap::new());
        Self { modules, source_kind, defaults, host_namespace: None, states }
    }

    /// The same for a host that runs in this namespace.
    #[must_use]
    pub fn in_namespace(self, host_namespace: Option<&str>) -> Self {
        Self { host_namespace: host_namespace.map(Into::into), ..self }
    }

    /// What serves, to be shared with who reconciles.
    pub fn modules(&self) -> &Arc<Modules<G>> {
        &self.modules
    }

    /// The names of the modules, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.states.keys().map(String::as_str)
    }

    /// The status of a module; `None` if there is none of that name.
    pub fn report(&self, name: &str) -> Option<Report> {
        self.states.get(name).map(|module_state| module_state.report(name))
    }

    /// The status of a module with what is decided, for [`Action::Commit`]: only that may say it,
    /// since a host that starts anew goes by it, and needs the copy that is kept before.
    pub fn decision(&self, name: &str) -> Option<Report> {
        self.states.get(name).map(|module_state| module_state.decision(name))
    }

    /// The active revision of a module, as its status reports it; also before a restarted host has
    /// loaded it again.
    pub fn active_digest(&self, name: &str) -> Option<Digest> {
        self.states.get(name)?.machine.persistent_digests().active
    }

    /// The revisions that are decided for a module; `None` if there is none of that name.
    pub fn decided_digests(&self, name: &str) -> Option<DecidedDigests> {
        self.states.get(name).map(|module_state| module_state.machine.decision())
    }

    /// Whether the active revision of a module, or the one about to become active, has a finalizer.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.states.get(name).is_some_and(|module_state| module_state.finalizer().is_some())
    }

    /// Takes what happened to the module `name`; gives what is to be done, in this order.
    ///
    /// What comes for a module that is not known (any more) is dropped.
    pub fn handle(&mut self, name: &str, input: Input<G>) -> Vec<Action<G>> {
        match &input {
            Input::Module(_) | Input::Malformed { .. } | Input::NotAllowed { .. } => {
                self.states.entry(name.to_owned()).or_default();
            }
            _ => {}
        }
        let input = self.refuse_overlap(name, input);
        let Some(module_state) = self.states.get_mut(name) else { return Vec::new() };
        // Until there is a spec that can be used, nothing was fetched: when there is one, it is.
        if module_state.settings.is_none() && matches!(input, Input::Source(_)) {
            return Vec::new();
        }
        if let Input::LeftoversGone(kinds) = &input {
            return module_state.forget_kinds(name, kinds, &self.modules);
        }
        let events = match input {
            Input::LeftoversGone(_) => Vec::new(),
            Input::Module(module) => {
                let host_namespace = self.host_namespace.as_deref();
                module_state.on_module(&module, self.source_kind, self.defaults, host_namespace)
            }
            Input::Malformed { generation, message } => vec![Event::Spec {
                generation,
                spec: Err(Rejection::new(
                    reason::INVALID_SPEC,
                    message,
                    RetryPolicy::WhenSpecChanges,
                )),
            }],
            Input::Overlapping { generation, rejection } => {
                vec![Event::Spec { generation, spec: Err(rejection) }]
            }
            Input::NotAllowed { module, rejection } => {
                let generation = module.metadata.generation;
                let refused = Event::Spec { generation, spec: Err(rejection) };
                module_state.read_status(&module).into_iter().chain([refused]).collect()
            }
            // A file has no finalizer that would keep it, so its module leaves when it is gone.
            Input::Gone
                if self.source_kind == SourceKind::Directory && module_state.needs_teardown() =>
            {
                vec![Event::Deleting]
            }
            Input::Gone => vec![Event::Deleted],
            Input::TornDown(result) => vec![Event::TornDown(result)],
            Input::Source(result) => vec![module_state.on_source(result)],
            Input::Snapshot { digest, result } => vec![module_state.on_snapshot(digest, result)],
            Input::Loaded { digest, result } => {
                match module_state.on_loaded(name, digest, result) {
                    Ok(event) => vec![event],
                    Err(job) => return vec![Action::CheckParameters(job)],
                }
            }
            Input::ParametersChecked { digest, parameters, result } => {
                match module_state.on_parameters(name, digest, parameters, result) {
                    Ok(event) => event.into_iter().collect(),
                    Err(job) => return vec![Action::CheckParameters(job)],
                }
            }
            Input::Previewed { digest, result } => {
                if let Ok(rehearsal) = &result {
                    module_state.record_preview(digest, rehearsal);
                }
                vec![Event::Previewed { digest, result }]
            }
            Input::Crds { digest, result } => vec![Event::Crds { digest, result }],
            Input::Committed { digest, result } => vec![Event::Committed { digest, result }],
            Input::FailureThresholdExceeded(rejection) => {
                vec![Event::FailureThresholdExceeded(rejection)]
            }
            Input::RollbackWindowOver(digest) => vec![Event::RollbackWindowOver(digest)],
            Input::Retry => vec![Event::Retry],
            Input::Health(result) => vec![Event::Health(result)],
        };
        let mut actions = Vec::new();
        for event in events {
            for effect in module_state.machine.step(event) {
                module_state.carry_out(name, effect, &self.modules, &mut actions);
            }
        }
        for effect in module_state.machine.check_grant(module_state.grant(name)) {
            module_state.carry_out(name, effect, &self.modules, &mut actions);
        }
        module_state.remove_finalizer();
        if actions.iter().any(|action| matches!(action, Action::Stop)) {
            self.states.remove(name);
        }
        actions
    }
}

impl<G: Loaded> ModuleState<G> {
    /// Nothing if it is the Module as it was.
    fn on_module(
        &mut self,
        module: &Module,
        place: SourceKind,
        defaults: Limits,
        host_namespace: Option<&str>,
    ) -> Vec<Event> {
        let mut events = Vec::from_iter(self.read_status(module));
        events.extend(self.on_spec(module, place, defaults, host_namespace));
        events.extend(self.on_approval(module));
        if module.metadata.deletion_timestamp.is_some() {
            events.push(Event::Deleting);
        }
        events
    }

    /// Learns what the Module says of the time before the host started, when it is seen first.
    fn read_status(&mut self, module: &Module) -> Option<Event> {
        let is_first = !std::mem::replace(&mut self.known, true);
        let status = module.status.as_ref().filter(|_| is_first)?;
        let owned = status.owned_kinds.iter();
        self.owned_kinds.extend(owned.map(|kind| (kind.name(), kind.clone())));
        self.previews.extend(status.preview.clone());
        self.primary.clone_from(&status.primary);
        self.decorates = status.decorates;
        self.finalizer.clone_from(&status.finalizer);
        Some(Self::status_event(status))
    }

    /// What the Module says of the time before the host started.
    fn status_event(status: &ModuleStatus) -> Event {
        let digest = |text: &str| text.parse::<Digest>().ok();
        let rejected = status.rejected.iter().filter_map(|one| {
            Some((
                digest(&one.digest)?,
                Rejection::new(&one.reason, &one.message, RetryPolicy::Never),
            ))
        });
        Event::StatusLoaded {
            revision: status.digest.as_deref().and_then(digest),
            previous: status.previous.as_ref().and_then(|previous| digest(&previous.digest)),
            rejected: rejected.collect(),
        }
    }

    /// Nothing if the annotations say what they said before.
    ///
    /// They name a version by its whole digest: two components that share some first digits can be
    /// made on purpose, and then one approval would fit both.
    fn on_approval(&mut self, module: &Module) -> Vec<Event> {
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
        let word = (digest(module::APPROVE_ANNOTATION), digest(module::REJECT_ANNOTATION));
        let invalid = (!invalid.is_empty()).then(|| {
            let name = &module.metadata.name;
            format!(
                "The annotation {} has no effect: it needs all 64 hex digits of a version's digest; `innkeeper modules approve {name}` or `innkeeper modules reject {name}` writes them.",
                invalid.join(" and ")
            )
        });
        let mut events = Vec::new();
        if invalid != self.invalid_approval {
            self.invalid_approval.clone_from(&invalid);
            events.push(Event::InvalidApproval(invalid));
        }
        if word != self.approval {
            self.approval = word;
            events.push(Event::Approval { approve: word.0, reject: word.1 });
        }
        events
    }

    /// `None` if it is the spec as it was.
    fn on_spec(
        &mut self,
        module: &Module,
        place: SourceKind,
        defaults: Limits,
        host_namespace: Option<&str>,
    ) -> Option<Event> {
        let generation = module.metadata.generation;
        let spec = match ValidatedSpec::new(module, place, defaults, host_namespace) {
            Err(errors) => Err(Rejection::new(
                reason::INVALID_SPEC,
                errors.to_string(),
                RetryPolicy::WhenSpecChanges,
            )),
            Ok(settings) => {
                if self.machine.is_spec_valid()
                    && self.machine.generation() == generation
                    && self.settings.as_ref() == Some(&settings)
                {
                    return None;
                }
                let other_source =
                    self.settings.as_ref().is_none_or(|old| old.source != settings.source);
                let other_parameters = self
                    .active
                    .as_ref()
                    .is_some_and(|active| active.settings.parameters != settings.parameters);
                let (suspended, rollout) = (settings.paused, settings.rollout.clone());
                self.settings = Some(settings);
                Ok(Spec { other_source, suspended, other_parameters, rollout })
            }
        };
        Some(Event::Spec { generation, spec })
    }

    fn on_source(&mut self, result: Result<Component, SourceError>) -> Event {
        Event::Source(match result {
            Ok(component) => {
                let digest = component.digest;
                self.components.insert(digest, component);
                Ok(digest)
            }
            Err(error) => {
                // What is read again anyway needs no retry of the machine's.
                Err(Rejection::new(error.reason(), error.to_string(), RetryPolicy::Never))
            }
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
                    "the host's copy of {} holds {}, so somebody changed it",
                    digest.short(),
                    component.digest.short()
                );
                Err(Rejection::new("SnapshotChanged", message, RetryPolicy::Never))
            }
            Err(error) => {
                Err(Rejection::new(error.reason(), error.to_string(), RetryPolicy::Never))
            }
        };
        Event::SnapshotRestored { digest, result }
    }

    /// An event for the machine, or the check of the parameters that comes first.
    fn on_loaded(
        &mut self,
        name: &str,
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
        match checked {
            Err(rejection) => Ok(Event::Loaded { digest, result: Err(rejection) }),
            Ok(guest) if guest.manifest().parameters_schema.is_some() => {
                let parameters = self.parameters();
                self.loaded = Some((digest, guest.clone()));
                Err(ParametersJob { digest, guest, parameters })
            }
            Ok(guest) => {
                // Without a schema nothing is evaluated.
                let parameters = self.parameters();
                let fits = parameters::check(guest.manifest(), &parameters);
                let fits = fits.map_err(|error| message::misfit(&error));
                Ok(self.store_candidate(name, digest, guest, parameters, fits))
            }
        }
    }

    fn store_candidate(
        &mut self,
        name: &str,
        digest: Digest,
        guest: G,
        parameters: Value,
        fits: Result<(), Rejection>,
    ) -> Event {
        let manifest = guest.manifest();
        // What served last serves again: of it the misfit is only reported.
        let settings = self.settings.as_ref().filter(|_| !self.machine.is_restored(digest));
        let finalizer =
            settings.map_or(Ok(()), |settings| finalizers::check(name, manifest, settings));
        let fits = finalizer.and(fits);
        let facts =
            ComponentInfo { title: title(manifest), has_crds: !manifest.crds.is_empty(), fits };
        self.loaded_candidate = Some((digest, guest));
        self.valid_parameters = parameters;
        Event::Loaded { digest, result: Ok(facts) }
    }

    /// What a check of parameters says of the candidate or of the active revision; another check if
    /// the parameters have changed meanwhile, and nothing if the check is of no use any more.
    fn on_parameters(
        &mut self,
        name: &str,
        digest: Digest,
        parameters: Value,
        result: Result<(), Rejection>,
    ) -> Result<Option<Event>, ParametersJob<G>> {
        let is_present = parameters == self.parameters();
        if let Some((_, guest)) = self.loaded.take_if(|(loaded, _)| *loaded == digest) {
            if !is_present {
                self.loaded = Some((digest, guest.clone()));
                return Err(ParametersJob { digest, guest, parameters: self.parameters() });
            }
            return Ok(Some(self.store_candidate(name, digest, guest, parameters, result)));
        }
        // Each change of the parameters and each swap asks for a check of its own.
        let is_active = self.machine.active().is_some_and(|active| active.digest == digest);
        Ok((is_present && is_active).then_some(Event::ParametersChecked(result)))
    }

    /// Whether the present spec grants the finalizer of the active revision.
    fn grant(&self, name: &str) -> Result<(), Rejection> {
        match (&self.active, &self.settings) {
            (Some(active), Some(settings)) => {
                finalizers::check(name, active.guest.manifest(), settings)
            }
            _ => Ok(()),
        }
    }

    /// The parameters that the Module gives at present.
    fn parameters(&self) -> Value {
        self.settings.as_ref().map_or(Value::Null, |settings| settings.parameters.clone())
    }

    /// The check of the present parameters against the schema of the active revision.
    fn check_parameters(&self) -> Option<Action<G>> {
        let (active, revision) = (self.machine.active()?, self.active.as_ref()?);
        Some(Action::CheckParameters(ParametersJob {
            digest: active.digest,
            guest: revision.guest.clone(),
            parameters: self.parameters(),
        }))
    }

    fn carry_out(
        &mut self,
        name: &str,
        effect: Effect,
        modules: &Modules<G>,
        actions: &mut Vec<Action<G>>,
    ) {
        match effect {
            Effect::Fetch => {
                if let Some(settings) = &self.settings {
                    actions.push(Action::Fetch(settings.source.clone()));
                }
            }
            Effect::Load(digest) => {
                let component = self.components.get(&digest).cloned();
                if let Some((component, settings)) = component.zip(self.settings.as_ref()) {
                    let limits = settings.limits;
                    actions.push(Action::Load(LoadJob { component, limits }));
                } else {
                    // The machine asks only for what the source gave last; if that is not here,
                    // reading the source again is the way back.
                    tracing::error!(module = name, %digest, "the bytes to load are gone");
                    let rejection =
                        Rejection::new("SourceGone", "its bytes are gone", RetryPolicy::Later);
                    let event = Event::Loaded { digest, result: Err(rejection) };
                    for effect in self.machine.step(event) {
                        self.carry_out(name, effect, modules, actions);
                    }
                    self.carry_out(name, Effect::Fetch, modules, actions);
                }
            }
            Effect::RestoreSnapshot(digest) => actions.push(Action::FetchSnapshot(digest)),
            Effect::Preview(digest) => {
                if let (Some((_, guest)), Some(settings)) =
                    (&self.loaded_candidate, self.settings.clone())
                {
                    let candidate = Arc::new(self.revision(name, guest, settings));
                    actions.push(Action::Preview { digest, candidate });
                }
            }
            Effect::Commit(digest) => {
                let component = self.components.get(&digest).cloned();
                actions.push(Action::Commit { digest, component });
            }
            Effect::SaveSnapshot(digest) => {
                if let Some(component) = self.components.get(&digest).cloned() {
                    actions.push(Action::SaveSnapshot(component));
                }
            }
            Effect::Rollback => {
                if let Some(before) = self.rollback_target.take() {
                    let settings = self.settings.clone().unwrap_or(before.settings.clone());
                    let fitting = before.settings.parameters.clone();
                    self.serve_with(name, &before.guest, settings, fitting, modules, actions);
                }
            }
            Effect::BeginRollbackWindow(digest) => {
                if let Some(settings) = &self.settings {
                    actions.push(Action::BeginRollbackWindow {
                        digest,
                        failures_max: settings.rollout.failures_max,
                        time: settings.rollout.rollback_window,
                    });
                }
            }
            Effect::EndRollbackWindow => {
                self.rollback_target = None;
                actions.push(Action::EndRollbackWindow);
            }
            Effect::InstallCrds(digest) => {
                if let (Some((_, guest)), Some(settings)) = (&self.loaded_candidate, &self.settings)
                {
                    actions.push(Action::InstallCrds(CrdInstallation {
                        digest,
                        crds: definitions::crd_requests(guest.manifest(), settings),
                        namespaces: settings.namespaces.clone(),
                        service_account: settings.service_account.clone(),
                    }));
                }
            }
            Effect::Swap(digest) => self.swap(name, digest, modules, actions),
            Effect::ApplySettings { parameters } => {
                if let (Some(active), Some(settings)) = (self.active.clone(), &self.settings) {
                    let mut settings = settings.clone();
                    if !parameters {
                        settings.parameters = active.settings.parameters.clone();
                    }
                    if settings != active.settings {
                        self.serve(name, &active.guest, settings, modules, actions);
                    }
                }
            }
            Effect::CheckParameters => actions.extend(self.check_parameters()),
            Effect::Teardown => actions.push(Action::Teardown(self.teardown())),
            Effect::RemoveFinalizer => actions.push(Action::RemoveFinalizer),
            Effect::RetryLater => actions.push(Action::RetryLater),
            Effect::Report => {
                // Of several, the last says it all.
                actions.retain(|action| !matches!(action, Action::Report(_)));
                actions.push(Action::Report(self.report(name)));
            }
            Effect::Notify(notice) => actions.push(Action::Notify(notice)),
            Effect::Stop => {
                modules.remove(name);
                actions.push(Action::Stop);
            }
        }
    }

    fn swap(
        &mut self,
        name: &str,
        digest: Digest,
        modules: &Modules<G>,
        actions: &mut Vec<Action<G>>,
    ) {
        if let Some((loaded, guest)) = self.loaded_candidate.take()
            && loaded == digest
            && let Some(settings) = self.settings.clone()
        {
            self.note_owned(guest.manifest());
            self.rollback_target = self.active.clone();
            let fitting = std::mem::take(&mut self.valid_parameters);
            self.serve_with(name, &guest, settings, fitting, modules, actions);
        }
    }

    /// A guest serves with parameters that fit it. If the Module gives others by now, they are
    /// checked.
    fn serve_with(
        &mut self,
        name: &str,
        guest: &G,
        mut settings: ValidatedSpec,
        fitting: Value,
        modules: &Modules<G>,
        actions: &mut Vec<Action<G>>,
    ) {
        let is_present = settings.parameters == fitting;
        settings.parameters = fitting;
        self.serve(name, guest, settings, modules, actions);
        if !is_present {
            actions.extend(self.check_parameters());
        }
    }

    fn serve(
        &mut self,
        name: &str,
        guest: &G,
        settings: ValidatedSpec,
        modules: &Modules<G>,
        actions: &mut Vec<Action<G>>,
    ) {
        let revision = Arc::new(self.revision(name, guest, settings));
        self.active = Some(Arc::clone(&revision));
        modules.put(Arc::clone(&revision));
        actions.push(Action::Serve(revision));
    }

    /// A guest as the next version that serves.
    fn revision(&self, name: &str, guest: &G, settings: ValidatedSpec) -> Revision<G> {
        Revision {
            module: name.into(),
            guest: guest.with_limits(settings.limits),
            dropped: self.dropped(guest.manifest()),
            settings,
            version: self.active.as_ref().map_or(0, |active| active.version) + 1,
        }
    }

    /// Drops what the machine can no longer ask for.
    fn remove_finalizer(&mut self) {
        let candidate = self.machine.candidate();
        self.loaded.take_if(|(digest, _)| *candidate != Candidate::Loading(*digest));
        let loaded_candidate = self.machine.loaded_candidate();
        self.loaded_candidate.take_if(|(digest, _)| Some(*digest) != loaded_candidate);
        if self.machine.rollback_target().is_none() {
            self.rollback_target = None;
        }
        match self.machine.candidate() {
            Candidate::Nothing => self.components.clear(),
            // A person may still approve it, but rarely does: the source is read again then.
            Candidate::Rejected(_, rejection) if rejection.retry == RetryPolicy::Never => {
                self.components.clear();
            }
            candidate => {
                let (present, candidate) = (self.machine.source_digest(), candidate.digest());
                self.components
                    .retain(|digest, _| Some(*digest) == present || Some(*digest) == candidate);
            }
        }
    }
}

/// A guest's name and version, for people.
fn title(manifest: &Manifest) -> String {
    format!("{} {}", manifest.name, manifest.version).trim_end().to_owned()
}

#[cfg(test)]
mod tests;
