//! The glue around the machines: holds one for each module, keeps the bytes and the guests
//! that they decide about, and hands out what needs I/O or time as [`Action`]s.
//!
//! One driver serves one operator. Every call of [`Driver::handle`] is short, but for
//! the first check of parameters against a schema (milliseconds); loading is a [`LoadJob`] for a
//! thread that may block, or for the same thread where everything must be in one order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use innkeeper_contract::{Condition, Event as Notice, Manifest};
use innkeeper_sandbox::{Engine, Guest, Limits, LoadError};
use serde_json::{Map, Value, json};

use crate::machine::{Again, Candidate, Effect, Event, Facts, Machine, Spec, Verdict, reason};
use crate::module::KindName;
use crate::parameters::{self, ParametersError};
use crate::registry::{Loaded, Modules, Served};
use crate::source::{Component, Digest, SourceError};
use crate::{Module, Place, Settings, SourceRef, manifest};

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
    /// The Module is gone.
    Gone,
    /// Its source was read: after [`Action::Fetch`], and whenever it changes.
    Source(Result<Component, SourceError>),
    /// A [`LoadJob`] ended.
    Loaded {
        /// Of what.
        digest: Digest,
        /// What it is, or why it is refused.
        result: Result<G, Verdict>,
    },
    /// An [`Action::InstallCrds`] ended: all are established, or why not.
    Crds {
        /// As in the action.
        digest: Digest,
        /// How it ended.
        result: Result<(), Verdict>,
    },
    /// The wait after [`Action::RetryLater`] is over.
    Retry,
    /// How the runs of the module go; said when it changes.
    Runs(Result<(), Verdict>),
}

/// What the owner of the driver is to do for a module.
#[derive(Debug)]
pub enum Action<G = Guest> {
    /// Read the source, answer with [`Input::Source`], and go on doing so when it changes.
    /// Replaces the source watched for this module before.
    Fetch(SourceRef),
    /// Run the job and hand its answer to [`Driver::handle`].
    Load(LoadJob),
    /// Install these as the module's ServiceAccount, wait until they are established, and answer
    /// with [`Input::Crds`].
    InstallCrds {
        /// To be given back.
        digest: Digest,
        /// What is wanted.
        crds: Vec<CrdWish>,
        /// The account; `None` for the host's own identity (a Module of a folder).
        service_account: Option<String>,
    },
    /// This serves from now on (it is in [`Modules`] already): watch what it declares, and run
    /// every primary. Also after a change of settings.
    Serve(Arc<Served<G>>),
    /// Hand in [`Input::Retry`] after a while, with backoff.
    RetryLater,
    /// Write the Module's status.
    Report(Report),
    /// Write an Event about the Module.
    Notify(Notice),
    /// The module is gone: nothing of it runs any more.
    Stop,
}

/// A CustomResourceDefinition that a guest describes.
#[derive(Clone, Debug, PartialEq)]
pub struct CrdWish {
    /// Its name: plural and group.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Whether the Module's `crdGroups` allows to install it. If not, it is used if it is there
    /// and serves the versions, and is a reason to refuse if not.
    pub granted: bool,
    /// The definition.
    pub definition: Value,
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
    /// Does it; blocks the thread, up to the compile time of the limits.
    pub fn run(&self, engine: &Engine) -> Input {
        let result =
            engine.load(&self.component.bytes, &self.limits).map_err(|error| refused(&error));
        Input::Loaded { digest: self.component.digest, result }
    }
}

fn refused(error: &LoadError) -> Verdict {
    let again = match error {
        _ if error.is_temporary() => Again::Later,
        LoadError::Describe(_) | LoadError::CompileTimeout { .. } => Again::WhenSpecChanges,
        _ => Again::Never,
    };
    Verdict::new(error.reason(), error.to_string(), again)
}

/// All modules of one host. See the [module's docs](self).
#[derive(Debug)]
pub struct Driver<G = Guest> {
    modules: Arc<Modules<G>>,
    place: Place,
    defaults: Limits,
    lives: BTreeMap<String, Life<G>>,
}

#[derive(Debug)]
struct Life<G> {
    machine: Machine,
    /// The last spec that could be used.
    settings: Option<Settings>,
    /// The source's bytes, as long as they may have to be loaded.
    component: Option<Component>,
    /// What is loaded and does not serve yet.
    aside: Option<(Digest, G)>,
    serving: Option<Arc<Served<G>>>,
    owned_kinds: BTreeSet<KindName>,
}

impl<G> Default for Life<G> {
    fn default() -> Self {
        Self {
            machine: Machine::default(),
            settings: None,
            component: None,
            aside: None,
            serving: None,
            owned_kinds: BTreeSet::new(),
        }
    }
}

impl<G: Loaded> Driver<G> {
    /// A driver without modules. `defaults` are the limits of Modules that give none.
    pub fn new(place: Place, defaults: Limits) -> Self {
        Self { modules: Arc::default(), place, defaults, lives: BTreeMap::new() }
    }

