//! What nearly every guest imports.
//!
//! ```
//! use innkeeper_sdk::prelude::*;
//!
//! let metadata = Metadata::named("web");
//! assert!(metadata.labels.is_empty());
//! ```

pub use crate::{
    Apply, Context, CustomResource, Describe, Desired, Labels, Manifest, Metadata, Observed,
    Outcome, Owned, Policy, Primary, Raw, ReadError, Reconciler, RequestRule, Resource, Review,
    Reviewer, Verdict, kind, labels,
};
