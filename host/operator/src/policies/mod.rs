//! Policies: guests that review admission requests.
//!
//! The leader decides which revision of a policy is active, as for every module, and each replica
//! of the host reviews with it:
//!
//! - [`record`]: the decision, as a ConfigMap in the namespace of the host. It outlives the leader,
//!   so a restart decides nothing again.
//!   [`policy_settings`] and [`recorded_limits`] are parts of it.
//! - [`record_keeper`]: writes and deletes the record of one module.
//! - [`active_policy`]: one revision with its caches, and [`active_policies`]: those of a replica,
//!   by module.
//! - [`follower`]: each replica follows the records, woken by `follower_events`.
//!   `followed_policy` is what it has of one module, and [`load`] gets from a record to a policy.
//! - [`replica_report`]: what a replica of this [`replica_name`] reviews with, as the leader reads
//!   it, with the [`review_counts`] of its policies. `replica_reporter` writes it.
//! - [`replica`]: what lives as long as the process, through all terms of leadership.
//! - [`handover`]: how a decided policy reaches the replicas.
//! - [`reviewer`]: the review of a request. [`policy_observation`] is what the guest reads
//!   meanwhile, [`decision`] the checked verdict with its change and its [`decision_kind`],
//!   [`response`] the response in a mode, [`review_failure`] why there is no decision.
//!   [`review_counts`] counts the reviews of one policy. [`review_call`] is the call itself, the
//!   same for all reviews.
//! - [`recent_requests`]: the last requests, each a [`kept_request`], for the preview of a policy.
//! - [`background_review`]: the review of one existing object; [`existing_objects`] gives those
//!   that a policy reviews, of the [`matched_kinds`] of its rules within its [`review_scope`].
//!
//! - [`audit`]: the leader reviews existing objects, and reports the results. `cache_observers`
//!   tells it what changes in the caches of the policies.
//!
//! So that the API server sends the replicas requests:
//!
//! - [`leader`]: the rounds of the leader, woken by `leader_events`. Each compares the objects in
//!   the cluster (`leader_snapshot`) with those that the records ask for (`decided_webhooks`), and
//!   writes the difference: `certificate_keeper` the certificates, `configurations` the webhook
//!   configurations, of the kinds in `webhook_kinds`. `coverage` says which policies all live
//!   replicas have, and `replica_sweep` deletes the reports of replicas that are gone.
//! - [`admission_settings`]: how the API server reaches the replicas. `admission_mode` gives the
//!   settings of a Module in the types of the admission server.
//! - [`policy_state`]: what the leader knows of each policy.
//! - [`certificate_store`] is the Secret with the certificates, and [`certificate_reader`] reads it
//!   on each replica.

pub mod active_policies;
pub mod active_policy;
mod admission_mode;
pub mod admission_settings;
pub mod audit;
pub mod background_review;
mod cache_observers;
mod certificate_keeper;
pub mod certificate_reader;
pub mod certificate_store;
mod configurations;
mod coverage;
mod decided_webhooks;
pub mod decision;
pub mod decision_kind;
pub mod existing_objects;
mod followed_policy;
pub mod follower;
mod follower_events;
pub mod handover;
pub mod kept_request;
pub mod leader;
mod leader_events;
mod leader_snapshot;
pub mod load;
pub mod matched_kinds;
mod metrics;
pub mod policy_observation;
pub mod policy_settings;
pub mod policy_state;
pub mod recent_requests;
pub mod record;
pub mod record_keeper;
pub mod recorded_limits;
pub mod replica;
pub mod replica_name;
pub mod replica_report;
mod replica_reporter;
mod replica_sweep;
pub mod response;
pub mod review_call;
pub mod review_counts;
pub mod review_failure;
mod review_metrics;
pub mod review_scope;
pub mod reviewer;
mod webhook_kinds;

pub use active_policies::{ActivePolicies, Entry};
pub use active_policy::ActivePolicy;
pub use admission_settings::{AdmissionEndpoint, AdmissionSettings};
pub use audit::{AuditState, PolicyAudit};
pub use certificate_reader::{ShownCertificate, read_certificates};
pub use follower::PolicyFollower;
pub use handover::Handover;
pub use leader::PolicyLeader;
pub use policy_settings::PolicySettings;
pub use policy_state::{PolicyProblem, PolicyState, PolicyStates};
pub use record::{PolicyRecord, RecordError};
pub use recorded_limits::RecordedLimits;
pub use replica::ReplicaPolicies;
pub use replica_name::ReplicaName;
pub use replica_report::{Replica, ReplicaReport, live_replicas};
pub use review_counts::ReviewCounts;
pub use reviewer::PolicyReviewer;
