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
mod leaving;
mod parameters;
pub mod reason;
mod verdict;

use innkeeper_contract::{Event as Notice, EventType};

use crate::rollout::{Rehearsal, Rollout, Strategy};
use crate::source::Digest;

pub use candidate::{Aside, Candidate, REJECTED};
pub use effect::Effect;
pub use event::{Event, Facts, Spec};
use parameters::Unchecked;
pub use verdict::{Again, Verdict};

/// How many rejected digests are remembered.
const REJECTED_MAX: usize = 16;

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
    /// A candidate waits for an approval.
    pub const HELD: &str = "Held";
    /// A candidate cannot become active, and an approval would not help.
    pub const BLOCKED: &str = "Blocked";
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

/// What serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Which component.
    pub digest: Digest,
    /// Its name and version.
    pub title: String,
}

/// The life of one module. See the [module's docs](self).
#[derive(Clone, Debug)]
pub struct Machine {
    generation: i64,
    spec: Result<(), Verdict>,
    fits: Result<(), Verdict>,
    /// Whether the present spec grants what the active revision names.
    grant: Result<(), Verdict>,
    /// The present parameters are being checked against the schema of the active revision.
    unchecked: Option<Unchecked>,
    suspended: bool,
    rollout: Rollout,
    source: Source,
    serving: Option<Serving>,
    /// What served before, as long as it may have to serve again.
    before: Option<Serving>,
    /// The version before the one that serves, also after its probation.
    previous: Option<Digest>,
    /// What served when the host was here last, until it serves again or something else does.
    past: Option<Digest>,
    /// What served when the host was here last cannot be had any more.
    is_past_lost: bool,
    candidate: Candidate,
    /// The spec changed while the candidate loads: what comes of it says nothing about the
    /// present limits.
    outdated: bool,
    /// What is loaded and was refused for its definitions only: it need not be loaded again.
    checked: Option<Aside>,
    /// What is tried again, and the verdict that stands until it is known better: status and
    /// Events do not flap with every try.
    retried: Option<(Digest, Verdict)>,
    rejected: Vec<(Digest, Verdict)>,
    approved: Option<Digest>,
    /// What a person has said must not serve, as last heard.
    unwanted: Option<Digest>,
    /// Which approvals or rejections name no digest, and what to do.
    invalid_approval: Option<String>,
    runs: Option<Result<(), Verdict>>,
    /// The Module is being deleted; why it cannot be let go yet, if something stands in the way.
    leaving: Option<Result<(), Verdict>>,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            generation: 0,
            spec: Ok(()),
            fits: Ok(()),
            grant: Ok(()),
            unchecked: None,
            suspended: false,
            rollout: Rollout::default(),
            source: Source::Unknown,
            serving: None,
            before: None,
            previous: None,
            past: None,
            is_past_lost: false,
            candidate: Candidate::Nothing,
            outdated: false,
            checked: None,
            retried: None,
            rejected: Vec::new(),
            approved: None,
            unwanted: None,
            invalid_approval: None,
            runs: None,
            leaving: None,
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
    /// serve yet.
    pub fn aside(&self) -> Option<Digest> {
        match &self.candidate {
            Candidate::Rehearsing(aside)
            | Candidate::Held(aside, _)
            | Candidate::InstallingCrds(aside)
            | Candidate::Committing(aside) => Some(aside.digest),
            _ => self.checked.as_ref().map(|aside| aside.digest),
        }
    }

    /// What served before, as long as it may have to serve again.
    pub fn before(&self) -> Option<&Serving> {
        self.before.as_ref()
    }

    /// What is rejected for good, with the verdicts: to be remembered over a restart.
    pub fn rejected(&self) -> impl Iterator<Item = &(Digest, Verdict)> {
        self.rejected.iter().filter(|(_, verdict)| verdict.again == Again::Never)
    }

