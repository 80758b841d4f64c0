//! The refusal of a request: [`Refusal`].

use std::time::Duration;

use http::StatusCode;

use crate::admission_review::ReviewError;
use crate::reviewer::WebhookRef;

/// The longest part of a request that a refusal repeats, in characters.
const REPEATED_MAX: usize = 64;

/// Why a request gets no verdict. The text is the body of the response.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no policy has this path; send to /v1/policies/<module>/<index>")]
    Path,
    #[error("the method is not POST; send an AdmissionReview by POST")]
    Method,
    #[error("Content-Type is {0:?}; send application/json")]
    ContentType(String),
    #[error("Content-Encoding is {0:?}; send the body as it is")]
    ContentEncoding(String),
    #[error("timeout of the query is {0:?}; send a duration, for example timeout=10s")]
    Timeout(String),
    #[error("the body has more than {0} bytes; send a smaller AdmissionReview")]
    BodyTooLarge(usize),
    #[error("the body did not arrive within {0:?}; send it faster")]
    BodyTooSlow(Duration),
    #[error("cannot read the body: {0}; send it with its length or in chunks")]
    BodyUnreadable(hyper::Error),
    #[error("the bodies of running requests fill the memory for bodies; send the request later")]
    BodiesFull,
    #[error(transparent)]
    Review(#[from] ReviewError),
    #[error(
        "no policy of Module {:?} with index {} answers on this replica; \
         see the conditions of the Module",
        .0.module,
        .0.index
    )]
    UnknownPolicy(WebhookRef),
    #[error("{0}")]
    Overloaded(String),
    #[error("{0}")]
    ReviewFailed(String),
    #[error("the review did not end within {0:?}; see the log and metrics of the Module")]
    DeadlineExceeded(Duration),
}

impl Refusal {
    pub(super) fn content_type(text: &str) -> Self {
        Self::ContentType(short(text))
    }

    pub(super) fn content_encoding(text: &str) -> Self {
        Self::ContentEncoding(short(text))
    }

    pub(super) fn timeout(text: &str) -> Self {
        Self::Timeout(short(text))
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Path | Self::UnknownPolicy(_) => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType(_) | Self::ContentEncoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Timeout(_) | Self::BodyUnreadable(_) | Self::Review(_) => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyTooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::BodiesFull | Self::Overloaded(_) | Self::DeadlineExceeded(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::ReviewFailed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The reason for metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Method => "method",
            Self::ContentType(_) | Self::ContentEncoding(_) => "content_type",
            Self::Timeout(_) | Self::BodyUnreadable(_) | Self::Review(_) => "invalid",
            Self::BodyTooLarge(_) => "body_too_large",
            Self::BodyTooSlow(_) => "body_too_slow",
            Self::BodiesFull => "bodies_full",
            Self::UnknownPolicy(_) => "unknown_policy",
            Self::Overloaded(_) => "overloaded",
            Self::ReviewFailed(_) => "review_failed",
            Self::DeadlineExceeded(_) => "deadline_exceeded",
        }
    }
}

fn short(text: &str) -> String {
    text.chars().take(REPEATED_MAX).collect()
}
