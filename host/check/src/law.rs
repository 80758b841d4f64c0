//! The laws: what holds for a guest whatever happens to the host, the API server and the users.

use std::fmt;

use crate::scenario::Scenario;

/// A law of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// The guest answers for every object that the API server accepts.
    Totality,
    /// After a change the host stops writing.
    Convergence,
    /// The same objects lead to the same result, whatever uids they have.
    Determinism,
    /// A converged guest changes nothing more, even after a restart of the host.
    Fixpoint,
    /// The last spec alone decides the result.
    PathIndependence,
    /// Going back to an earlier spec brings back the earlier objects.
    Rollback,
    /// A crash of the host at any write changes nothing about the result.
    Crash,
    /// Refused, lost, late and repeated writes change nothing about the result.
    FailedWrites,
    /// Late caches change nothing about the result.
    Staleness,
    /// The host repairs objects that another client deletes or changes.
    DriftRepair,
    /// Each object has one controller.
    OneOwner,
    /// Objects of others stay as they are.
    Scope,
    /// A deleted primary goes, and its objects with it.
    Finalizing,
    /// No value of a Secret appears outside of Secrets.
    NoLeak,
    /// An upgrade from an earlier component leads to what the new one does alone.
    Upgrade,
}

impl Law {
    /// All laws, in the order in which they are checked.
    pub const ALL: [Self; 15] = [
        Self::Totality,
        Self::Convergence,
        Self::Determinism,
        Self::Fixpoint,
        Self::PathIndependence,
        Self::Rollback,
        Self::Crash,
        Self::FailedWrites,
        Self::Staleness,
        Self::DriftRepair,
        Self::OneOwner,
        Self::Scope,
        Self::Finalizing,
        Self::NoLeak,
        Self::Upgrade,
    ];

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Totality => "totality",
            Self::Convergence => "convergence",
            Self::Determinism => "determinism",
            Self::Fixpoint => "fixpoint",
            Self::PathIndependence => "path-independence",
            Self::Rollback => "rollback",
            Self::Crash => "crash",
            Self::FailedWrites => "failed-writes",
            Self::Staleness => "staleness",
            Self::DriftRepair => "drift-repair",
            Self::OneOwner => "one-owner",
            Self::Scope => "scope",
            Self::Finalizing => "finalizing",
            Self::NoLeak => "no-leak",
            Self::Upgrade => "upgrade",
        }
    }

    /// What holds, in one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Totality => {
                "the guest gives an answer that the API server accepts, for every valid object"
            }
            Self::Convergence => "after a change, the host stops writing within 20 minutes",
            Self::Determinism => {
                "the same objects lead to the same result, whatever uids they have"
            }
            Self::Fixpoint => "a converged guest writes nothing more, even after a restart",
            Self::PathIndependence => "the last spec alone decides the result, not earlier ones",
            Self::Rollback => "going back to an earlier spec brings the earlier objects back",
            Self::Crash => "a crash of the host before or after any write changes no result",
            Self::FailedWrites => {
                "writes that are refused, lost, late or repeated change no result"
            }
            Self::Staleness => "caches that are late, or miss events, change no result",
            Self::DriftRepair => "objects that another client deletes or changes are repaired",
            Self::OneOwner => "an object keeps its controller, whatever other primaries there are",
            Self::Scope => "objects of others stay as they are, even with the same names",
            Self::Finalizing => {
                "the API server removes a deleted primary, and the objects that it owns"
            }
            Self::NoLeak => "no value of a Secret appears in other objects, statuses and Events",
            Self::Upgrade => {
                "after an upgrade from an earlier component, the objects are those of the new one"
            }
        }
    }

    /// The law of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|law| law.name() == name)
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A scenario, and what a law says about it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The law.
    pub law: Law,
    /// The scenario.
    pub scenario: Scenario,
    /// What has to hold at its end, in addition to what holds for all scenarios.
    pub expectation: Expectation,
}

/// What has to hold at the end of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// Only what holds for all scenarios.
    Nothing,
    /// The API server accepts all desired objects.
    AllAccepted,
    /// The objects are those of the same steps without faults.
    AsWithoutFaults,
    /// The objects are those of the same steps with another seed.
    AsWithAnotherSeed,
    /// The objects are those of the last of the objects that users applied under each name, applied
    /// alone; unless the guest gives a partial answer for these, after which the host keeps what
    /// there is.
    AsWithTheLastSpecAlone,
    /// The objects are those before the last change by another client, when everything was quiet.
    AsBeforeTheOtherClient,
    /// The objects at the first time when everything was quiet are there unchanged at the end.
    OthersAsBefore,
    /// Each object that has a controller at the first time when everything was quiet has the same
    /// one at the end.
    ControllersStay,
    /// The host has written nothing since its last restart.
    NoWriteAfterRestart,
    /// There is no primary, and no object that one owned.
    NothingOwned,
}

/// What a case shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The law holds.
    Holds,
    /// The law says nothing about the case: the API server refused a step, or the guest answered
    /// partially.
    NotJudged,
    /// The case breaks the law.
    Broken(Violation),
}

impl From<Option<Violation>> for Judgement {
    fn from(violation: Option<Violation>) -> Self {
        violation.map_or(Self::Holds, Self::Broken)
    }
}

/// What a scenario breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong, in one line.
    pub what: String,
    /// More lines: the objects that differ.
    pub details: Vec<String>,
}

impl Violation {
    pub(crate) fn new(what: impl Into<String>, details: Vec<String>) -> Self {
        Self { what: what.into(), details }
    }
}
