//! The life of one module: a pure state machine.
//!
//! Two things go on side by side. A *serving* version, which a broken candidate never
//! displaces; and the *candidate*, which is on its way to serve:
//!
//! ```text
//!             Source(present)          Loaded(ok, with CRDs)
//!   Nothing ------------------> Loading --------------------> InstallingCrds
//!      ^                         |   |                          |    |
//!      |        Loaded(ok):Swap  |   | Loaded(refused)          |    |
//!      +-------------------------+   +------> Rejected <--------+    |
//!      |                             CrdsRefused                     |
//!      +-------------------------------------------------------------+
//!                              CrdsReady: Swap
//! ```
//!
//! A source that changes supersedes the candidate. At most one load is under way; what was
//! superseded while it loaded is dropped, and the newest is loaded next. A rejected digest is
//! remembered, and tried again only if something that its verdict hangs on has changed.
//!
//! Nothing here does I/O or knows the time: [`Machine::step`] takes an [`Event`] and gives
//! [`Effect`]s, and the caller carries them out.

use innkeeper_contract::{Condition, ConditionStatus, Event as Notice, EventType};

use crate::source::Digest;

/// How many rejected digests are remembered.
const REJECTED_MAX: usize = 16;

/// Reasons of conditions and events that are the machine's own.
pub mod reason {
    /// The source has not been read yet.
    pub const WAITING: &str = "Waiting";
    /// The candidate is compiled and asked to describe itself.
    pub const LOADING: &str = "Loading";
    /// The candidate's CustomResourceDefinitions are installed.
    pub const INSTALLING_CRDS: &str = "InstallingCrds";
    /// The present source serves.
    pub const SERVING: &str = "Serving";
    /// Nothing has been loaded that could serve.
    pub const NOTHING_LOADED: &str = "NothingLoaded";
    /// The Module says `suspend`.
    pub const SUSPENDED: &str = "Suspended";
    /// The spec cannot be used.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// The parameters do not fit the guest.
    pub const INVALID_PARAMETERS: &str = "InvalidParameters";
    /// The runs do not fail.
    pub const RUNS_SUCCEED: &str = "RunsSucceed";
    /// Nothing has run yet.
    pub const NO_RUNS: &str = "NoRuns";
}

/// Types of the conditions of a Module.
pub mod condition {
    /// The present source is loaded.
    pub const LOADED: &str = "Loaded";
    /// Some version is serving.
    pub const SERVING: &str = "Serving";
    /// The present source serves with the present spec.
    pub const READY: &str = "Ready";
    /// The runs of the module do not fail.
    pub const HEALTHY: &str = "Healthy";
}

/// When a refused thing may be tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Never: the bytes themselves are at fault.
    Never,
    /// When the Module's spec changes (limits, parameters, crdGroups enter the verdict).
    WhenSpecChanges,
    /// After a while: the trouble is elsewhere. Also when the spec changes.
    Later,
}

/// Why something is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// One CamelCase word: the reason of the condition and of the Event.
    pub reason: String,
    /// What is wrong and what to do; stable text.
    pub message: String,
    /// When it may be tried again.
    pub again: Again,
}

impl Verdict {
    /// A verdict.
    pub fn new(reason: impl Into<String>, message: impl Into<String>, again: Again) -> Self {
        Self { reason: reason.into(), message: message.into(), again }
    }
}

/// What the machine needs to know of a loaded component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Name and version, as it describes itself: `podroute 0.1.0`.
    pub title: String,
    /// Whether it describes CustomResourceDefinitions.
    pub has_crds: bool,
    /// Whether the Module's parameters fit it.
    pub fits: Result<(), Verdict>,
}

/// What the source gives at present.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// Not read yet, since the Module appeared or names another source.
    Unknown,
    /// No component.
    Unavailable(Verdict),
    /// A component.
    Present(Digest),
}

/// What is on its way to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Nothing: the present source serves, or there is none.
    Nothing,
    /// It is compiled aside and asked to describe itself.
    Loading(Digest),
    /// It is checked, and its CustomResourceDefinitions are installed.
    InstallingCrds(Digest, String),
    /// It is refused.
    Rejected(Digest, Verdict),
}

/// What serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Which component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
}

/// What happens to a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The Module appeared or its spec changed.
    Spec {
        /// `metadata.generation`.
        generation: i64,
        /// Whether the spec can be used.
        spec: Result<Spec, Verdict>,
    },
    /// The source was read: the digest of its component, or why there is none.
    Source(Result<Digest, Verdict>),
    /// An [`Effect::Load`] ended.
    Loaded {
        /// What was loaded.
        digest: Digest,
        /// What it is, or why it is refused.
        result: Result<Facts, Verdict>,
    },
    /// An [`Effect::InstallCrds`] ended: all are established, or why not.
    Crds {
        /// Whose.
        digest: Digest,
        /// How it ended.
        result: Result<(), Verdict>,
    },
    /// The wait of an [`Effect::RetryLater`] is over.
    Retry,
    /// How the module's runs go, when that changes.
    Runs(Result<(), Verdict>),
    /// The Module is gone.
    Deleted,
}

