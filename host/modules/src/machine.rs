//! The life of one module: a pure state machine.
//!
//! Two things go on side by side. A *serving* version, which a broken candidate never
//! displaces; and the *candidate*, which is on its way to serve:
//!
//! The states and the transitions between them are drawn in docs/modules.md; a test holds the
//! picture to what the machine does.
//!
//! A source that changes supersedes the candidate. At most one load is under way; what was
//! superseded while it loaded is dropped, and the newest is loaded next. A rejected digest is
//! remembered, and tried again only if something that its verdict hangs on has changed.
//!
//! Before a new version serves, it is rehearsed: run without writing, beside what serves. What
//! would delete or fail waits for a person ([`Candidate::Held`]). Then the decision is written
//! down ([`Candidate::Committing`]) before the first key is worked on, so that a host that is
//! killed at any moment comes back to the version that was decided. For a while after the swap the
//! version before stays at hand; if more primaries fail than before, it serves again.
//!
//! Nothing here does I/O or knows the time: [`Machine::step`] takes an [`Event`] and gives
//! [`Effect`]s, and the caller carries them out.

mod candidate;
mod conditions;
mod effect;
mod event;
mod parameters;
pub mod reason;
mod rejection;
mod teardown;

use innkeeper_contract::{Event as Notice, EventType};

use crate::rollout::{Preview, Rollout, Strategy};
use crate::source::Digest;

pub use candidate::{Candidate, LoadedCandidate, REJECTED};
pub use effect::Effect;
pub use event::{ComponentInfo, Event, Spec};
use parameters::PendingCheck;
pub use rejection::{Rejection, RetryPolicy};

/// How many rejected digests are remembered.
const REJECTED_MAX: usize = 16;

/// Types of the conditions of a Module.
pub mod condition {
    /// The present source is loaded.
    pub const LOADED_CONDITION: &str = "Loaded";
    /// Some version is serving.
    pub const SERVING_CONDITION: &str = "Serving";
    /// The present source serves with the present spec.
    pub const READY_CONDITION: &str = "Ready";
    /// The runs of the module do not fail.
    pub const HEALTHY_CONDITION: &str = "Healthy";
    /// A candidate waits for an approval.
    pub const HELD_CONDITION: &str = "Held";
    /// A candidate cannot become active, and an approval would not help.
    pub const BLOCKED: &str = "Blocked";
}

/// What the source gives at present.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// Not read yet, since the Module appeared or names another source.
    Unknown,
    /// No component.
    Unavailable(Rejection),
    /// A component.
    Present(Digest),
}

/// What serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRevision {
    /// Which component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
}

/// The revisions that a restarted host is to find in a Module's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidedDigests {
    /// The active revision.
    pub active: Option<Digest>,
    /// The one before it.
    pub previous: Option<Digest>,
}

/// The life of one module. See the [module's docs](self).
#[derive(Clone, Debug)]
pub struct Machine {
    generation: i64,
    spec: Result<(), Rejection>,
    fits: Result<(), Rejection>,
    /// Whether the present spec grants what the active revision names.
    grant: Result<(), Rejection>,
    /// The present parameters are being checked against the schema of the active revision.
    pending_check: Option<PendingCheck>,
    suspended: bool,
    rollout: Rollout,
    source: Source,
    active: Option<ActiveRevision>,
    /// What served before, as long as it may have to serve again.
    rollback_target: Option<ActiveRevision>,
    /// The version before the one that serves, also after its probation.
    previous: Option<Digest>,
    /// What served when the host was here last, until it serves again or something else does.
    restored_digest: Option<Digest>,
    /// What served when the host was here last cannot be had any more.
    is_restored_lost: bool,
    candidate: Candidate,
    /// The spec changed while the candidate loads: what comes of it says nothing about the
    /// present limits.
    outdated: bool,
    /// What is loaded and was refused for its definitions only: it need not be loaded again.
    checked: Option<LoadedCandidate>,
    /// What is tried again, and the verdict that stands until it is known better: status and
    /// Events do not flap with every try.
    retried: Option<(Digest, Rejection)>,
    rejected: Vec<(Digest, Rejection)>,
    approved: Option<Digest>,
    /// What a person has said must not serve, as last heard.
    rejected_by_user: Option<Digest>,
    /// Which approvals or rejections name no digest, and what to do.
    invalid_approval: Option<String>,
    runs: Option<Result<(), Rejection>>,
    /// The Module is being deleted; why it cannot be let go yet, if something stands in the way.
    teardown: Option<Result<(), Rejection>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            generation: 0,
            spec: Ok(()),
            fits: Ok(()),
            grant: Ok(()),
            pending_check: None,
            suspended: false,
            rollout: Rollout::default(),
            source: Source::Unknown,
            active: None,
            rollback_target: None,
            previous: None,
            restored_digest: None,
            is_restored_lost: false,
            candidate: Candidate::Nothing,
            outdated: false,
            checked: None,
            retried: None,
            rejected: Vec::new(),
            approved: None,
            rejected_by_user: None,
            invalid_approval: None,
            runs: None,
            teardown: None,
        }
    }
}

