//! Old names of labels and annotations, which the host still reads and no longer writes.
//!
//! They stand on objects of users, which nobody writes again when the host is updated.

/// [`RETAINED_FOR_LABEL`](crate::ownership::RETAINED_FOR_LABEL), by its old name.
pub const KEPT_FOR_LABEL: &str = "innkeeper.dev/kept-for";

/// [`ALLOW_DELETION_ANNOTATION`](crate::plan::ALLOW_DELETION_ANNOTATION), by its old name.
pub const DELETABLE_ANNOTATION: &str = "innkeeper.dev/deletable";
