//! What the kubelet of the one node knows of its Pods.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::state::pod_script::PodScript;
use crate::types::object_key::Key;

/// What the kubelet knows of its Pods.
#[derive(Debug, Default)]
pub(crate) struct KubeletState {
    pub(crate) script: PodScript,
    /// What happens next to the Pod of a uid, and when.
    pub(crate) next: BTreeMap<String, (Step, Timestamp)>,
    /// Recorded Events, which are counted when they happen again.
    pub(crate) recorded_events: BTreeMap<String, Key>,
    pub(crate) addresses: u32,
}

/// What happens next to a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Start,
    GetReady,
    End,
    Stop,
}
