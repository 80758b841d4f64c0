//! Laws of guests: checks a guest with the real host on a simulated cluster under faults.
//!
//! A [`Scenario`] is what users do to the primaries of a guest, and a plan of faults. The crate
//! plays it: the operator runs with the guest's component on the simulator, in virtual time, and
//! [`innkeeper_faults`] injects the faults into its requests. A [`Law`] plays scenarios with and
//! without faults and compares the results; [`check`] reports for each law how many cases hold, and
//! for one that does not the smallest scenario that shows it.
//!
//! # Guarantees
//! The same component, samples and seed give the same results.

mod cases;
mod check;
mod cluster_state;
mod fault_lists;
mod law;
mod oracle;
mod outcome;
mod player;
mod random_cases;
mod scenario;
mod shrink;
mod subject;
mod trace;
mod variants;

pub use check::{Budget, CheckReport, LawResult, check};
pub use cluster_state::{ClusterState, Difference};
pub use law::{Case, Expectation, Judgement, Law, Violation};
pub use outcome::Outcome;
pub use player::{PlayError, Player};
pub use scenario::{Scenario, Step};
pub use subject::Subject;
pub use trace::Trace;
pub use variants::{Coverage, smallest_sample};
