//! The settings of a policy in the types of the admission server.

use innkeeper_admission::{FailurePolicy, Mode};
use innkeeper_modules::module::{self, PolicyMode};

/// Returns a mode of a Module as the mode of a webhook.
pub(super) fn admission_mode(mode: PolicyMode) -> Mode {
    match mode {
        PolicyMode::Enforce => Mode::Enforce,
        PolicyMode::Warn => Mode::Warn,
        PolicyMode::Audit => Mode::Audit,
    }
}

/// Returns a failure policy of a Module as the failure policy of a webhook.
pub(super) fn admission_failure_policy(policy: module::FailurePolicy) -> FailurePolicy {
    match policy {
        module::FailurePolicy::Fail => FailurePolicy::Fail,
        module::FailurePolicy::Ignore => FailurePolicy::Ignore,
    }
}