impl Machine {
    /// What serves.
    pub fn active(&self) -> Option<&ActiveRevision> {
        self.active.as_ref()
    }

    /// What is on its way to serve.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The component that is loaded aside and need not be loaded again, although it does not
    /// serve yet.
    pub fn loaded_candidate(&self) -> Option<Digest> {
        match &self.candidate {
            Candidate::Previewing(loaded)
            | Candidate::Held(loaded, _)
            | Candidate::InstallingCrds(loaded)
            | Candidate::Committing(loaded) => Some(loaded.digest),
            _ => self.checked.as_ref().map(|loaded| loaded.digest),
        }
    }

    /// What served before, as long as it may have to serve again.
    pub fn rollback_target(&self) -> Option<&ActiveRevision> {
        self.rollback_target.as_ref()
    }

    /// What is rejected for good, with the verdicts: to be remembered over a restart.
    pub fn rejected(&self) -> impl Iterator<Item = &(Digest, Rejection)> {
        self.rejected.iter().filter(|(_, rejection)| rejection.retry == RetryPolicy::Never)
    }

    /// What the source has at present.
    pub fn source_digest(&self) -> Option<Digest> {
        match self.source {
            Source::Present(digest) => Some(digest),
            Source::Unknown | Source::Unavailable(_) => None,
        }
    }

    /// What serves and what served before it, as a host that starts anew is to find them: until the
    /// copy of a candidate is kept, that is what they were.
    pub fn persistent_digests(&self) -> DecidedDigests {
        let active = self.active.as_ref().map(|active| active.digest);
        DecidedDigests { active: active.or(self.restored_digest), previous: self.previous }
    }

    /// The same with what is decided, from when its copy is kept.
    pub fn decision(&self) -> DecidedDigests {
        let persistent = self.persistent_digests();
        match &self.candidate {
            Candidate::Committing(loaded) => {
                let active = self.active.as_ref().map(|active| active.digest);
                DecidedDigests {
                    active: Some(loaded.digest),
                    previous: active.or(persistent.previous),
                }
            }
            _ => persistent,
        }
    }

    /// Whether the spec that was last seen can be used.
    pub fn is_spec_valid(&self) -> bool {
        self.spec.is_ok()
    }

    /// The generation of the spec that was last seen.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Whether the candidate is decided, and about to serve.
    pub fn is_committing(&self) -> bool {
        matches!(self.candidate, Candidate::Committing(_))
    }

    /// Whether the Module is being deleted.
    pub fn is_tearing_down(&self) -> bool {
        self.teardown.is_some()
    }

    /// Whether this digest served when the host was here last, and is to serve again.
    pub fn is_restored(&self, digest: Digest) -> bool {
        self.restored_digest == Some(digest)
    }

    /// Takes whether the present spec grants what the active revision names: what serves goes on,
    /// and the misfit is reported. Gives what is to be done.
    pub fn check_grant(&mut self, grant: Result<(), Rejection>) -> Vec<Effect> {
        if self.grant == grant || self.is_tearing_down() {
            return Vec::new();
        }
        let warned = grant.as_ref().err().map(warning);
        self.grant = grant;
        warned.into_iter().chain([Effect::Report]).collect()
    }

