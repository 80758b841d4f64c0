//! Admission: what the API server asks before it stores an object, and how the host answers.
//!
//! The API server sends an [`AdmissionRequest`] over HTTPS. A [`Reviewer`] decides, and the server
//! sends its [`AdmissionResponse`]. This crate knows neither the sandbox nor a client of the API
//! server, so that its parts are tested without both.
//!
//! Source of the formats: `admission.k8s.io/v1` of Kubernetes 1.35.

pub mod admission_response;
pub mod admission_review;
pub mod certificates;
pub mod mode;
pub mod patch;
pub mod reviewer;
pub mod server;
pub mod webhook_configuration;

pub use admission_response::{AdmissionResponse, Cause, Denial};
pub use admission_review::{AdmissionRequest, ReviewError};
pub use mode::{FailurePolicy, Mode};
pub use reviewer::{Reviewed, Reviewer, WebhookRef};
pub use server::{
    AdmissionServer, InProcessAnswer, ServerLimits, ServerStatistics, TlsCertificate,
    answer_in_process,
};
pub use webhook_configuration::PolicyWebhooks;
