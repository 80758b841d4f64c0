//! The namespace and the name of an object.

use std::fmt;
use std::sync::Arc;

/// The namespace and the name of an object. Keys order by namespace, then by name.
///
/// A clone only counts a reference, since an index of many objects holds many keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(
    /// The namespace, a NUL, and the name: a NUL is smaller than every character of a namespace, so
    /// the text orders as the pair does.
    Arc<str>,
);

impl ObjectKey {
    /// Makes the key of an object; `namespace` is empty for cluster-scoped objects.
    ///
    /// Kubernetes allows no NUL in a namespace; a NUL in `namespace` ends it.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self([namespace, "\0", name].concat().into())
    }

    /// The namespace; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.parts().0
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&str, &str) {
        self.0.split_once('\0').unwrap_or_default()
    }
}

impl Default for ObjectKey {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({self})")
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            ("", name) => f.write_str(name),
            (namespace, name) => write!(f, "{namespace}/{name}"),
        }
    }
}
