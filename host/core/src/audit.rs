//! The results of reviews of existing objects, as Reports and `ClusterReports` of `openreports.io`.
//!
//! - [`AuditResult`] and [`AuditCounts`]: the result of a review, and how many objects have which.
//! - [`AuditOutcome`]: the result of one review with its reason.
//! - [`Finding`]: an object that does not pass, and why.
//! - [`reports`]: the reports of one policy, split so that each fits into etcd and that an
//!   unchanged audit writes nothing.
//! - [`stored`]: a report as the API server has it.

mod counts;
mod finding;
mod outcome;
mod report;
mod report_time;
mod reports;
mod result;
pub mod stored;

pub use counts::AuditCounts;
pub use finding::{Finding, MESSAGE_BYTES_MAX};
pub use outcome::{AuditOutcome, FIELDS_MAX, named_fields};
pub use report::{
    CLUSTER_REPORT, DIGEST_ANNOTATION, MANAGED_BY_LABEL, REPORT, RESULTS_MAX, Report, ReportOwner,
    SOURCE, kind_in,
};
pub use report_time::ReportTime;
pub use reports::{FINDINGS_MAX, PARTS_MAX, REPORT_BYTES_MAX, REPORTS_MAX, reports};
pub use result::AuditResult;
