//! The state of the one node's kubelet.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::state::pod_script::PodScript;
use crate::types::object_key::Key;

/// The state of the kubelet.
#[derive(Debug, Default)]
pub(crate) struct KubeletState {
    pub(crate) script: PodScript,
    /// The next step of a Pod by uid, and its time.
    pub(crate) next: BTreeMap<String, (Step, Timestamp)>,
    /// Recorded Events, which are counted when they happen again.
    pub(crate) recorded_events: BTreeMap<String, Key>,
    pub(crate) addresses: u32,
    /// What the autoscalers computed in the last minutes, by their uids.
    pub(crate) recommendations: BTreeMap<String, Vec<(Timestamp, i64)>>,
}

/// The next step of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Start,
    GetReady,
    End,
    Stop,
}
