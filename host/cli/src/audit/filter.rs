//! Which results are shown.

/// Which results are shown; `None` for all.
#[derive(Clone, Copy)]
pub(super) struct Filter<'a> {
    /// Those of the policy of this Module.
    pub(super) module: Option<&'a str>,
    /// Those about objects in this namespace.
    pub(super) namespace: Option<&'a str>,
}
