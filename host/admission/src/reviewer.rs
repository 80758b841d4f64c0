//! The interface between the server and the policies: [`Reviewer`].

use std::time::Instant;

use crate::admission_response::AdmissionResponse;
use crate::admission_review::AdmissionRequest;

/// The beginning of the path of each webhook. The name of the Module and the index of the webhook
/// follow.
pub(crate) const PATH_PREFIX: &str = "/v1/policies/";

/// A webhook of a policy, as the path of a request names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookRef {
    /// The name of the Module.
    pub module: String,
    /// The index of the webhook in its configuration: 0 has the mode of the Module, and each
    /// further one that of an override for namespaces.
    pub index: usize,
}

impl WebhookRef {
    /// The path of the webhook.
    pub fn path(&self) -> String {
        format!("{PATH_PREFIX}{}/{}", self.module, self.index)
    }
}

/// The result of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reviewed {
    /// The policy decided.
    Answer(AdmissionResponse),
    /// This replica has no policy of that name. `failurePolicy` decides.
    UnknownPolicy,
    /// There was no time or memory for the review; the text says why. `failurePolicy` decides.
    Overloaded(String),
    /// The review gave no verdict; the text says why to the user of the request. `failurePolicy`
    /// decides.
    Failed(String),
}

/// Decides about admission requests.
pub trait Reviewer: Send + Sync + 'static {
    /// Reviews a request and answers before `deadline`.
    fn review(
        &self,
        webhook: WebhookRef,
        request: AdmissionRequest<'_>,
        deadline: Instant,
    ) -> impl Future<Output = Reviewed> + Send;
}