/// What of a usable spec the machine needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The source is another one than before.
    pub other_source: bool,
    /// The Module is suspended.
    pub suspended: bool,
    /// Whether the parameters fit the serving component; of no meaning if none serves.
    pub fits: Result<(), Verdict>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Read the source, and answer with [`Event::Source`].
    Fetch,
    /// Compile and check the component of this digest aside; answer with [`Event::Loaded`].
    Load(Digest),
    /// Install the CustomResourceDefinitions of the loaded component; answer with [`Event::Crds`].
    InstallCrds(Digest),
    /// From now on the loaded component serves, with the present settings; run every primary.
    Swap(Digest),
    /// The serving component goes on with the present settings.
    Settle {
        /// Also with the present parameters; else with those that it has, since the present
        /// ones do not fit it.
        parameters: bool,
    },
    /// Send [`Event::Retry`] after a while, with backoff.
    RetryLater,
    /// Status or conditions changed: write them.
    Report,
    /// Write this Event about the Module.
    Notify(Notice),
    /// Nothing of this module runs any more.
    Stop,
}

/// The life of one module. See the [module's docs](self).
#[derive(Clone, Debug)]
pub struct Machine {
    generation: i64,
    spec: Result<(), Verdict>,
    fits: Result<(), Verdict>,
    suspended: bool,
    source: Source,
    serving: Option<Serving>,
    candidate: Candidate,
    /// The spec changed while the candidate loads: what comes of it says nothing about the
    /// present limits.
    outdated: bool,
    /// What is loaded and was refused for its definitions only: it need not be loaded again.
    checked: Option<(Digest, String)>,
    /// What is tried again, and the verdict that stands until it is known better: status and
    /// Events do not flap with every try.
    retried: Option<(Digest, Verdict)>,
    rejected: Vec<(Digest, Verdict)>,
    runs: Option<Result<(), Verdict>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            generation: 0,
            spec: Ok(()),
            fits: Ok(()),
            suspended: false,
            source: Source::Unknown,
            serving: None,
            candidate: Candidate::Nothing,
            outdated: false,
            checked: None,
            retried: None,
            rejected: Vec::new(),
            runs: None,
        }
    }
}

impl Machine {
    /// What serves.
    pub fn serving(&self) -> Option<&Serving> {
        self.serving.as_ref()
    }

    /// What is on its way to serve.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The component that is loaded aside and need not be loaded again, although it does not
    /// serve: its definitions are being installed, or will be tried again.
    pub fn aside(&self) -> Option<Digest> {
        match (&self.candidate, &self.checked) {
            (Candidate::InstallingCrds(digest, _), _) | (_, Some((digest, _))) => Some(*digest),
            _ => None,
        }
    }

