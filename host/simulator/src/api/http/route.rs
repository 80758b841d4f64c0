//! Parses the path of a request.

/// The resource and the object that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    /// Empty for all namespaces, and for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// The plural.
    pub(crate) resource: String,
    /// Empty for a collection.
    pub(crate) name: String,
    pub(crate) subresource: String,
}

/// The parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Objects.
    Resource(Target),
    /// The resources of a group: group and version.
    Resources(String, String),
    /// A group: its name.
    Group(String),
    /// `/api`, `/apis`, `/version` and so on.
    Other(String),
}

/// Reads a path, whose segments are percent-decoded.
pub(crate) fn route(path: &str) -> Route {
    let decoded =
        |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
    let trimmed = path.trim_matches('/');
    let parts: Vec<String> = trimmed.split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group] => return Route::Group((*group).to_owned()),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return Route::Other(format!("/{trimmed}")),
    };
    let mut target =
        Target { group: group.to_owned(), version: version.to_owned(), ..Target::default() };
    let rest = match rest {
        [] => return Route::Resources(group.to_owned(), version.to_owned()),
        // The subresources of a namespace are not kinds in it.
        ["namespaces", name, sub @ ("status" | "finalize")] => {
            (*name).clone_into(&mut target.namespace);
            "namespaces".clone_into(&mut target.resource);
            (*name).clone_into(&mut target.name);
            (*sub).clone_into(&mut target.subresource);
            return Route::Resource(target);
        }
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            (*namespace).clone_into(&mut target.namespace);
            rest
        }
        rest => rest,
    };
    let mut rest = rest.iter();
    let mut next = || rest.next().map(|part| (*part).to_owned()).unwrap_or_default();
    target.resource = next();
    target.name = next();
    target.subresource = next();
    // Only proxied requests have further path segments.
    if target.subresource != "proxy" {
        for part in rest {
            target.subresource = format!("{}/{part}", target.subresource);
        }
    }
    if target.resource == "namespaces" && group.is_empty() && target.namespace.is_empty() {
        target.namespace.clone_from(&target.name);
    }
    Route::Resource(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match route(path) {
            Route::Resource(target) => target,
            other => panic!("{path} leads to {other:?}"),
        }
    }

    #[test]
    fn namespace_in_a_path_is_a_scope_or_an_object() {
        let found = target("/api/v1/namespaces/a");
        assert_eq!((&*found.resource, &*found.name), ("namespaces", "a"));
        let found = target("/api/v1/namespaces/a/pods/b/status");
        assert_eq!(
            (&*found.namespace, &*found.resource, &*found.name, &*found.subresource),
            ("a", "pods", "b", "status")
        );
        assert_eq!(target("/api/v1/namespaces/a/finalize").subresource, "finalize");
    }

    #[test]
    fn named_group_is_part_of_the_path() {
        let found = target("/apis/apps/v1/deployments");
        assert_eq!(
            (&*found.group, &*found.version, &*found.resource),
            ("apps", "v1", "deployments")
        );
        assert_eq!(route("/apis/apps/v1"), Route::Resources("apps".to_owned(), "v1".to_owned()));
        assert_eq!(route("/version/"), Route::Other("/version".to_owned()));
    }
}
