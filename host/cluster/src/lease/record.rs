//! The record of a Lease, and the time at which a candidate may acquire it.

use std::time::Duration;

use innkeeper_core::ObjectKey;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

/// The record of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The identity of the holder; `None` if it released the Lease.
    pub(super) holder: Option<String>,
    pub(super) duration: Duration,
    acquired: Option<Timestamp>,
    renewed: Option<Timestamp>,
    transitions: i32,
}

/// The record of a Lease at the time of its observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedRecord {
    pub(super) record: Record,
    /// The `resourceVersion` of the Lease.
    pub(super) version: String,
    /// When the candidate first observed this version, by [`crate::Env::uptime`].
    pub(super) at: Duration,
}

impl Record {
    /// The record by which `identity` acquires or renews the Lease.
    pub(super) fn taken(
        before: Option<&Self>,
        identity: &str,
        duration: Duration,
        now: Timestamp,
    ) -> Self {
        let mine = before.filter(|before| before.holder.as_deref() == Some(identity));
        let transitions = before.map_or(0, |before| before.transitions);
        Self {
            holder: Some(identity.to_owned()),
            duration,
            acquired: mine.and_then(|mine| mine.acquired).or(Some(now)),
            renewed: Some(now),
            transitions: match (before, mine) {
                (Some(_), None) => transitions.saturating_add(1),
                _ => transitions,
            },
        }
    }

    /// The record that releases the Lease.
    pub(super) fn released(&self, now: Timestamp) -> Self {
        Self { holder: None, renewed: Some(now), ..self.clone() }
    }

    /// The body of an apply that the server refuses if the Lease has another version (or exists,
    /// for `None`).
    pub(super) fn body(&self, key: &ObjectKey, version: Option<&str>) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| format!("{at:.6}"));
        let mut spec = json!({
            "leaseDurationSeconds": self.duration.as_secs().max(1),
            "leaseTransitions": self.transitions,
        });
        let members = [
            ("holderIdentity", self.holder.clone()),
            ("acquireTime", time(self.acquired)),
            ("renewTime", time(self.renewed)),
        ];
        for (name, value) in members {
            if let Some(value) = value {
                spec[name] = value.into();
            }
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": key.name(),
                "namespace": key.namespace(),
                "resourceVersion": version.unwrap_or("1"),
            },
            "spec": spec,
        })
    }
}

impl ObservedRecord {
    pub(super) fn of(lease: &Lease, at: Duration) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        Self {
            record: Record {
                holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
                duration: Duration::from_secs(seconds.unwrap_or_default()),
                acquired: spec.acquire_time.map(|time| time.0),
                renewed: spec.renew_time.map(|time| time.0),
                transitions: spec.lease_transitions.unwrap_or_default(),
            },
            version: lease.metadata.resource_version.clone().unwrap_or_default(),
            at,
        }
    }

    /// How long `identity` has to wait until it may acquire the Lease: not at all if the Lease has
    /// no holder, or if `identity` is the holder (a process that restarted under the same name).
    /// `duration` is for a Lease without one.
    pub(super) fn wait(&self, identity: &str, duration: Duration, now: Duration) -> Duration {
        match self.record.holder.as_deref() {
            None => Duration::ZERO,
            Some(holder) if holder == identity => Duration::ZERO,
            Some(_) => {
                let recorded = Some(self.record.duration).filter(|one| !one.is_zero());
                (self.at + recorded.unwrap_or(duration)).saturating_sub(now)
            }
        }
    }
}
