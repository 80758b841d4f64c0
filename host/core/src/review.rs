//! The review of a request by a policy, except for the call of the guest: the document that the
//! policy gets, the checks of its verdict, and the changes that it may make.
//!
//! - [`input`]: a request, borrowed from its receiver.
//! - [`exclusion`]: the requests that no policy reviews.
//! - [`shown`]: an object as a policy sees it; [`document`](mod@document): the request with its
//!   objects.
//! - [`texts`]: a verdict with bounded, visible texts.
//! - [`guard`]: the changes that a policy may make.

pub mod document;
pub mod exclusion;
pub mod guard;
pub mod input;
mod invalid_verdict;
pub mod shown;
pub mod texts;

pub use document::{DocumentError, ReviewDocument, document};
pub use exclusion::is_excluded;
pub use guard::{ChangeContext, check_change};
pub use input::{Gvk, Gvr, ReviewInput};
pub use invalid_verdict::InvalidVerdict;
pub use shown::shown;
pub use texts::{CheckedDenial, CheckedVerdict, check};