    /// What serves, to be shared with who reconciles.
    pub fn modules(&self) -> &Arc<Modules<G>> {
        &self.modules
    }

    /// The names of the modules, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.lives.keys().map(String::as_str)
    }

    /// The status of a module; `None` if there is none of that name.
    pub fn report(&self, name: &str) -> Option<Report> {
        self.lives.get(name).map(Life::report)
    }

    /// Takes what happened to the module `name`; gives what is to be done, in this order.
    ///
    /// What comes for a module that is not known (any more) is dropped.
    pub fn handle(&mut self, name: &str, input: Input<G>) -> Vec<Action<G>> {
        match &input {
            Input::Module(_) | Input::Malformed { .. } => {
                self.lives.entry(name.to_owned()).or_default();
            }
            _ => {}
        }
        let Some(life) = self.lives.get_mut(name) else { return Vec::new() };
        // Until there is a spec that can be used, nothing was fetched: when there is one, it is.
        if life.settings.is_none() && matches!(input, Input::Source(_)) {
            return Vec::new();
        }
        let event = match input {
            Input::Module(module) => match life.on_module(&module, self.place, self.defaults) {
                Some(event) => event,
                None => return Vec::new(),
            },
            Input::Malformed { generation, message } => Event::Spec {
                generation,
                spec: Err(Verdict::new(reason::INVALID_SPEC, message, Again::WhenSpecChanges)),
            },
            Input::Gone => Event::Deleted,
            Input::Source(result) => life.on_source(result),
            Input::Loaded { digest, result } => life.on_loaded(digest, result),
            Input::Crds { digest, result } => Event::Crds { digest, result },
            Input::Retry => Event::Retry,
            Input::Runs(result) => Event::Runs(result),
        };
        let effects = life.machine.step(event);
        let mut actions = Vec::new();
        for effect in effects {
            life.carry_out(name, effect, &self.modules, &mut actions);
        }
        life.let_go();
        if actions.iter().any(|action| matches!(action, Action::Stop)) {
            self.lives.remove(name);
        }
        actions
    }
}

impl<G: Loaded> Life<G> {
    /// `None` if it is the Module as it was.
    fn on_module(&mut self, module: &Module, place: Place, defaults: Limits) -> Option<Event> {
        if let Some(status) = &module.status {
            self.owned_kinds.extend(status.owned_kinds.iter().cloned());
        }
        let generation = module.metadata.generation;
        let spec = match Settings::new(module, place, defaults) {
            Err(errors) => {
                Err(Verdict::new(reason::INVALID_SPEC, errors.to_string(), Again::WhenSpecChanges))
            }
            Ok(settings) => {
                if self.machine.generation() == generation
                    && self.settings.as_ref() == Some(&settings)
                {
                    return None;
                }
                let other_source =
                    self.settings.as_ref().is_none_or(|old| old.source != settings.source);
                let fits = self
                    .serving
                    .as_ref()
                    .map_or(Ok(()), |serving| fits(serving.guest.manifest(), &settings));
                let suspended = settings.suspend;
                self.settings = Some(settings);
                Ok(Spec { other_source, suspended, fits })
            }
        };
        Some(Event::Spec { generation, spec })
    }

    fn on_source(&mut self, result: Result<Component, SourceError>) -> Event {
        Event::Source(match result {
            Ok(component) => {
                let digest = component.digest;
                self.component = Some(component);
                Ok(digest)
            }
            Err(error) => {
                self.component = None;
                // What is read again anyway needs no retry of the machine's.
                Err(Verdict::new(error.reason(), error.to_string(), Again::Never))
            }
        })
    }