    /// Takes an event; gives what is to be done, in this order.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let before = self.reported_state();
        let mut effects = Vec::new();
        match event {
            event if self.is_tearing_down() => self.step_teardown(event, &mut effects),
            Event::Deleting => self.on_deleting(&mut effects),
            Event::TornDown(_) => {}
            Event::StatusLoaded { revision, previous, rejected } => {
                self.restored_digest = revision;
                self.previous = previous;
                self.rejected = rejected;
                return effects;
            }
            Event::Approval { approve, reject } => self.on_approval(approve, reject, &mut effects),
            Event::InvalidApproval(message) => self.invalid_approval = message,
            Event::Spec { generation, spec } => self.on_spec(generation, spec, &mut effects),
            Event::Source(result) => self.on_source(result, &mut effects),
            Event::SnapshotRestored { digest, result } => {
                self.on_snapshot_restored(digest, result, &mut effects);
            }
            Event::Loaded { digest, result } => self.on_loaded(digest, result, &mut effects),
            Event::ParametersChecked(result) => self.on_parameters(result, &mut effects),
            Event::Previewed { digest, result } => self.on_previewed(digest, result, &mut effects),
            Event::Crds { digest, result } => self.on_crds(digest, result, &mut effects),
            Event::Committed { digest, result } => self.on_committed(digest, result, &mut effects),
            Event::FailureThresholdExceeded(rejection) => {
                self.on_failure_threshold_exceeded(&rejection, &mut effects);
            }
            Event::RollbackWindowOver(digest) => {
                let serves = self.active.as_ref().is_some_and(|one| one.digest == digest);
                if serves && self.rollback_target.take().is_some() {
                    effects.push(Effect::EndRollbackWindow);
                }
            }
            Event::Retry => self.on_retry(&mut effects),
            Event::Health(result) => {
                if let Err(rejection) = &result
                    && self.runs.as_ref() != Some(&result)
                {
                    effects.push(warning(rejection));
                }
                self.runs = Some(result);
            }
            Event::Deleted => return vec![Effect::Stop],
        }
        if before != self.reported_state() {
            effects.push(Effect::Report);
        }
        effects
    }

    /// All that is told of the machine.
    fn reported_state(&self) -> impl PartialEq + use<> {
        let rejected: Vec<_> = self.rejected().cloned().collect();
        (self.conditions(), self.generation, self.active.clone(), self.candidate.clone(), rejected)
    }

    fn on_approval(
        &mut self,
        approve: Option<Digest>,
        reject: Option<Digest>,
        effects: &mut Vec<Effect>,
    ) {
        // Of two words on one version the later counts; if both came at once, the safer.
        let newly = reject.filter(|digest| self.rejected_by_user != Some(*digest));
        self.approved = approve.filter(|digest| newly != Some(*digest));
        self.rejected_by_user = reject;
        if let Some(digest) = newly {
            let rejection = Rejection::new(
                reason::REJECTED,
                "a person has rejected this version",
                RetryPolicy::Never,
            );
            match self.candidate.digest() {
                // What is being loaded comes back first, and finds that it is rejected.
                Some(candidate)
                    if candidate == digest
                        && !matches!(
                            self.candidate,
                            Candidate::Loading(_) | Candidate::RestoringSnapshot(_)
                        ) =>
                {
                    self.checked = None;
                    self.reject(digest, rejection, effects);
                }
                _ => self.record_rejection(digest, rejection),
            }
        }
        let Some(approved) = self.approved else { return };
        self.rejected.retain(|(rejected, _)| *rejected != approved);
        match &self.candidate {
            Candidate::Held(loaded, _) if loaded.digest == approved => {
                let loaded = loaded.clone();
                effects.push(Effect::Notify(Notice {
                    type_: EventType::Normal,
                    reason: "Approved".to_owned(),
                    message: format!("{} ({}) is approved.", loaded.title, approved.short()),
                }));
                self.install(loaded, effects);
            }
            Candidate::Rejected(digest, _) if *digest == approved => {
                // Its bytes are let go.
                self.source = Source::Unknown;
                self.candidate = Candidate::Nothing;
                effects.push(Effect::Fetch);
            }
            _ => {}
        }
    }

    fn on_retry(&mut self, effects: &mut Vec<Effect>) {
        self.retry_parameters(effects);
        match &self.candidate {
            Candidate::Rejected(digest, rejection) if rejection.retry == RetryPolicy::Later => {
                let retried = Some((*digest, rejection.clone()));
                self.drop_rejections(|again| again == RetryPolicy::Later);
                self.evaluate_source(effects);
                self.retried = retried;
            }
            Candidate::Committing(loaded) => effects.push(Effect::Commit(loaded.digest)),
            _ => {}
        }
    }

    fn on_spec(
        &mut self,
        generation: i64,
        spec: Result<Spec, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        self.generation = generation;
        match spec {
            Err(rejection) => {
                if self.spec.as_ref() != Err(&rejection) {
                    effects.push(warning(&rejection));
                }
                self.spec = Err(rejection);
            }
            Ok(spec) => {
                self.spec = Ok(());
                self.suspended = spec.suspended;
                self.rollout = spec.rollout;
                self.apply_settings(spec.other_parameters, spec.other_source, effects);
                self.drop_rejections(|again| again != RetryPolicy::Never);
                self.checked = None;
                if spec.other_source || self.source == Source::Unknown {
                    self.source = Source::Unknown;
                    effects.push(Effect::Fetch);
                }
                match self.candidate {
                    // What is decided stays so.
                    Candidate::Nothing
                    | Candidate::RestoringSnapshot(_)
                    | Candidate::Committing(_) => {}
                    Candidate::Loading(_) => self.outdated = true,
                    // allowedCRDGroups may say something else now, and so may the parameters and
                    // the limits of the rollout.
                    Candidate::Previewing(_)
                    | Candidate::Held(..)
                    | Candidate::InstallingCrds(_)
                    | Candidate::Rejected(..)
                    | Candidate::Teardown => self.evaluate_source(effects),
                }
            }
        }
    }

    fn on_source(&mut self, result: Result<Digest, Rejection>, effects: &mut Vec<Effect>) {
        let source = match result {
            Ok(digest) => Source::Present(digest),
            Err(rejection) => {
                if self.source != Source::Unavailable(rejection.clone()) {
                    effects.push(Effect::Notify(Notice {
                        type_: EventType::Warning,
                        reason: rejection.reason.clone(),
                        message: format!("{}{}", rejection.message, self.goes_on()),
                    }));
                }
                Source::Unavailable(rejection)
            }
        };
        if source != self.source {
            // Nothing retries what another version has replaced: it is tried when it comes back.
            if let Source::Present(digest) = source {
                self.rejected.retain(|(rejected, rejection)| {
                    *rejected != digest || rejection.retry != RetryPolicy::Later
                });
            }
            self.source = source;
            self.evaluate_source(effects);
        }
    }

    fn on_snapshot_restored(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        if self.candidate != Candidate::RestoringSnapshot(digest) {
            return;
        }
        match result {
            Ok(()) => {
                self.candidate = Candidate::Loading(digest);
                self.outdated = false;
                effects.push(Effect::Load(digest));
            }
            Err(rejection) => self.drop_restored(&rejection, effects),
        }
    }

    /// What served last is not to be had any more: the source is all that there is.
    fn drop_restored(&mut self, rejection: &Rejection, effects: &mut Vec<Effect>) {
        effects.push(Effect::Notify(Notice {
            type_: EventType::Warning,
            reason: rejection.reason.clone(),
            message: format!("What served last cannot serve again: {}", rejection.message),
        }));
        self.restored_digest = None;
        self.is_restored_lost = true;
        self.candidate = Candidate::Nothing;
        self.evaluate_source(effects);
    }

    fn on_loaded(
        &mut self,
        digest: Digest,
        result: Result<ComponentInfo, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        if self.candidate != Candidate::Loading(digest) {
            return;
        }
        // What served last serves again whatever the source has now.
        let recalled = self.restored_digest == Some(digest);
        if !recalled && (self.outdated || self.source != Source::Present(digest)) {
            self.candidate = Candidate::Nothing;
            match result {
                // A verdict on bytes holds whether or not they are still wanted.
                Err(rejection) if rejection.retry == RetryPolicy::Never => {
                    self.record_rejection(digest, rejection);
                }
                _ => {}
            }
            return self.evaluate_source(effects);
        }
        let result = result.and_then(|facts| facts.fits.clone().map(|()| loaded(digest, facts)));
        match result {
            Err(rejection) if recalled && self.source != Source::Present(digest) => {
                self.drop_restored(&rejection, effects);
            }
            Err(rejection) => self.reject(digest, rejection, effects),
            Ok(loaded) => {
                let unwanted = self.rejected.iter().find(|(rejected, _)| *rejected == digest);
                if let Some((_, rejection)) = unwanted.cloned()
                    && !recalled
                {
                    self.candidate = Candidate::Rejected(digest, rejection);
                } else if recalled && self.source != Source::Present(digest) {
                    // Its definitions are there since it served.
                    self.swap(loaded, effects);
                    self.evaluate_source(effects);
                } else if self.is_guarded(digest) {
                    self.candidate = Candidate::Previewing(loaded);
                    effects.push(Effect::Preview(digest));
                } else {
                    self.install(loaded, effects);
                }
            }
        }
    }

    /// Whether a version is rehearsed before it serves: not if it served already, nor if a person
    /// has approved it.
    fn is_guarded(&self, digest: Digest) -> bool {
        if self.approved == Some(digest) || self.restored_digest == Some(digest) {
            return false;
        }
        match self.rollout.strategy {
            Strategy::Immediate => false,
            // The first version has nothing to be held against.
            Strategy::Guarded => {
                self.active.is_some() || self.restored_digest.is_some() || self.is_restored_lost
            }
            Strategy::Manual => true,
        }
    }

    fn on_previewed(
        &mut self,
        digest: Digest,
        result: Result<Preview, Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::Previewing(loaded) = &self.candidate else { return };
        if loaded.digest != digest {
            return;
        }
        let loaded = loaded.clone();
        match result {
            Err(rejection) => self.reject(digest, rejection, effects),
            Ok(rehearsal) => match rehearsal.held_by(&self.rollout) {
                Some(rejection) if self.approved != Some(digest) => {
                    effects.push(Effect::Notify(Notice {
                        type_: EventType::Warning,
                        reason: reason::HELD.to_owned(),
                        message: format!(
                            "{} ({}) is held: {}{}",
                            loaded.title,
                            digest.short(),
                            rejection.message,
                            self.goes_on()
                        ),
                    }));
                    self.retried = None;
                    self.candidate = Candidate::Held(loaded, Box::new((rehearsal, rejection)));
                }
                _ => self.install(loaded, effects),
            },
        }
    }

    fn install(&mut self, loaded: LoadedCandidate, effects: &mut Vec<Effect>) {
        if loaded.has_crds {
            effects.push(Effect::InstallCrds(loaded.digest));
            self.candidate = Candidate::InstallingCrds(loaded);
        } else {
            self.commit(loaded, effects);
        }
    }

    fn on_crds(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::InstallingCrds(loaded) = &self.candidate else { return };
        if loaded.digest != digest {
            return;
        }
        let loaded = loaded.clone();
        match result {
            Ok(()) => self.commit(loaded, effects),
            Err(rejection) => {
                if rejection.retry == RetryPolicy::Later {
                    self.checked = Some(loaded);
                }
                self.reject(digest, rejection, effects);
            }
        }
    }

    fn commit(&mut self, loaded: LoadedCandidate, effects: &mut Vec<Effect>) {
        // What served when the host was here last is written down already.
        if self.restored_digest == Some(loaded.digest) {
            effects.push(Effect::SaveSnapshot(loaded.digest));
            self.swap(loaded, effects);
            return self.evaluate_source(effects);
        }
        effects.push(Effect::Commit(loaded.digest));
        self.candidate = Candidate::Committing(loaded);
    }

    fn on_committed(
        &mut self,
        digest: Digest,
        result: Result<(), Rejection>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::Committing(loaded) = &self.candidate else { return };
        if loaded.digest != digest {
            return;
        }
        let loaded = loaded.clone();
        match result {
            Ok(()) => {
                self.swap(loaded, effects);
                // The source may have something else by now.
                self.evaluate_source(effects);
            }
            // It is decided: nothing but another try helps.
            Err(rejection) => {
                if self.retried != Some((digest, rejection.clone())) {
                    effects.push(warning(&rejection));
                    self.retried = Some((digest, rejection));
                }
                effects.push(Effect::RetryLater);
            }
        }
    }

    fn on_failure_threshold_exceeded(&mut self, rejection: &Rejection, effects: &mut Vec<Effect>) {
        // Without a version before there is nothing to go back to.
        let Some(before) = self.rollback_target.take() else { return };
        let Some(bad) = self.active.replace(before.clone()) else { return };
        let rejection = Rejection::new(
            reason::ROLLED_BACK,
            format!("it served and was taken back: {}", rejection.message),
            RetryPolicy::Never,
        );
        effects.push(Effect::Rollback);
        effects.push(Effect::EndRollbackWindow);
        effects.push(Effect::Notify(Notice {
            type_: EventType::Warning,
            reason: reason::ROLLED_BACK.to_owned(),
            message: format!(
                "{} ({}) serves again. {} ({}) is not tried again: {}",
                before.title,
                before.digest.short(),
                bad.title,
                bad.digest.short(),
                rejection.message
            ),
        }));
        // What was taken back is not gone back to.
        self.previous = None;
        self.runs = None;
        (self.fits, self.pending_check) = (Ok(()), None);
        self.record_rejection(bad.digest, rejection);
        if !matches!(self.candidate, Candidate::Loading(_) | Candidate::RestoringSnapshot(_)) {
            self.evaluate_source(effects);
        }
    }

    /// Looks at the source as it is now, and begins what follows from it.
    fn evaluate_source(&mut self, effects: &mut Vec<Effect>) {
        match self.candidate {
            // One load at a time: when it ends, the source is looked at again. What is decided is
            // carried out first.
            Candidate::Loading(_) | Candidate::RestoringSnapshot(_) | Candidate::Committing(_) => {
                return;
            }
            _ => {}
        }
        self.candidate = Candidate::Nothing;
        self.retried = None;
        if self.source == Source::Unknown {
            return;
        }
        let present = self.source_digest();
        if let Some(past) = self.restored_digest
            && self.active.is_none()
            && present != Some(past)
        {
            self.candidate = Candidate::RestoringSnapshot(past);
            effects.push(Effect::RestoreSnapshot(past));
            return;
        }
        let Some(digest) = present else { return };
        if self.active.as_ref().is_some_and(|active| active.digest == digest) {
            return;
        }
        if let Some((_, rejection)) = self.rejected.iter().find(|(rejected, _)| *rejected == digest)
        {
            self.candidate = Candidate::Rejected(digest, rejection.clone());
            return;
        }
        if let Some(checked) = self.checked.clone().filter(|checked| checked.digest == digest) {
            effects.push(Effect::InstallCrds(digest));
            self.candidate = Candidate::InstallingCrds(checked);
            return;
        }
        self.checked = None;
        self.candidate = Candidate::Loading(digest);
        self.outdated = false;
        effects.push(Effect::Load(digest));
    }

    fn swap(&mut self, loaded: LoadedCandidate, effects: &mut Vec<Effect>) {
        let LoadedCandidate { digest, title, .. } = loaded;
        if self.rollback_target.take().is_some() {
            effects.push(Effect::EndRollbackWindow);
        }
        effects.push(Effect::Swap(digest));
        // What served before the host was restarted is no news.
        if self.restored_digest != Some(digest) {
            effects.push(Effect::Notify(Notice {
                type_: EventType::Normal,
                reason: reason::SERVING.to_owned(),
                message: format!("{title} ({}) serves from now on.", digest.short()),
            }));
        }
        if let Some(before) = self.active.replace(ActiveRevision { digest, title }) {
            self.previous = Some(before.digest);
            if !self.rollout.rollback_window.is_zero() {
                self.rollback_target = Some(before);
                effects.push(Effect::BeginRollbackWindow(digest));
            }
        }
        self.restored_digest = None;
        self.candidate = Candidate::Nothing;
        (self.checked, self.retried) = (None, None);
        (self.fits, self.pending_check) = (Ok(()), None);
        self.runs = None;
    }

    fn reject(&mut self, digest: Digest, rejection: Rejection, effects: &mut Vec<Effect>) {
        if self.retried.take() != Some((digest, rejection.clone())) {
            effects.push(Effect::Notify(Notice {
                type_: EventType::Warning,
                reason: rejection.reason.clone(),
                message: format!(
                    "{} is not taken: {}{}",
                    digest.short(),
                    rejection.message,
                    self.goes_on()
                ),
            }));
        }
        if rejection.retry == RetryPolicy::Later {
            effects.push(Effect::RetryLater);
        }
        self.record_rejection(digest, rejection.clone());
        self.candidate = Candidate::Rejected(digest, rejection);
    }

    fn record_rejection(&mut self, digest: Digest, rejection: Rejection) {
        self.rejected.retain(|(rejected, _)| *rejected != digest);
        if self.rejected.len() >= REJECTED_MAX {
            self.rejected.remove(0);
        }
        self.rejected.push((digest, rejection));
    }

    fn drop_rejections(&mut self, which: impl Fn(RetryPolicy) -> bool) {
        self.rejected.retain(|(_, rejection)| !which(rejection.retry));
    }

    fn goes_on(&self) -> String {
        match &self.active {
            Some(active) => {
                format!(". {} ({}) goes on serving.", active.title, active.digest.short())
            }
            None => String::new(),
        }
    }
}

fn loaded(digest: Digest, facts: ComponentInfo) -> LoadedCandidate {
    LoadedCandidate { digest, title: facts.title, has_crds: facts.has_crds }
}

fn warning(rejection: &Rejection) -> Effect {
    Effect::Notify(Notice {
        type_: EventType::Warning,
        reason: rejection.reason.clone(),
        message: rejection.message.clone(),
    })
}

#[cfg(test)]
mod tests;