    /// The generation of the spec that was last seen.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Takes an event; gives what is to be done, in this order.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let before = (self.conditions(), self.generation, self.serving.clone());
        let mut effects = Vec::new();
        match event {
            Event::Spec { generation, spec } => self.on_spec(generation, spec, &mut effects),
            Event::Source(result) => self.on_source(result, &mut effects),
            Event::Loaded { digest, result } => self.on_loaded(digest, result, &mut effects),
            Event::Crds { digest, result } => self.on_crds(digest, result, &mut effects),
            Event::Retry => {
                if let Candidate::Rejected(digest, verdict) = &self.candidate
                    && verdict.again == Again::Later
                {
                    let retried = Some((*digest, verdict.clone()));
                    self.forget(|again| again == Again::Later);
                    self.consider(&mut effects);
                    self.retried = retried;
                }
            }
            Event::Runs(result) => {
                if let Err(verdict) = &result
                    && self.runs.as_ref() != Some(&result)
                {
                    effects.push(warning(verdict));
                }
                self.runs = Some(result);
            }
            Event::Deleted => return vec![Effect::Stop],
        }
        if before != (self.conditions(), self.generation, self.serving.clone()) {
            effects.push(Effect::Report);
        }
        effects
    }

    fn on_spec(&mut self, generation: i64, spec: Result<Spec, Verdict>, effects: &mut Vec<Effect>) {
        self.generation = generation;
        match spec {
            Err(verdict) => {
                if self.spec.as_ref() != Err(&verdict) {
                    effects.push(warning(&verdict));
                }
                self.spec = Err(verdict);
            }
            Ok(spec) => {
                self.spec = Ok(());
                self.suspended = spec.suspended;
                if self.serving.is_some() {
                    // With another source comes another guest, whose parameters these may be.
                    if let Err(verdict) = &spec.fits
                        && self.fits.as_ref() != Err(verdict)
                        && !spec.other_source
                    {
                        effects.push(warning(verdict));
                    }
                    effects.push(Effect::Settle { parameters: spec.fits.is_ok() });
                    self.fits = spec.fits;
                }
                self.forget(|again| again != Again::Never);
                self.checked = None;
                if spec.other_source || self.source == Source::Unknown {
                    self.source = Source::Unknown;
                    effects.push(Effect::Fetch);
                }
                match self.candidate {
                    Candidate::Nothing => {}
                    Candidate::Loading(_) => self.outdated = true,
                    // crdGroups may say something else now, and so may the parameters.
                    Candidate::InstallingCrds(..) | Candidate::Rejected(..) => {
                        self.consider(effects);
                    }
                }
            }
        }
    }

    fn on_source(&mut self, result: Result<Digest, Verdict>, effects: &mut Vec<Effect>) {
        let source = match result {
            Ok(digest) => Source::Present(digest),
            Err(verdict) => {
                if self.source != Source::Unavailable(verdict.clone()) {
                    effects.push(Effect::Notify(Notice {
                        type_: EventType::Warning,
                        reason: verdict.reason.clone(),
                        message: format!("{}{}", verdict.message, self.goes_on()),
                    }));
                }
                Source::Unavailable(verdict)
            }
        };
        if source != self.source {
            self.source = source;
            self.consider(effects);
        }
    }

    fn on_loaded(
        &mut self,
        digest: Digest,
        result: Result<Facts, Verdict>,
        effects: &mut Vec<Effect>,
    ) {
        if self.candidate != Candidate::Loading(digest) {
            return;
        }
        if self.outdated || self.source != Source::Present(digest) {
            self.candidate = Candidate::Nothing;
            match result {
                // A verdict on bytes holds whether or not they are still wanted.
                Err(verdict) if verdict.again == Again::Never => self.remember(digest, verdict),
                _ => {}
            }
            return self.consider(effects);
        }
        match result.and_then(|facts| facts.fits.map(|()| (facts.title, facts.has_crds))) {
            Err(verdict) => self.reject(digest, verdict, effects),
            Ok((title, true)) => {
                self.candidate = Candidate::InstallingCrds(digest, title);
                effects.push(Effect::InstallCrds(digest));
            }
            Ok((title, false)) => self.swap(digest, title, effects),
        }
    }

    fn on_crds(&mut self, digest: Digest, result: Result<(), Verdict>, effects: &mut Vec<Effect>) {
        let Candidate::InstallingCrds(candidate, title) = &self.candidate else { return };
        if *candidate != digest {
            return;
        }
        let title = title.clone();
        match result {
            Ok(()) => self.swap(digest, title, effects),
            Err(verdict) => {
                if verdict.again == Again::Later {
                    self.checked = Some((digest, title));
                }
                self.reject(digest, verdict, effects);
            }
        }
    }

    /// Looks at the source as it is now, and begins what follows from it.
    fn consider(&mut self, effects: &mut Vec<Effect>) {
        // One load at a time: when it ends, the source is looked at again.
        if let Candidate::Loading(_) = self.candidate {
            return;
        }
        self.candidate = Candidate::Nothing;
        self.retried = None;
        let Source::Present(digest) = self.source else { return };
        if self.serving.as_ref().is_some_and(|serving| serving.digest == digest) {
            return;
        }
        if let Some((_, verdict)) = self.rejected.iter().find(|(rejected, _)| *rejected == digest) {
            self.candidate = Candidate::Rejected(digest, verdict.clone());
            return;
        }
        if let Some((checked, title)) = &self.checked
            && *checked == digest
        {
            self.candidate = Candidate::InstallingCrds(digest, title.clone());
            effects.push(Effect::InstallCrds(digest));
            return;
        }
        self.checked = None;
        self.candidate = Candidate::Loading(digest);
        self.outdated = false;
        effects.push(Effect::Load(digest));
    }

    fn swap(&mut self, digest: Digest, title: String, effects: &mut Vec<Effect>) {
        effects.push(Effect::Swap(digest));
        effects.push(Effect::Notify(Notice {
            type_: EventType::Normal,
            reason: reason::SERVING.to_owned(),
            message: format!("{title} ({}) serves from now on.", digest.short()),
        }));
        self.serving = Some(Serving { digest, title });
        self.candidate = Candidate::Nothing;
        (self.checked, self.retried) = (None, None);
        self.fits = Ok(());
        self.runs = None;
    }

    fn reject(&mut self, digest: Digest, verdict: Verdict, effects: &mut Vec<Effect>) {
        if self.retried.take() != Some((digest, verdict.clone())) {
            effects.push(Effect::Notify(Notice {
                type_: EventType::Warning,
                reason: verdict.reason.clone(),
                message: format!(
                    "{} is not taken: {}{}",
                    digest.short(),
                    verdict.message,
                    self.goes_on()
                ),
            }));
        }
        if verdict.again == Again::Later {
            effects.push(Effect::RetryLater);
        }
        self.remember(digest, verdict.clone());
        self.candidate = Candidate::Rejected(digest, verdict);
    }

    fn remember(&mut self, digest: Digest, verdict: Verdict) {
        self.rejected.retain(|(rejected, _)| *rejected != digest);
        if self.rejected.len() >= REJECTED_MAX {
            self.rejected.remove(0);
        }
        self.rejected.push((digest, verdict));
    }

    fn forget(&mut self, which: impl Fn(Again) -> bool) {
        self.rejected.retain(|(_, verdict)| !which(verdict.again));
    }

    fn goes_on(&self) -> String {
        match &self.serving {
            Some(serving) => {
                format!(". {} ({}) goes on serving.", serving.title, serving.digest.short())
            }
            None => String::new(),
        }
    }

    /// The conditions of the Module, ordered by type.
    pub fn conditions(&self) -> Vec<Condition> {
        let loaded = self.loaded();
        let mut all = vec![self.healthy(), self.ready(&loaded), loaded, self.serves()];
        all.sort_by(|a, b| a.type_.cmp(&b.type_));
        all
    }

    fn loaded(&self) -> Condition {
        use ConditionStatus::{False, True, Unknown};
        let type_ = condition::LOADED;
        let refused = |verdict: &Verdict, what: String| {
            make(
                type_,
                False,
                &verdict.reason,
                format!("{what}{}{}", verdict.message, self.goes_on()),
            )
        };
        if let Some((digest, verdict)) = &self.retried {
            return refused(verdict, format!("{} is not taken: ", digest.short()));
        }
        match (&self.candidate, &self.source) {
            (Candidate::Loading(digest), _) => make(
                type_,
                Unknown,
                reason::LOADING,
                format!("{} is being loaded.", digest.short()),
            ),
            (Candidate::InstallingCrds(digest, title), _) => make(
                type_,
                Unknown,
                reason::INSTALLING_CRDS,
                format!(
                    "The CustomResourceDefinitions of {title} ({}) are being installed.",
                    digest.short()
                ),
            ),
            (Candidate::Rejected(digest, verdict), _) => {
                refused(verdict, format!("{} is not taken: ", digest.short()))
            }
            (Candidate::Nothing, Source::Unavailable(verdict)) => refused(verdict, String::new()),
            (Candidate::Nothing, Source::Unknown) => {
                make(type_, Unknown, reason::WAITING, "The source has not been read yet.")
            }
            (Candidate::Nothing, Source::Present(digest)) => {
                make(type_, True, condition::LOADED, format!("{} is loaded.", digest.short()))
            }
        }
    }

    fn serves(&self) -> Condition {
        let type_ = condition::SERVING;
        match &self.serving {
            Some(serving) => make(
                type_,
                ConditionStatus::True,
                reason::SERVING,
                format!("{} ({}) serves.", serving.title, serving.digest.short()),
            ),
            None => make(
                type_,
                ConditionStatus::False,
                reason::NOTHING_LOADED,
                "No version has been loaded that could serve.",
            ),
        }
    }

    fn ready(&self, loaded: &Condition) -> Condition {
        let type_ = condition::READY;
        if let Err(verdict) = self.spec.as_ref().and(self.fits.as_ref()) {
            return make(type_, ConditionStatus::False, &verdict.reason, verdict.message.clone());
        }
        if loaded.status != ConditionStatus::True {
            return make(type_, ConditionStatus::False, &loaded.reason, loaded.message.clone());
        }
        if self.suspended {
            let message = "The Module says suspend: nothing is written.";
            return make(type_, ConditionStatus::False, reason::SUSPENDED, message);
        }
        let message = "The present source serves with the present spec.";
        make(type_, ConditionStatus::True, reason::SERVING, message)
    }

    fn healthy(&self) -> Condition {
        let type_ = condition::HEALTHY;
        match &self.runs {
            None => make(type_, ConditionStatus::Unknown, reason::NO_RUNS, "Nothing has run yet."),
            Some(Ok(())) => {
                make(type_, ConditionStatus::True, reason::RUNS_SUCCEED, "The runs do not fail.")
            }
            Some(Err(verdict)) => {
                make(type_, ConditionStatus::False, &verdict.reason, verdict.message.clone())
            }
        }
    }
}

fn make(
    type_: &str,
    status: ConditionStatus,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

fn warning(verdict: &Verdict) -> Effect {
    Effect::Notify(Notice {
        type_: EventType::Warning,
        reason: verdict.reason.clone(),
        message: verdict.message.clone(),
    })
}

#[cfg(test)]
mod tests;
