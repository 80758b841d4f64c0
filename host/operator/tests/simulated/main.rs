//! The operator on the simulator, in virtual time: what a user sees of it is objects, conditions,
//! Events, metrics and the requests that it sends.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::panic, reason = "a test may fail by it")]

mod active_policies;
mod apply;
mod cached_fields;
mod conflicts;
mod drift;
mod earlier_documents;
mod finalizer;
mod held;
mod overlap;
mod owner_version;
mod policies;
mod policy_audit;
mod policy_certificates;
mod policy_follower;
mod policy_follower_inputs;
mod policy_leader;
mod policy_leader_inputs;
mod policy_only;
mod policy_preview;
mod policy_records;
mod policy_reviews;
mod policy_rollback;
mod policy_settings;
mod preview;
mod preview_runs;
mod read_fields;
mod reconcile;
mod recreate;
mod refused;
mod replica_reports;
mod restart;
mod review_cost;
mod revision_history;
mod revision_versions;
mod rollback;
mod run_result;
mod schedule;
mod selection;
mod support;
mod teardown;
mod update_chaos;
mod update_faults;
mod updates;
mod value_sources;
mod webhook_conditions;
