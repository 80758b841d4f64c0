//! Well-known labels and annotations: those of `innkeeper.dev` that the host reads and writes.
//!
//! Modules that give one of these a meaning re-export it.

/// The annotation by which a user lets a primary adopt objects that have no controller.
pub const ADOPT_ANNOTATION: &str = "innkeeper.dev/adopt";

/// The annotation on a primary that stops writing for it.
pub const PAUSED_ANNOTATION: &str = "innkeeper.dev/paused";

/// The annotation that sets the resync period of one primary, for example `30s`; `0s` turns the
/// resync off.
pub const RESYNC_ANNOTATION: &str = "innkeeper.dev/resync-period";

/// The annotation that permits to delete an object whose kind holds data.
pub const ALLOW_DELETION_ANNOTATION: &str = "innkeeper.dev/allow-deletion";

/// The annotation that holds the digest of an object as the host last applied it.
pub const APPLIED_ANNOTATION: &str = "innkeeper.dev/applied";

/// The annotation on a Secret into which the host copies values: a JSON list of the keys. A guest
/// sees no digests of these values.
pub const COPIED_KEYS_ANNOTATION: &str = "innkeeper.dev/copied-keys";

/// The annotation on a `ControllerRevision` of a primary that holds the keyed digest of its content
/// and API version, by which the host knows that it wrote both itself.
pub const REVISION_DIGEST_ANNOTATION: &str = "innkeeper.dev/revision-digest";

/// The annotation on a `ControllerRevision` of a primary that holds the paths of the stored fields,
/// joined by commas. A path without a value in `data` is a field that the primary did not have.
pub const REVISION_FIELD_PATHS_ANNOTATION: &str = "innkeeper.dev/revision-field-paths";

/// The annotation on a `ControllerRevision` of a primary that holds the API version of the primary
/// in which the stored fields are. Without it they are in the present version.
pub const REVISION_API_VERSION_ANNOTATION: &str = "innkeeper.dev/revision-api-version";

/// The label of an object that outlives its primary: its value is the primary's
/// [`identity`](crate::ownership::PrimaryOwner::identity), so that only a primary of the same kind,
/// namespace and name adopts the object again.
pub const RETAINED_FOR_LABEL: &str = "innkeeper.dev/retained-for";

/// The label of what the host makes for the policy of a Module: the name of the Module. See
/// [`POLICY_PREFIX`](crate::host_objects::POLICY_PREFIX).
pub const POLICY_LABEL: &str = "innkeeper.dev/policy";

/// The annotation on a Module by which a user switches its policy off while it is there: the host
/// deletes the webhook configuration. Its value is the reason.
pub const BREAK_GLASS_ANNOTATION: &str = "innkeeper.dev/break-glass";
