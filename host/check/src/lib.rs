//! Laws of guests: checks a guest with the real host on a simulated cluster under faults.
//!
//! A [`Scenario`] is what users do to the primaries of a guest, and a plan of faults. The crate
//! runs it: the operator runs with the guest's component on the simulator, in virtual time, and
//! [`innkeeper_faults`] injects the faults into its requests. A [`Law`] runs scenarios with and
//! without faults and compares the results; [`check`] reports for each law how many cases hold, and
//! for one that does not the smallest scenario that shows it.
//!
//! Before the scenarios, [`check`] judges some laws for many primaries by calls of the guest alone.
//!
//! # Guarantees
//! The same component, samples and seed give the same results.

mod budget;
mod case_document;
mod case_generator;
mod check;
mod cluster_state;
mod copied_uids;
mod direct;
mod explore;
mod facts;
mod fault_cases;
mod fault_lists;
mod findings;
mod incident;
mod incident_cases;
mod law;
mod normalization;
mod oracle;
mod other_client_cases;
mod outcome;
mod path_cases;
mod primary_generator;
mod random_cases;
mod replay;
mod request_counts;
mod run_error;
mod runner;
mod scenario;
mod shrink;
mod subject;
mod trace;
mod variants;

pub use budget::Budget;
pub use case_document::{CASE_BYTES_MAX, ReadCaseError};
pub use check::{CheckReport, LawResult, Progress, check};
pub use cluster_state::{ClusterState, Difference};
pub use direct::DirectFigures;
pub use incident::{Incident, PlannedIncident};
pub use law::{Case, Expectation, Judgement, Law, Violation};
pub use outcome::Outcome;
pub use replay::{Replay, replay};
pub use run_error::RunError;
pub use runner::{HostileModule, ScenarioRunner};
pub use scenario::{Scenario, Step};
pub use subject::Subject;
pub use trace::{Trace, TracedWrite};
pub use variants::{Coverage, smallest_sample};
