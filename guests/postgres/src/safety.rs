/// What the leaving of one volume would lose, by the state of the other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Safety {
    /// Why a new pod without this volume would have no rows; `None` if the other volume has them.
    pub(crate) danger: Option<Danger>,
    /// What to wait for before the volume is left.
    pub(crate) wait: Option<String>,
    /// Whether pods may exist that have rows.
    pub(crate) has_pods: bool,
}

/// Why the content of a volume, or the pod, may be the only copy of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Danger {
    /// The cause.
    pub(crate) why: String,
    /// What to do before the volume is left.
    pub(crate) first: String,
}

impl Safety {
    /// Returns why a pod may have the only copy of the rows.
    pub(crate) fn last_copy(&self) -> Option<&Danger> {
        self.danger.as_ref().filter(|_| self.has_pods)
    }
}
