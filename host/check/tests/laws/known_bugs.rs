//! The bugs of the guest `faulty`, and the law that each of them breaks.

use innkeeper_check::Law;

/// A bug of the guest `faulty`.
pub(crate) struct KnownBug {
    /// The parameter that chooses it.
    pub(crate) name: &'static str,
    /// The law that it breaks.
    pub(crate) law: Law,
    /// The file below `samples` with which it does.
    pub(crate) sample: &'static str,
    /// What else the cluster or the Module has.
    pub(crate) setting: Setting,
}

/// What is different from a new cluster with the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Nothing.
    Plain,
    /// The Module may read the Secret of the sample.
    SecretGranted,
    /// There is no Secret.
    NoSecret,
    /// Another client has made the Service before.
    ServiceTaken,
    /// The component had no bug before.
    UpgradeFromCorrect,
    /// The component had an older image before.
    UpgradeFromOldImage,
}

const fn known(name: &'static str, law: Law) -> KnownBug {
    KnownBug { name, law, sample: "shop", setting: Setting::Plain }
}

impl KnownBug {
    const fn with(self, sample: &'static str) -> Self {
        Self { sample, ..self }
    }

    const fn setting(self, setting: Setting) -> Self {
        Self { setting, ..self }
    }
}

/// Bugs that show without faults and without a second spec.
pub(crate) const ANSWERS: [KnownBug; 25] = [
    known("trap-on-empty-image", Law::Totality).with("small"),
    known("takes-first-page", Law::Totality).with("small"),
    known("parses-image", Law::Totality).with("small"),
    known("slices-image", Law::Totality).with("small"),
    known("allocates-by-replicas", Law::Totality).with("small"),
    known("loop-on-zero-replicas", Law::Totality).with("small"),
    known("divide-by-replicas", Law::Totality).with("small"),
    known("name-from-setting", Law::Totality).with("small"),
    known("label-from-image", Law::Totality).with("small"),
    known("one-replica-less", Law::Totality).with("small"),
    known("duplicate-pages", Law::Totality).with("small"),
    known("foreign-namespace", Law::Totality).with("small"),
    known("undeclared-kind", Law::Totality).with("small"),
    known("time-in-data", Law::Convergence).with("small"),
    known("time-in-status", Law::Convergence).with("small"),
    known("appends-to-status", Law::Fixpoint),
    known("flaps-condition", Law::Fixpoint),
    known("flap-when-ready", Law::Convergence).with("small"),
    known("recreates-job", Law::Fixpoint).with("migrated"),
    known("count-runs", Law::Fixpoint),
    known("alternate", Law::Fixpoint),
    known("part-of-uid", Law::Determinism),
    known("whole-uid", Law::Determinism),
    known("unordered-list", Law::Determinism),
    known("skips-known-generation", Law::DriftRepair),
];

/// Bugs that depend on earlier specs or on an earlier component.
pub(crate) const PATHS: [KnownBug; 18] = [
    known("never-scales-down", Law::PathIndependence),
    known("keeps-settings", Law::PathIndependence),
    known("keeps-first-image", Law::PathIndependence),
    known("keeps-pages", Law::PathIndependence),
    known("status-once", Law::PathIndependence),
    known("generation-in-data", Law::PathIndependence),
    known("keeps-size-silently", Law::PathIndependence).with("sized"),
    known("selector-follows-image", Law::PathIndependence),
    known("stays-paused", Law::Rollback),
    known("waits-until-ready", Law::Rollback).with("misused"),
    known("refuses-after-bad-spec", Law::Rollback).with("misused"),
    known("hides-refusal", Law::ImmutableFields),
    known("recreates-database", Law::ImmutableFields).with("sized"),
    known("recreates-files", Law::ImmutableFields).with("store"),
    known("drops-files-while-unready", Law::ImmutableFields).with("store"),
    known("keeps-first-image", Law::Upgrade).setting(Setting::UpgradeFromOldImage),
    known("new-selector", Law::Upgrade).setting(Setting::UpgradeFromCorrect),
    known("skips-initialized", Law::Upgrade).setting(Setting::UpgradeFromCorrect),
];

