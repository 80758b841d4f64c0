//! What the status of a primary is made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_contract::{Condition, Event};
use innkeeper_core::plan::UpdateProgress;
use innkeeper_core::{LastRun, Object, ObjectRef};
use serde_json::{Map, Value};

use crate::modules::granted_secrets::GrantedSecrets;
use crate::reconcile::problem::Problems;
use crate::reconcile::stats::ObjectChange;
use crate::reconcile::update_condition::UpdateCondition;

/// What the rounds of a reconcile found. The last round counts, but for `adopted`, `changed` and
/// `events`, which are of all rounds.
#[derive(Debug, Default)]
pub struct StatusInput {
    /// The guest's status; `None` if the guest gave no answer.
    pub status: Option<Map<String, Value>>,
    /// The guest's conditions.
    pub conditions: Vec<Condition>,
    /// The guest's Events.
    pub events: Vec<Event>,
    /// Why the primary is not synced.
    pub problems: Problems,
    /// The writes that a pause holds back; `None` if the primary is not paused.
    pub paused: Option<Vec<String>>,
    /// The objects that the primary owns.
    pub owned: Vec<(ObjectRef, Arc<Object>)>,
    /// How far the updates of the update groups are.
    pub updates: Vec<UpdateProgress>,
    /// Optional kinds that the API server does not serve.
    pub unserved: Vec<String>,
    /// Objects that the primary adopted.
    pub adopted: Vec<ObjectRef>,
    /// Objects that were created, changed or deleted.
    pub changed: BTreeMap<ObjectRef, ObjectChange>,
    /// How many of the desired objects are as they are desired.
    pub up_to_date: usize,
    /// How many objects the run left as they are, neither in sync nor a failure.
    pub skipped: usize,
    /// The granted Secrets, whose values every text masks.
    pub granted: Arc<GrantedSecrets>,
}

impl StatusInput {
    /// The updates that are not done, if they are why the primary is not synced: a problem comes
    /// first.
    pub fn update_condition(&self) -> Option<UpdateCondition> {
        if self.problems.is_empty() { UpdateCondition::of(&self.updates) } else { None }
    }

    /// The figures of the reconcile for the status.
    pub fn last_run(&self) -> LastRun {
        LastRun {
            ok: self.up_to_date,
            changed: self.changed.len(),
            skipped: self.skipped,
            failures: self.problems.0.len(),
        }
    }
}
