//! Who decides about an admission request.

use std::time::Instant;

use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;

/// What the path of each webhook begins with. The module and the position of the webhook follow.
pub(crate) const PATH_PREFIX: &str = "/v1/policies/";

/// Which policy a request is for: what the path of the webhook names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The name of the Module.
    pub module: String,
    /// The position of the webhook in the configuration: 0 is the mode of the Module, and each
    /// further one an override for namespaces.
    pub webhook: usize,
}

impl Target {
    /// The path of the webhook.
    pub fn path(&self) -> String {
        format!("{PATH_PREFIX}{}/{}", self.module, self.webhook)
    }
}

/// Result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reviewed {
    /// The answer.
    Answer(AdmissionResponse),
    /// No policy of that name answers here. The `failurePolicy` of the webhook decides.
    UnknownPolicy,
    /// No time or room for the review, and why. The `failurePolicy` of the webhook decides.
    Overloaded(String),
    /// The policy cannot decide, and why, as the user of the request reads it. The `failurePolicy`
    /// of the webhook decides.
    Failed(String),
}

/// Decides about admission requests.
pub trait Reviewer: Send + Sync + 'static {
    /// Reviews a request and answers before `deadline`.
    fn review(
        &self,
        target: Target,
        request: AdmissionRequest<'_>,
        deadline: Instant,
    ) -> impl Future<Output = Reviewed> + Send;

    /// Whether all policies that should answer do so.
    fn is_ready(&self) -> bool;
}
