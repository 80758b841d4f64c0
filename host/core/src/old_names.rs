//! Old names of labels and annotations, which the host still reads and no longer writes.
//!
//! They are on objects of users, which an update of the host does not rewrite.

/// [`RETAINED_FOR_LABEL`](crate::well_known::RETAINED_FOR_LABEL), by its old name.
pub const KEPT_FOR_LABEL: &str = "innkeeper.dev/kept-for";

/// [`ALLOW_DELETION_ANNOTATION`](crate::well_known::ALLOW_DELETION_ANNOTATION), by its old name.
pub const DELETABLE_ANNOTATION: &str = "innkeeper.dev/deletable";
