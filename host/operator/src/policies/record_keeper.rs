//! Writes and deletes the policy record of one module.
//!
//! Each module has one task, which works towards the last goal only, sends one request at a time,
//! and repeats a step that fails.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_cluster::client::Propagation;
use innkeeper_cluster::{ApiClient, ApiError, Backoff};
use innkeeper_contract::Kind;
use innkeeper_core::host_objects::{HOST_NAMESPACE, policy_object_name};
use innkeeper_core::well_known::POLICY_LABEL;
use innkeeper_core::{Manager, Object, ObjectKey};
use serde_json::Value;
use tokio::sync::watch;

use super::record::{PolicyRecord, RecordError};
use super::webhook_kinds::{POLICY_KINDS, webhook_kind};
use crate::modules::event::CONFIG_MAP;

/// The first wait before something that failed is tried again, and the longest one.
const RETRY: (Duration, Duration) = (Duration::from_secs(2), Duration::from_mins(5));

/// How often a write is repeated because another writer has changed the record meanwhile.
const CONFLICTS_MAX: u32 = 3;

/// The objects of the policy of one module that the cluster has to have.
#[derive(Clone, Debug)]
pub enum Goal {
    /// This record.
    Record(Arc<PolicyRecord>),
    /// No webhook configuration, and then no record. In this order: a request for a policy that the
    /// replicas do not know fails, and `failurePolicy: Fail` denies it.
    Nothing,
}

/// Why a goal is not reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// The record cannot be written at all.
    #[error("{0}")]
    Record(#[from] RecordError),
    /// A request fails.
    #[error("{0}")]
    Api(#[from] ApiError),
}

/// Writes and deletes the policy record of one module.
pub struct RecordKeeper {
    host: ApiClient,
    namespace: String,
    module: String,
    /// The resource version of the record as this keeper last wrote or read it.
    version: Option<Box<str>>,
}

impl RecordKeeper {
    /// A keeper that sends as the host, in the namespace of the host.
    pub fn new(host: ApiClient, module: &str) -> Self {
        let namespace = host.host_namespace().unwrap_or(HOST_NAMESPACE).to_owned();
        Self { host, namespace, module: module.to_owned(), version: None }
    }

    /// Works towards the last goal until the sender is gone and the goal is reached. `report` gets
    /// each result.
    pub async fn keep(
        mut self,
        mut goal: watch::Receiver<Goal>,
        report: impl Fn(&Goal, Result<(), KeepError>),
    ) {
        let env = self.host.env().clone();
        let retry = || Backoff::new(&env, RETRY.0, RETRY.1);
        let mut backoff = retry();
        loop {
            let present = goal.borrow_and_update().clone();
            let result = self.reach(&present).await;
            let has_failed = result.is_err();
            report(&present, result);
            tokio::select! {
                biased;
                changed = goal.changed() => match changed {
                    Ok(()) => backoff = retry(),
                    Err(_) if !has_failed => return,
                    Err(_) => env.sleep(backoff.advance()).await,
                },
                () = env.sleep(backoff.advance()), if has_failed => {}
            }
        }
    }

    /// Tries once to reach a goal.
    ///
    /// # Errors
    /// If the record is too large, or a request fails.
    pub async fn reach(&mut self, goal: &Goal) -> Result<(), KeepError> {
        match goal {
            Goal::Record(record) => self.write(record).await,
            Goal::Nothing => Ok(self.withdraw().await?),
        }
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.namespace, &policy_object_name(&self.module))
    }

    async fn write(&mut self, record: &PolicyRecord) -> Result<(), KeepError> {
        let body = record.config_map(&self.namespace)?;
        let mut conflicts = 0;
        loop {
            let written = match self.version.take() {
                Some(version) => self.update(&body, &version).await,
                None => self.create(record, &body).await,
            };
            match written {
                Ok(true) => return Ok(()),
                // There is another record: the next turn writes over its version.
                Ok(false) => {}
                Err(
                    error @ (ApiError::Conflict { .. }
                    | ApiError::NotFound { .. }
                    | ApiError::ObjectDeleted { .. }),
                ) => {
                    conflicts += 1;
                    if conflicts > CONFLICTS_MAX {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Creates the record. False if another one exists, whose version is known then.
    async fn create(&mut self, record: &PolicyRecord, body: &Value) -> Result<bool, ApiError> {
        match self.host.create(&CONFIG_MAP, &self.namespace, body).await {
            Ok(()) => return Ok(true),
            Err(ApiError::AlreadyExists { .. }) => {}
            Err(error) => return Err(error),
        }
        let found = self.host.get(&CONFIG_MAP, &self.key()).await?;
        let is_same = PolicyRecord::read(&found).is_ok_and(|found| found == *record);
        self.version = Some(found.resource_version);
        Ok(is_same)
    }

    /// Writes over the record of this version.
    async fn update(&mut self, body: &Value, version: &str) -> Result<bool, ApiError> {
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = version.into();
        let written =
            self.host.merge_patch(&CONFIG_MAP, &self.key(), &Manager::Host, &body).await?;
        self.version = Some(written.resource_version);
        Ok(true)
    }

    async fn withdraw(&mut self) -> Result<(), ApiError> {
        self.version = None;
        let webhooks = ObjectKey::new("", &policy_object_name(&self.module));
        for kind in POLICY_KINDS {
            self.delete(webhook_kind(kind), &webhooks).await?;
        }
        self.delete(&CONFIG_MAP, &self.key()).await
    }

    /// Whether the host has made an object for the policy of the module: it has the label of the
    /// module, or is a record of the module that has lost it.
    fn has_made(&self, object: &Object) -> bool {
        let is_unlabelled_record = || {
            let error = PolicyRecord::read(object).err();
            matches!(error, Some(RecordError::ForeignName { module }) if module == self.module)
        };
        object.labels.get(POLICY_LABEL) == Some(&*self.module) || is_unlabelled_record()
    }

    /// Deletes an object that the host has made for the policy of the module, if it exists.
    async fn delete(&self, kind: &Kind, key: &ObjectKey) -> Result<(), ApiError> {
        let found = match self.host.get(kind, key).await {
            Ok(found) => found,
            Err(ApiError::NotFound { .. } | ApiError::NamespaceNotFound { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if !self.has_made(&found) {
            return Ok(());
        }
        match self.host.delete(kind, key, &found.uid, Propagation::Background).await {
            // Another object has the name now: it does not belong to this policy.
            Ok(_) | Err(ApiError::UidMismatch { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