/// Bugs that show under faults.
pub(crate) const FAULTS: [KnownBug; 8] = [
    known("name-by-time", Law::Exploration).with("small"),
    known("settings-only-at-first", Law::Crash),
    known("name-by-time", Law::Crash),
    known("sets-up-once", Law::FailedWrites).with("small"),
    known("failure-sticks", Law::FailedWrites).with("small"),
    known("storms-after-failure", Law::FailedWrites).with("small"),
    known("counts-lost-pods", Law::Staleness).with("small"),
    known("deletes-claim-of-lost-pod", Law::Staleness).with("store"),
];

/// Bugs that others meet: other clients, other primaries, users who delete.
pub(crate) const OTHERS: [KnownBug; 17] = [
    known("adopts-drift", Law::DriftRepair),
    known("forgets-what-exists", Law::DriftRepair),
    known("creates-only", Law::DriftRepair),
    known("compares-hash", Law::DriftRepair),
    known("names-too-few-fields", Law::ReadFields).with("noted"),
    known("hands-over", Law::OneOwner),
    known("counts-others", Law::OneOwner),
    known("merges-into-foreign", Law::Scope),
    known("always-ready", Law::Scope),
    known("never-finalized", Law::Finalizing),
    known("finalized-if-ready", Law::Finalizing),
    known("finalized-if-initialized", Law::Finalizing),
    known("finalized-if-secret", Law::Finalizing).with("guarded").setting(Setting::NoSecret),
    known("finalized-if-applied", Law::Finalizing).setting(Setting::ServiceTaken),
    known("password-in-settings", Law::NoLeak).with("guarded").setting(Setting::SecretGranted),
    known("password-in-environment", Law::NoLeak).with("guarded").setting(Setting::SecretGranted),
    known("password-in-status", Law::NoLeak).with("guarded").setting(Setting::SecretGranted),
];

/// The bugs of these lists that direct evaluation finds: answers of the guest alone show them.
pub(crate) const IN_ANSWERS: [&str; 33] = [
    "trap-on-empty-image",
    "takes-first-page",
    "parses-image",
    "slices-image",
    "allocates-by-replicas",
    "loop-on-zero-replicas",
    "divide-by-replicas",
    "name-from-setting",
    "label-from-image",
    "one-replica-less",
    "duplicate-pages",
    "foreign-namespace",
    "undeclared-kind",
    "time-in-data",
    "time-in-status",
    "appends-to-status",
    "flaps-condition",
    "recreates-job",
    "count-runs",
    "alternate",
    "part-of-uid",
    "whole-uid",
    "unordered-list",
    "never-scales-down",
    "keeps-settings",
    "keeps-first-image",
    "keeps-pages",
    "generation-in-data",
    "keeps-size-silently",
    "stays-paused",
    "password-in-settings",
    "password-in-environment",
    "password-in-status",
];

/// Bugs that show only with a rare combination of six properties of the spec.
pub(crate) const RARE: [KnownBug; 4] = [
    known("trap-on-rare-shop", Law::Totality),
    known("label-of-rare-shop", Law::Totality),
    known("uid-in-rare-job", Law::Determinism),
    known("count-runs-of-rare-shop", Law::Fixpoint),
];

/// Bugs of the guest that do no harm: the host masks granted values of Secrets in messages, and
/// leaves an object to its first owner, which it reports.
pub(crate) const HARMLESS: [KnownBug; 3] = [
    known("shared-settings", Law::OneOwner),
    known("password-in-condition", Law::NoLeak).with("guarded").setting(Setting::SecretGranted),
    known("password-in-event", Law::NoLeak).with("guarded").setting(Setting::SecretGranted),
];