    fn on_loaded(&mut self, digest: Digest, result: Result<G, Verdict>) -> Event {
        let result = result.and_then(|guest| {
            let manifest = guest.manifest();
            manifest::check(manifest).map_err(|errors| {
                Verdict::new(
                    "InvalidManifest",
                    format!("the guest's manifest cannot be used: {}", errors.join("; ")),
                    Again::Never,
                )
            })?;
            let facts = Facts {
                title: title(manifest),
                has_crds: !manifest.crds.is_empty(),
                fits: self.settings.as_ref().map_or(Ok(()), |settings| fits(manifest, settings)),
            };
            self.aside = Some((digest, guest));
            Ok(facts)
        });
        Event::Loaded { digest, result }
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
            Effect::Load(digest) => match (&self.component, &self.settings) {
                (Some(component), Some(settings)) if component.digest == digest => {
                    actions.push(Action::Load(LoadJob {
                        component: component.clone(),
                        limits: settings.limits,
                    }));
                }
                // The machine asks only for what the source gave last; if that is not here,
                // reading the source again is the way back.
                _ => {
                    tracing::error!(module = name, %digest, "the bytes to load are gone");
                    let verdict = Verdict::new("SourceGone", "its bytes are gone", Again::Later);
                    let event = Event::Loaded { digest, result: Err(verdict) };
                    for effect in self.machine.step(event) {
                        self.carry_out(name, effect, modules, actions);
                    }
                    self.carry_out(name, Effect::Fetch, modules, actions);
                }
            },
            Effect::InstallCrds(digest) => {
                if let (Some((_, guest)), Some(settings)) = (&self.aside, &self.settings) {
                    actions.push(Action::InstallCrds {
                        digest,
                        crds: wishes(guest.manifest(), settings),
                        service_account: settings.service_account.clone(),
                    });
                }
            }
            Effect::Swap(digest) => {
                if let Some((loaded, guest)) = self.aside.take()
                    && loaded == digest
                    && let Some(settings) = self.settings.clone()
                {
                    let owned = guest.manifest().owned.iter();
                    self.owned_kinds.extend(owned.map(|owned| KindName {
                        api_version: owned.kind.api_version.clone(),
                        kind: owned.kind.kind.clone(),
                    }));
                    self.serve(name, &guest, settings, modules, actions);
                }
            }
            Effect::Settle { parameters } => {
                if let (Some(serving), Some(settings)) = (self.serving.clone(), &self.settings) {
                    let mut settings = settings.clone();
                    if !parameters {
                        settings.parameters = serving.settings.parameters.clone();
                    }
                    if settings != serving.settings {
                        self.serve(name, &serving.guest, settings, modules, actions);
                    }
                }
            }
            Effect::RetryLater => actions.push(Action::RetryLater),
            Effect::Report => {
                // Of several, the last says it all.
                actions.retain(|action| !matches!(action, Action::Report(_)));
                actions.push(Action::Report(self.report()));
            }
            Effect::Notify(notice) => actions.push(Action::Notify(notice)),
            Effect::Stop => {
                modules.remove(name);
                actions.push(Action::Stop);
            }
        }
    }

    fn serve(
        &mut self,
        name: &str,
        guest: &G,
        settings: Settings,
        modules: &Modules<G>,
        actions: &mut Vec<Action<G>>,
    ) {
        let served = Arc::new(Served {
            module: name.into(),
            guest: guest.with_limits(settings.limits),
            settings,
            version: self.serving.as_ref().map_or(0, |serving| serving.version) + 1,
        });
        self.serving = Some(Arc::clone(&served));
        modules.put(Arc::clone(&served));
        actions.push(Action::Serve(served));
    }

    /// Drops what the machine can no longer ask for.
    fn let_go(&mut self) {
        let aside = self.machine.aside();
        self.aside.take_if(|(digest, _)| Some(*digest) != aside);
        match self.machine.candidate() {
            Candidate::Nothing => self.component = None,
            Candidate::Rejected(_, verdict) if verdict.again == Again::Never => {
                self.component = None;
            }
            Candidate::Rejected(..) | Candidate::Loading(_) | Candidate::InstallingCrds(..) => {}
        }
    }

    fn report(&self) -> Report {
        let mut members = Map::new();
        if let (Some(serving), Some(served)) = (self.machine.serving(), &self.serving) {
            let manifest = served.guest.manifest();
            let mut guest = json!({ "name": manifest.name });
            if !manifest.version.is_empty() {
                guest["version"] = manifest.version.clone().into();
            }
            members.insert("digest".into(), serving.digest.to_string().into());
            members.insert("guest".into(), guest);
            members.insert("contract".into(), innkeeper_contract::VERSION.into());
        }
        if !self.owned_kinds.is_empty() {
            let kinds = self.owned_kinds.iter();
            let kinds: Vec<_> = kinds
                .map(|kind| json!({ "apiVersion": kind.api_version, "kind": kind.kind }))
                .collect();
            members.insert("ownedKinds".into(), kinds.into());
        }
        Report {
            generation: self.machine.generation(),
            members,
            conditions: self.machine.conditions(),
        }
    }
}

/// A guest's name and version, for people.
fn title(manifest: &Manifest) -> String {
    format!("{} {}", manifest.name, manifest.version).trim_end().to_owned()
}

fn fits(manifest: &Manifest, settings: &Settings) -> Result<(), Verdict> {
    parameters::check(manifest, &settings.parameters).map_err(|error| match error {
        ParametersError::Schema(_) => {
            Verdict::new("InvalidParametersSchema", error.to_string(), Again::Never)
        }
        ParametersError::NotWanted(_) | ParametersError::Misfit(_) => {
            Verdict::new(reason::INVALID_PARAMETERS, error.to_string(), Again::WhenSpecChanges)
        }
    })
}

fn wishes(manifest: &Manifest, settings: &Settings) -> Vec<CrdWish> {
    let text = |definition: &Value, pointer: &str| {
        definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    manifest
        .crds
        .iter()
        .map(|definition| {
            let group = text(definition, "/spec/group");
            CrdWish {
                name: text(definition, "/metadata/name"),
                granted: settings.crd_groups.contains(&group),
                group,
                definition: definition.clone(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
