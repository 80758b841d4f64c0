//! What a policy sees of the cluster in one review: a snapshot of the caches of its account.

use std::borrow::Cow;
use std::sync::Arc;

use innkeeper_cluster::{CacheSnapshot, Env};
use innkeeper_contract::Kind;
use innkeeper_core::{Object, ObjectRef};
use innkeeper_sandbox::{Host, Level, ReadError, ResourceKind};
use jiff::Timestamp;

use super::active_policy::ActivePolicy;
use crate::cluster_reads::{self, ClusterReads};
use crate::watch::read_record::ReadRecord;

/// The cluster as one review sees it, and the reads of the review so far.
///
/// All values of Secrets are digests, also of those that the Module grants to its reconciles.
pub struct PolicyObservation<'a> {
    policy: &'a ActivePolicy,
    env: &'a Env,
    snapshot: Option<CacheSnapshot>,
    now: Timestamp,
    /// Which request it is, for the log.
    request: &'a str,
    reads: ReadRecord,
}

impl<'a> PolicyObservation<'a> {
    /// The observation of a request now; `request` names it in the log.
    pub fn new(policy: &'a ActivePolicy, env: &'a Env, request: &'a str) -> Self {
        Self {
            policy,
            env,
            snapshot: policy.view.as_ref().map(|view| view.snapshot()),
            now: env.now(),
            request,
            reads: ReadRecord::default(),
        }
    }

    /// Everything that the review has read.
    pub fn into_reads(self) -> ReadRecord {
        self.reads
    }
}

impl ClusterReads for PolicyObservation<'_> {
    fn snapshot(&self) -> Result<&CacheSnapshot, ReadError> {
        let closed = || ReadError::Forbidden("the policy has no open caches".to_owned());
        self.snapshot.as_ref().ok_or_else(closed)
    }

    fn declared(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.policy.kind_of(api_version, kind).cloned()
    }

    fn record(&mut self) -> &mut ReadRecord {
        &mut self.reads
    }

    fn found<'o>(&'o self, _: &Kind, object: &'o Object) -> Cow<'o, Object> {
        Cow::Borrowed(object)
    }

    fn listed<'o>(&'o self, _: &Kind, object: &'o Object) -> Cow<'o, Object> {
        Cow::Borrowed(object)
    }

    /// A policy that took the object for absent could allow what it has to deny.
    fn unknown(&mut self, object_ref: ObjectRef) -> ReadError {
        ReadError::Forbidden(format!("the host does not know {object_ref} now"))
    }
}

impl Host for PolicyObservation<'_> {
    fn get(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        name: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        cluster_reads::get(self, kind, (namespace, name), room)
    }

    fn list(
        &mut self,
        kind: &ResourceKind,
        namespace: &str,
        label_selector: &str,
        room: usize,
    ) -> Result<String, ReadError> {
        cluster_reads::list(self, kind, (namespace, label_selector), room)
    }

    fn now_ms(&mut self) -> u64 {
        u64::try_from(self.now.as_millisecond()).unwrap_or(0)
    }

    fn log(&mut self, level: Level, message: &str) {
        self.policy.log.write_review(self.env, &self.policy.module, self.request, (level, message));
    }
}
