//! Kubernetes' own specs of its API machinery, against the simulator and against a real control
//! plane without nodes.
//!
//! `program/main.go` is the specs, unchanged, as one program. `specs.yaml` says of each spec
//! whether it passes on the simulator, differs there, or is skipped because even a real control
//! plane fails it without a node. `control.json` has the results of the real control plane.

mod compare;
mod control;
mod files;
mod list;
mod program;
mod report;
mod run;
mod schedule;
mod share;
mod side;

pub use compare::{Deviation, compare};
pub use control::Control;
pub use list::{Entry, List, Reason, Verdict};
pub use program::Program;
pub use report::{Outcome, Spec, SpecResult};
pub use run::{Options, Report, check_list, run};
pub use share::Share;
