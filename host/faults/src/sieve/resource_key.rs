//! How a plan names an object: `KIND/NAMESPACE/NAME`, with the kind in lower case.

use std::fmt;

/// The maximum length of a key in bytes.
const BYTES_MAX: usize = 512;

/// The name of an object, or of several by a name that ends with `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey {
    /// The kind in lower case, such as `statefulset`.
    pub kind: String,
    /// The namespace; empty for a cluster-scoped kind.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ResourceKey {
    /// A key of an object.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        let [kind, namespace, name] = [kind.to_lowercase(), namespace.into(), name.into()];
        Self { kind, namespace, name }
    }

    /// Reads a key.
    ///
    /// # Errors
    /// If the text is too long or has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("a key has at most {BYTES_MAX} bytes"));
        }
        let is_part = |part: &str| {
            let is_allowed =
                |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':' | '*');
            part.chars().all(is_allowed)
        };
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [kind, namespace, name]
                if !kind.is_empty() && !name.is_empty() && text.split('/').all(is_part) =>
            {
                Ok(Self::new(kind, namespace, name))
            }
            _ => Err(format!("`{text}` is no key of an object; write KIND/NAMESPACE/NAME")),
        }
    }

    /// Whether this key names the object of another key.
    pub fn names(&self, object: &Self) -> bool {
        let is_name = match self.name.strip_suffix('*') {
            Some(prefix) => object.name.starts_with(prefix),
            None => self.name == object.name,
        };
        is_name && self.kind == object.kind && self.namespace == object.namespace
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use super::*;

    #[test]
    fn key_names_its_object_and_a_star_names_all_with_the_prefix() {
        let key = ResourceKey::parse("pod/default/web-0").unwrap();
        assert!(key.names(&ResourceKey::new("Pod", "default", "web-0")));
        assert!(!key.names(&ResourceKey::new("Pod", "default", "web-1")));
        assert!(!key.names(&ResourceKey::new("Pod", "other", "web-0")));
        assert!(!key.names(&ResourceKey::new("Service", "default", "web-0")));
        let several = ResourceKey::parse("pod/default/web-*").unwrap();
        assert!(several.names(&ResourceKey::new("Pod", "default", "web-1")));
        assert!(!several.names(&ResourceKey::new("Pod", "default", "db-1")));
    }

    #[test]
    fn text_of_another_form_is_refused() {
        for text in ["", "pod", "pod/a", "/a/b", "pod/a/", "pod/a/b/c", "pod/a/b c", "pod/a/\n"] {
            assert!(ResourceKey::parse(text).is_err(), "{text:?}");
        }
        assert!(ResourceKey::parse(&format!("pod/a/{}", "x".repeat(600))).is_err());
    }
}
