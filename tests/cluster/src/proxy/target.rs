//! What a request is about, from its path.

/// The object or the collection that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, as in `v1`.
    pub version: String,
    /// Namespace; empty without.
    pub namespace: String,
    /// Plural of the kind, as in `deployments`; empty for other paths (/readyz, discovery).
    pub resource: String,
    /// Name; empty for a collection.
    pub name: String,
    /// As in `status`; empty without.
    pub subresource: String,
}

impl Target {
    /// Reads a path without its query, as in `/apis/apps/v1/namespaces/a/deployments/b`.
    pub(super) fn parse(path: &str) -> Self {
        let mut words = path.split('/').filter(|word| !word.is_empty());
        let group = match words.next() {
            Some("api") => "",
            Some("apis") => words.next().unwrap_or_default(),
            _ => return Self::default(),
        };
        let Some(version) = words.next() else { return Self::default() };
        let rest: Vec<&str> = words.collect();
        let (namespace, rest) = match rest.as_slice() {
            // Else the namespace itself is meant, or one of its two subresources.
            ["namespaces", namespace, resource, ..]
                if !matches!(*resource, "status" | "finalize") =>
            {
                (*namespace, &rest[2..])
            }
            _ => ("", &rest[..]),
        };
        let word = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            resource: word(0),
            name: word(1),
            subresource: word(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &str) -> [String; 6] {
        let t = Target::parse(path);
        [t.group, t.version, t.namespace, t.resource, t.name, t.subresource]
    }

    #[test]
    fn path_of_a_request_is_split_into_its_words() {
        let cases: [(&str, [&str; 6]); 9] = [
            ("/api/v1/pods", ["", "v1", "", "pods", "", ""]),
            ("/api/v1/namespaces/a/pods/b/log", ["", "v1", "a", "pods", "b", "log"]),
            ("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]),
            ("/apis/apps/v1/namespaces/a/deployments", ["apps", "v1", "a", "deployments", "", ""]),
            (
                "/apis/innkeeper.dev/v1alpha1/modules/m/status",
                ["innkeeper.dev", "v1alpha1", "", "modules", "m", "status"],
            ),
            ("/readyz", [""; 6]),
            ("/apis", [""; 6]),
        ];
        for (path, expected) in cases {
            assert_eq!(words(path), expected, "{path}");
        }
    }
}
