//! What happens to the host or to the cluster as a whole.
//!
//! An incident differs from a fault ([`innkeeper_faults::Fault`]): a fault affects single requests
//! and watches on their way, and the injector of the faults chooses it for each request. An
//! incident changes the host, its connection or the cluster itself, as a step of a scenario or at a
//! write, which waits until the incident is over.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that happens to the host or to the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Incident {
    /// The process of the host is paused: it neither reads nor writes, and its timers are late.
    Pause {
        /// How long.
        seconds: u32,
    },
    /// The host and the API server cannot reach each other.
    CutOff {
        /// How long.
        seconds: u32,
    },
    /// The leader is paused until its Lease has expired and another host leads. Then it goes on: it
    /// must not write any more. Hosts elect a leader in scenarios with this incident only.
    TakeOver {
        /// How long the other host leads before the paused one goes on.
        seconds: u32,
    },
    /// The wall clock of the host is set forward, or back if it is negative.
    SetClock {
        /// By how much.
        seconds: i64,
    },
    /// The Module gets another component: the earlier one of the subject, or without one a
    /// component of the same code with another digest.
    Swap {},
    /// The Module gets its component back.
    SwapBack {},
    /// Users create the primaries of another Module, whose guest is hostile.
    Neighbor {},
    /// From here on a webhook adds a label and an annotation to each object of the guest's kinds
    /// that is created or updated.
    Defaulting {},
    /// Somebody makes a backup of etcd.
    Backup {},
    /// Somebody restores the last backup of etcd. All API servers start again.
    Restore {
        /// Whether versions go on above those that clients have seen; if not, they go back.
        bump: bool,
    },
}

/// An incident in the middle of a reconcile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlannedIncident {
    /// The write of the host, counted from 1 and from the first step, that waits at the API server
    /// until the incident is over.
    pub write: u32,
    /// What happens.
    pub incident: Incident,
}

impl Incident {
    /// Whether the objects at the end are the same without it.
    pub fn is_disturbance(self) -> bool {
        !matches!(self, Self::Defaulting {} | Self::Backup {} | Self::Restore { .. })
    }
}

impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pause { seconds } => write!(f, "the host is paused for {seconds} s"),
            Self::CutOff { seconds } => {
                write!(f, "the host does not reach the API server for {seconds} s")
            }
            Self::TakeOver { seconds } => write!(
                f,
                "the leader is paused, another host takes over, and {seconds} s later the first one goes on"
            ),
            Self::SetClock { seconds } if *seconds < 0 => {
                write!(f, "the clock of the host is set back by {} s", seconds.unsigned_abs())
            }
            Self::SetClock { seconds } => {
                write!(f, "the clock of the host is set forward by {seconds} s")
            }
            Self::Swap {} => f.write_str("the Module gets another component"),
            Self::SwapBack {} => f.write_str("the Module gets its component back"),
            Self::Neighbor {} => f.write_str("a hostile guest gets primaries"),
            Self::Defaulting {} => {
                f.write_str("a webhook adds a label and an annotation to written objects")
            }
            Self::Backup {} => f.write_str("somebody makes a backup of etcd"),
            Self::Restore { bump: true } => {
                f.write_str("somebody restores the backup of etcd, with greater versions")
            }
            Self::Restore { bump: false } => {
                f.write_str("somebody restores the backup of etcd, and versions go back")
            }
        }
    }
}

impl fmt::Display for PlannedIncident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at write number {}: {}", self.write, self.incident)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use super::*;

    #[test]
    fn incident_prints_as_it_was_read() {
        for (text, line) in [
            (
                r#"{"write":3,"incident":{"pause":{"seconds":20}}}"#,
                "at write number 3: the host is paused for 20 s",
            ),
            (
                r#"{"write":1,"incident":{"setClock":{"seconds":-60}}}"#,
                "at write number 1: the clock of the host is set back by 60 s",
            ),
            (
                r#"{"write":2,"incident":{"restore":{"bump":true}}}"#,
                "at write number 2: somebody restores the backup of etcd, with greater versions",
            ),
        ] {
            let planned: PlannedIncident = serde_json::from_str(text).unwrap();
            assert_eq!(planned.to_string(), line);
            assert_eq!(serde_json::to_string(&planned).unwrap(), text);
        }
        assert!(serde_json::from_str::<PlannedIncident>(r#"{"write":1,"incident":{}}"#).is_err());
    }
}
