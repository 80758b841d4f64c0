//! A cluster as an evaluation sees it.

use std::collections::BTreeSet;
use std::sync::Arc;

use innkeeper_contract::Unapplied;
use innkeeper_core::{Object, ObjectRef, plan};
use innkeeper_sandbox::{CallError, Host, Outcome};

/// Objects that the host made for one primary, or merged into, in order.
pub type OwnedObjects = Vec<(ObjectRef, Arc<Object>)>;

/// A cluster at one moment, as the guest and the planner see it for one primary.
pub trait ClusterView: Host {
    /// The objects that the primary owns or is merged into.
    fn owned(&mut self) -> OwnedObjects;

    /// The `observed` document for the guest, with this text of the primary.
    ///
    /// # Errors
    /// [`CallError::ObservedTooLarge`] if it would have more than `bytes_max` bytes.
    fn document(
        &self,
        primary: &Object,
        owned: &[(ObjectRef, Arc<Object>)],
        unapplied: &[Unapplied],
        bytes_max: usize,
    ) -> Result<String, CallError>;

    /// The object of this name.
    fn lookup(&mut self, object_ref: &ObjectRef) -> plan::Lookup;

    /// Whether every kind that the guest declares could be read: only then is an object that is
    /// absent from the view absent from the cluster.
    fn is_readable(&self) -> bool;

    /// The objects that the guest has read and of which the view does not know whether they exist.
    fn take_unknown(&mut self) -> BTreeSet<ObjectRef> {
        BTreeSet::new()
    }

    /// Takes one line that the guest logs for an earlier revision of the primary.
    fn log_earlier(&mut self, revision: &str, message: &str);

    /// Masks the bytes of granted Secrets in the texts of an outcome.
    fn mask(&self, _outcome: &mut Outcome) {}
}
