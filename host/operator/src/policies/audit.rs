//! The audit: the leader reviews existing objects with the active policies, and reviews an object
//! again when it changes or when something changes that its last review read.
//!
//! - [`auditor`]: the loop of the leader. [`opening`] opens the caches with the existing objects,
//!   [`review_turn`] is one review, and [`reporting`] reports the results when they are due.
//! - [`object_results`]: the results of one policy by [`audited_object`], and the objects that wait
//!   for a review. [`pace`] says when the next review may run.
//! - [`audit_events`]: the changes that trigger another review of an object.
//! - [`report_writer`]: the results as Reports and `ClusterReports`, which [`audit_state`] shows in
//!   the status of the Module, and [`audit_metrics`] count.
//!
//! # Bounds
//! - One review runs at a time, with a permit of reconciles, and not while live reviews hold all of
//!   theirs. [`pace`] bounds the reviews in number and in time.
//! - An object that passes takes an entry of two hashes and a result. The texts of those that do
//!   not pass are kept for [`FINDINGS_MAX`](innkeeper_core::audit::FINDINGS_MAX) objects of a
//!   policy, and a policy has at most [`OBJECTS_MAX`] objects.
//! - The records of reads are bounded as those of reconciles, in [`READS_BYTES_MAX`] bytes for each
//!   policy.

mod audit_events;
pub(super) mod audit_metrics;
pub mod audit_state;
mod audited_object;
mod auditor;
mod object_results;
mod opening;
mod pace;
mod report_writer;
mod reporting;
mod review_turn;

pub use audit_state::AuditState;
pub use auditor::{PolicyAudit, PublishAudit};
pub use object_results::OBJECTS_MAX;
pub use review_turn::READS_BYTES_MAX;
