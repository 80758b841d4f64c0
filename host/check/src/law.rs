//! The laws: what holds for a guest whatever happens to the host, the API server and the users.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// Fields that cannot be changed: the guest follows the spec another way, or reports it.
    ImmutableFields,
    /// A crash of the host at any write changes nothing about the result.
    Crash,
    /// Refused, lost, late and repeated writes change nothing about the result.
    FailedWrites,
    /// Late caches change nothing about the result.
    Staleness,
    /// The host repairs objects that another client deletes or changes.
    DriftRepair,
    /// The guest reports every field that it reads.
    ReadFields,
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
    /// Crashes of the host and late caches together change nothing about the result.
    Exploration,
}

impl Law {
    /// All laws, in the order in which they are checked.
    pub const ALL: [Self; 18] = [
        Self::Totality,
        Self::Convergence,
        Self::Determinism,
        Self::Fixpoint,
        Self::PathIndependence,
        Self::Rollback,
        Self::ImmutableFields,
        Self::Crash,
        Self::FailedWrites,
        Self::Staleness,
        Self::DriftRepair,
        Self::ReadFields,
        Self::OneOwner,
        Self::Scope,
        Self::Finalizing,
        Self::NoLeak,
        Self::Upgrade,
        Self::Exploration,
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
            Self::ImmutableFields => "immutable-fields",
            Self::Crash => "crash",
            Self::FailedWrites => "failed-writes",
            Self::Staleness => "staleness",
            Self::DriftRepair => "drift-repair",
            Self::ReadFields => "read-fields",
            Self::OneOwner => "one-owner",
            Self::Scope => "scope",
            Self::Finalizing => "finalizing",
            Self::NoLeak => "no-leak",
            Self::Upgrade => "upgrade",
            Self::Exploration => "exploration",
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
            Self::ImmutableFields => {
                "a refused change of a field is reported or made another way, and loses no data"
            }
            Self::Crash => "a crash of the host before or after any write changes no result",
            Self::FailedWrites => {
                "writes that are refused, lost, late or repeated change no result"
            }
            Self::Staleness => "caches that are late, or miss events, change no result",
            Self::DriftRepair => "objects that another client deletes or changes are repaired",
            Self::ReadFields => {
                "a change of a field that the guest does not report changes no result"
            }
            Self::OneOwner => {
                "objects keep their controllers, and other primaries change nothing for a primary"
            }
            Self::Scope => "objects of others stay as they are, even with the same names",
            Self::Finalizing => {
                "the API server removes a deleted primary, and the objects that it owns"
            }
            Self::NoLeak => "no value of a Secret appears in other objects, statuses and Events",
            Self::Upgrade => {
                "after an upgrade from an earlier component, the objects are those of the new one"
            }
            Self::Exploration => {
                "crashes of the host and late caches at the same time change no result"
            }
        }
    }

    /// A published bug of an operator that the law would have found: what it is, and where it is
    /// reported. `docs/known-bugs.md` has more.
    pub fn published_bug(self) -> (&'static str, &'static str) {
        match self {
            Self::Totality => (
                "Percona's MongoDB operator dereferences a missing part of the spec",
                "https://jira.percona.com/browse/K8SPSMDB-434",
            ),
            Self::Convergence => (
                "Strimzi writes a new time into a condition in each run, which starts the next one",
                "https://github.com/strimzi/strimzi-kafka-operator/issues/13079",
            ),
            Self::Determinism => (
                "ToolHive lists environment variables in random order, so that Pods restart",
                "https://github.com/stacklok/toolhive/issues/5063",
            ),
            Self::Fixpoint => (
                "the operator of ClickHouse restarts the databases whenever it restarts itself",
                "https://github.com/Altinity/clickhouse-operator/issues/1797",
            ),
            Self::PathIndependence => (
                "the operator of OpenTelemetry keeps a nodeSelector that was removed from the spec",
                "https://github.com/open-telemetry/opentelemetry-operator/issues/2940",
            ),
            Self::Rollback => (
                "RabbitMQ's operator stays stuck after a bad override was removed again",
                "https://github.com/rabbitmq/cluster-operator/issues/2218",
            ),
            Self::ImmutableFields => (
                "RabbitMQ's operator deletes a StatefulSet because its claims cannot shrink",
                "https://github.com/rabbitmq/cluster-operator/issues/653",
            ),
            Self::Crash => (
                "NiFiKop crashes between two writes of the status, and never scales down again",
                "https://github.com/konpyutaika/nifikop/issues/79",
            ),
            Self::FailedWrites => (
                "the operator of Humio reports an error for ever that has passed",
                "https://github.com/humio/humio-operator/issues/361",
            ),
            Self::Staleness => (
                "the operator of ZooKeeper reads a late cache and deletes a claim that is in use",
                "https://github.com/pravega/zookeeper-operator/issues/312",
            ),
            Self::DriftRepair => (
                "ToolHive does not make a deleted StatefulSet again, and reports Ready",
                "https://github.com/stacklok/toolhive/issues/6343",
            ),
            Self::ReadFields => (
                "generated operators miss a change of labels, since the generation stays the same",
                "https://github.com/vmware-archive/operator-builder/issues/201",
            ),
            Self::OneOwner => (
                "a registry of the marketplace goes to the primary that was created last",
                "https://github.com/operator-framework/operator-marketplace/pull/254",
            ),
            Self::Scope => (
                "Strimzi overwrites a ConfigMap of the user that has the name of its own",
                "https://github.com/strimzi/strimzi-kafka-operator/issues/2029",
            ),
            Self::Finalizing => (
                "a Vault resource that could not be created can never be deleted",
                "https://github.com/redhat-cop/vault-config-operator/issues/23",
            ),
            Self::NoLeak => (
                "the password of Harbor's database is in a ConfigMap",
                "https://github.com/goharbor/harbor-helm/issues/111",
            ),
            Self::Upgrade => (
                "a new version of the Redis operator changes a selector, which is immutable",
                "https://github.com/OT-CONTAINER-KIT/redis-operator/issues/412",
            ),
            Self::Exploration => (
                "Elastic's operator can read an older state than before when it starts again",
                "https://github.com/elastic/cloud-on-k8s/issues/4956",
            ),
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// The law.
    pub law: Law,
    /// The scenario.
    pub scenario: Scenario,
    /// What has to hold at its end, in addition to what holds for all scenarios.
    pub expectation: Expectation,
}

/// What has to hold at the end of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
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
    /// If the API server refused a write: the objects are those of the last spec applied alone, or
    /// a condition of the primary is false.
    FollowsOrReports,
    /// The objects are those of the same steps if the guest also runs for changes of fields that it
    /// does not report.
    AsWithEveryField,
    /// The objects are those of the same steps without the changes by another client, at the same
    /// times.
    AsBeforeTheOtherClient,
    /// The objects are those at the time of the backup of etcd, when everything was quiet.
    AsAtTheBackup,
    /// The objects at the first time when everything was quiet are there unchanged at the end.
    OthersAsBefore,
    /// Each object that has a controller at the first time when everything was quiet has the same
    /// one at the end, and the last primary has the objects that it has alone, or a condition of a
    /// primary is false.
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
    /// The law says nothing about the case, which is printed as "not judged": the API server
    /// refused a step, the guest answered partially, or no fault or incident happened.
    Inconclusive,
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