    /// What the source has at present.
    pub fn present(&self) -> Option<Digest> {
        match self.source {
            Source::Present(digest) => Some(digest),
            Source::Unknown | Source::Unavailable(_) => None,
        }
    }

    /// What serves and what served before it, as a host that starts anew is to find them: until the
    /// copy of a candidate is kept, that is what they were.
    pub fn standing(&self) -> (Option<Digest>, Option<Digest>) {
        (self.serving.as_ref().map(|serving| serving.digest).or(self.past), self.previous)
    }

    /// The same with what is decided, from when its copy is kept.
    pub fn decision(&self) -> (Option<Digest>, Option<Digest>) {
        let (serves, previous) = self.standing();
        match &self.candidate {
            Candidate::Committing(aside) => {
                let serving = self.serving.as_ref().map(|serving| serving.digest);
                (Some(aside.digest), serving.or(previous))
            }
            _ => (serves, previous),
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
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// Whether this digest served when the host was here last, and is to serve again.
    pub fn is_recalled(&self, digest: Digest) -> bool {
        self.past == Some(digest)
    }

    /// Takes whether the present spec grants what the active revision names: what serves goes on, and
    /// the misfit is reported. Gives what is to be done.
    pub fn check_grant(&mut self, grant: Result<(), Verdict>) -> Vec<Effect> {
        if self.grant == grant || self.is_leaving() {
            return Vec::new();
        }
        let warned = grant.as_ref().err().map(warning);
        self.grant = grant;
        warned.into_iter().chain([Effect::Report]).collect()
    }

    /// Takes an event; gives what is to be done, in this order.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        let before = self.told();
        let mut effects = Vec::new();
        match event {
            event if self.is_leaving() => self.step_leaving(event, &mut effects),
            Event::Deleting => self.on_deleting(&mut effects),
            Event::Left(_) => {}
            Event::Known { served, previous, rejected } => {
                self.past = served;
                self.previous = previous;
                self.rejected = rejected;
                return effects;
            }
            Event::Word { approve, reject } => self.on_word(approve, reject, &mut effects),
            Event::InvalidApproval(message) => self.invalid_approval = message,
            Event::Spec { generation, spec } => self.on_spec(generation, spec, &mut effects),
            Event::Source(result) => self.on_source(result, &mut effects),
            Event::Recalled { digest, result } => self.on_recalled(digest, result, &mut effects),
            Event::Loaded { digest, result } => self.on_loaded(digest, result, &mut effects),
            Event::ParametersChecked(result) => self.on_parameters(result, &mut effects),
            Event::Rehearsed { digest, result } => self.on_rehearsed(digest, result, &mut effects),
            Event::Crds { digest, result } => self.on_crds(digest, result, &mut effects),
            Event::Committed { digest, result } => self.on_committed(digest, result, &mut effects),
            Event::TooManyFail(verdict) => self.on_too_many_fail(&verdict, &mut effects),
            Event::ProbationOver(digest) => {
                let serves = self.serving.as_ref().is_some_and(|one| one.digest == digest);
                if serves && self.before.take().is_some() {
                    effects.push(Effect::EndProbation);
                }
            }
            Event::Retry => self.on_retry(&mut effects),
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
        if before != self.told() {
            effects.push(Effect::Report);
        }
        effects
    }

    /// All that is told of the machine.
    fn told(&self) -> impl PartialEq + use<> {
        let rejected: Vec<_> = self.rejected().cloned().collect();
        (self.conditions(), self.generation, self.serving.clone(), self.candidate.clone(), rejected)
    }

    fn on_word(
        &mut self,
        approve: Option<Digest>,
        reject: Option<Digest>,
        effects: &mut Vec<Effect>,
    ) {
        // Of two words on one version the later counts; if both came at once, the safer.
        let newly = reject.filter(|digest| self.unwanted != Some(*digest));
        self.approved = approve.filter(|digest| newly != Some(*digest));
        self.unwanted = reject;
        if let Some(digest) = newly {
            let verdict =
                Verdict::new(reason::REJECTED, "a person has rejected this version", Again::Never);
            match self.candidate.digest() {
                // What is being loaded comes back first, and finds that it is rejected.
                Some(candidate)
                    if candidate == digest
                        && !matches!(
                            self.candidate,
                            Candidate::Loading(_) | Candidate::Recalling(_)
                        ) =>
                {
                    self.checked = None;
                    self.reject(digest, verdict, effects);
                }
                _ => self.remember(digest, verdict),
            }
        }
        let Some(approved) = self.approved else { return };
        self.rejected.retain(|(rejected, _)| *rejected != approved);
        match &self.candidate {
            Candidate::Held(aside, _) if aside.digest == approved => {
                let aside = aside.clone();
                effects.push(Effect::Notify(Notice {
                    type_: EventType::Normal,
                    reason: "Approved".to_owned(),
                    message: format!("{} ({}) is approved.", aside.title, approved.short()),
                }));
                self.install(aside, effects);
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
            Candidate::Rejected(digest, verdict) if verdict.again == Again::Later => {
                let retried = Some((*digest, verdict.clone()));
                self.forget(|again| again == Again::Later);
                self.consider(effects);
                self.retried = retried;
            }
            Candidate::Committing(aside) => effects.push(Effect::Commit(aside.digest)),
            _ => {}
        }
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
                self.rollout = spec.rollout;
                self.settle(spec.other_parameters, spec.other_source, effects);
                self.forget(|again| again != Again::Never);
                self.checked = None;
                if spec.other_source || self.source == Source::Unknown {
                    self.source = Source::Unknown;
                    effects.push(Effect::Fetch);
                }
                match self.candidate {
                    // What is decided stays so.
                    Candidate::Nothing | Candidate::Recalling(_) | Candidate::Committing(_) => {}
                    Candidate::Loading(_) => self.outdated = true,
                    // allowedCRDGroups may say something else now, and so may the parameters and the
                    // limits of the rollout.
                    Candidate::Rehearsing(_)
                    | Candidate::Held(..)
                    | Candidate::InstallingCrds(_)
                    | Candidate::Rejected(..)
                    | Candidate::Leaving => self.consider(effects),
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
            // Nothing retries what another version has replaced: it is tried when it comes back.
            if let Source::Present(digest) = source {
                self.rejected.retain(|(rejected, verdict)| {
                    *rejected != digest || verdict.again != Again::Later
                });
            }
            self.source = source;
            self.consider(effects);
        }
    }

    fn on_recalled(
        &mut self,
        digest: Digest,
        result: Result<(), Verdict>,
        effects: &mut Vec<Effect>,
    ) {
        if self.candidate != Candidate::Recalling(digest) {
            return;
        }
        match result {
            Ok(()) => {
                self.candidate = Candidate::Loading(digest);
                self.outdated = false;
                effects.push(Effect::Load(digest));
            }
            Err(verdict) => self.forget_past(&verdict, effects),
        }
    }

    /// What served last is not to be had any more: the source is all that there is.
    fn forget_past(&mut self, verdict: &Verdict, effects: &mut Vec<Effect>) {
        effects.push(Effect::Notify(Notice {
            type_: EventType::Warning,
            reason: verdict.reason.clone(),
            message: format!("What served last cannot serve again: {}", verdict.message),
        }));
        self.past = None;
        self.is_past_lost = true;
        self.candidate = Candidate::Nothing;
        self.consider(effects);
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
        // What served last serves again whatever the source has now.
        let recalled = self.past == Some(digest);
        if !recalled && (self.outdated || self.source != Source::Present(digest)) {
            self.candidate = Candidate::Nothing;
            match result {
                // A verdict on bytes holds whether or not they are still wanted.
                Err(verdict) if verdict.again == Again::Never => self.remember(digest, verdict),
                _ => {}
            }
            return self.consider(effects);
        }
        let result = result.and_then(|facts| facts.fits.clone().map(|()| aside(digest, facts)));
        match result {
            Err(verdict) if recalled && self.source != Source::Present(digest) => {
                self.forget_past(&verdict, effects);
            }
            Err(verdict) => self.reject(digest, verdict, effects),
            Ok(aside) => {
                let unwanted = self.rejected.iter().find(|(rejected, _)| *rejected == digest);
                if let Some((_, verdict)) = unwanted.cloned()
                    && !recalled
                {
                    self.candidate = Candidate::Rejected(digest, verdict);
                } else if recalled && self.source != Source::Present(digest) {
                    // Its definitions are there since it served.
                    self.swap(aside, effects);
                    self.consider(effects);
                } else if self.is_guarded(digest) {
                    self.candidate = Candidate::Rehearsing(aside);
                    effects.push(Effect::Rehearse(digest));
                } else {
                    self.install(aside, effects);
                }
            }
        }
    }

    /// Whether a version is rehearsed before it serves: not if it served already, nor if a person
    /// has approved it.
    fn is_guarded(&self, digest: Digest) -> bool {
        if self.approved == Some(digest) || self.past == Some(digest) {
            return false;
        }
        match self.rollout.strategy {
            Strategy::Immediate => false,
            // The first version has nothing to be held against.
            Strategy::Guarded => self.serving.is_some() || self.past.is_some() || self.is_past_lost,
            Strategy::Manual => true,
        }
    }

    fn on_rehearsed(
        &mut self,
        digest: Digest,
        result: Result<Rehearsal, Verdict>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::Rehearsing(aside) = &self.candidate else { return };
        if aside.digest != digest {
            return;
        }
        let aside = aside.clone();
        match result {
            Err(verdict) => self.reject(digest, verdict, effects),
            Ok(rehearsal) => match rehearsal.held_by(&self.rollout) {
                Some(verdict) if self.approved != Some(digest) => {
                    effects.push(Effect::Notify(Notice {
                        type_: EventType::Warning,
                        reason: reason::HELD.to_owned(),
                        message: format!(
                            "{} ({}) is held: {}{}",
                            aside.title,
                            digest.short(),
                            verdict.message,
                            self.goes_on()
                        ),
                    }));
                    self.retried = None;
                    self.candidate = Candidate::Held(aside, Box::new((rehearsal, verdict)));
                }
                _ => self.install(aside, effects),
            },
        }
    }

    fn install(&mut self, aside: Aside, effects: &mut Vec<Effect>) {
        if aside.has_crds {
            effects.push(Effect::InstallCrds(aside.digest));
            self.candidate = Candidate::InstallingCrds(aside);
        } else {
            self.commit(aside, effects);
        }
    }

    fn on_crds(&mut self, digest: Digest, result: Result<(), Verdict>, effects: &mut Vec<Effect>) {
        let Candidate::InstallingCrds(aside) = &self.candidate else { return };
        if aside.digest != digest {
            return;
        }
        let aside = aside.clone();
        match result {
            Ok(()) => self.commit(aside, effects),
            Err(verdict) => {
                if verdict.again == Again::Later {
                    self.checked = Some(aside);
                }
                self.reject(digest, verdict, effects);
            }
        }
    }

    fn commit(&mut self, aside: Aside, effects: &mut Vec<Effect>) {
        // What served when the host was here last is written down already.
        if self.past == Some(aside.digest) {
            effects.push(Effect::KeepCopy(aside.digest));
            self.swap(aside, effects);
            return self.consider(effects);
        }
        effects.push(Effect::Commit(aside.digest));
        self.candidate = Candidate::Committing(aside);
    }

    fn on_committed(
        &mut self,
        digest: Digest,
        result: Result<(), Verdict>,
        effects: &mut Vec<Effect>,
    ) {
        let Candidate::Committing(aside) = &self.candidate else { return };
        if aside.digest != digest {
            return;
        }
        let aside = aside.clone();
        match result {
            Ok(()) => {
                self.swap(aside, effects);
                // The source may have something else by now.
                self.consider(effects);
            }
            // It is decided: nothing but another try helps.
            Err(verdict) => {
                if self.retried != Some((digest, verdict.clone())) {
                    effects.push(warning(&verdict));
                    self.retried = Some((digest, verdict));
                }
                effects.push(Effect::RetryLater);
            }
        }
    }

    fn on_too_many_fail(&mut self, verdict: &Verdict, effects: &mut Vec<Effect>) {
        // Without a version before there is nothing to go back to.
        let Some(before) = self.before.take() else { return };
        let Some(bad) = self.serving.replace(before.clone()) else { return };
        let verdict = Verdict::new(
            reason::ROLLED_BACK,
            format!("it served and was taken back: {}", verdict.message),
            Again::Never,
        );
        effects.push(Effect::SwapBack);
        effects.push(Effect::EndProbation);
        effects.push(Effect::Notify(Notice {
            type_: EventType::Warning,
            reason: reason::ROLLED_BACK.to_owned(),
            message: format!(
                "{} ({}) serves again. {} ({}) is not tried again: {}",
                before.title,
                before.digest.short(),
                bad.title,
                bad.digest.short(),
                verdict.message
            ),
        }));
        // What was taken back is not gone back to.
        self.previous = None;
        self.runs = None;
        (self.fits, self.unchecked) = (Ok(()), None);
        self.remember(bad.digest, verdict);
        if !matches!(self.candidate, Candidate::Loading(_) | Candidate::Recalling(_)) {
            self.consider(effects);
        }
    }

    /// Looks at the source as it is now, and begins what follows from it.
    fn consider(&mut self, effects: &mut Vec<Effect>) {
        match self.candidate {
            // One load at a time: when it ends, the source is looked at again. What is decided is
            // carried out first.
            Candidate::Loading(_) | Candidate::Recalling(_) | Candidate::Committing(_) => return,
            _ => {}
        }
        self.candidate = Candidate::Nothing;
        self.retried = None;
        if self.source == Source::Unknown {
            return;
        }
        let present = self.present();
        if let Some(past) = self.past
            && self.serving.is_none()
            && present != Some(past)
        {
            self.candidate = Candidate::Recalling(past);
            effects.push(Effect::Recall(past));
            return;
        }
        let Some(digest) = present else { return };
        if self.serving.as_ref().is_some_and(|serving| serving.digest == digest) {
            return;
        }
        if let Some((_, verdict)) = self.rejected.iter().find(|(rejected, _)| *rejected == digest) {
            self.candidate = Candidate::Rejected(digest, verdict.clone());
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

    fn swap(&mut self, aside: Aside, effects: &mut Vec<Effect>) {
        let Aside { digest, title, .. } = aside;
        if self.before.take().is_some() {
            effects.push(Effect::EndProbation);
        }
        effects.push(Effect::Swap(digest));
        // What served before the host was restarted is no news.
        if self.past != Some(digest) {
            effects.push(Effect::Notify(Notice {
                type_: EventType::Normal,
                reason: reason::SERVING.to_owned(),
                message: format!("{title} ({}) serves from now on.", digest.short()),
            }));
        }
        if let Some(before) = self.serving.replace(Serving { digest, title }) {
            self.previous = Some(before.digest);
            if !self.rollout.probation.is_zero() {
                self.before = Some(before);
                effects.push(Effect::BeginProbation(digest));
            }
        }
        self.past = None;
        self.candidate = Candidate::Nothing;
        (self.checked, self.retried) = (None, None);
        (self.fits, self.unchecked) = (Ok(()), None);
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
}

fn aside(digest: Digest, facts: Facts) -> Aside {
    Aside { digest, title: facts.title, has_crds: facts.has_crds }
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
