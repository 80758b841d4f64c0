crate::kind!(
    /// The kind in which the host stores a [`RevisionHistory`](crate::RevisionHistory). A guest
    /// owns it and desires none.
    pub ControllerRevision, "apps/v1", "controllerrevisions"
);
