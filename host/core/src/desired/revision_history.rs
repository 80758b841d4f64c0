//! The checks of `revisionHistory` of a `desired` document.

use std::ops::RangeInclusive;

use innkeeper_contract::{Kind, Manifest, RevisionHistory};

use super::error::InvalidDesired;
use crate::object::holds_secrets;
use crate::{control, foreign};

/// How many earlier states a history may keep.
const LIMITS: RangeInclusive<u32> = 1..=10;

/// The most fields of a history.
const PATHS_MAX: usize = 8;

/// The longest path, in bytes.
const PATH_BYTES_MAX: usize = 253;

/// How many bytes of a path an error quotes.
const QUOTED_BYTES_MAX: usize = 63;

/// Checks a history.
///
/// # Errors
/// Returns the first violation of the contract.
pub(super) fn check(history: &RevisionHistory, manifest: &Manifest) -> Result<(), InvalidDesired> {
    let problem = problem_of_manifest(manifest)
        .map(str::to_owned)
        .or_else(|| problem_of_limit(history.limit))
        .or_else(|| problem_of_paths(&history.field_paths));
    match problem {
        Some(problem) => {
            Err(InvalidDesired::Malformed { what: "revisionHistory".to_owned(), problem })
        }
        None => Ok(()),
    }
}

/// Returns whether a kind is the one in which the host stores histories.
pub fn is_controller_revision(kind: &Kind) -> bool {
    kind.api_version == "apps/v1" && kind.kind == "ControllerRevision"
}

/// Why primaries of the guest can have no history, if so.
fn problem_of_manifest(manifest: &Manifest) -> Option<&'static str> {
    let Some(primary) = &manifest.primary else {
        return Some("the guest has no primary");
    };
    if !primary.is_namespaced() {
        return Some(
            "a cluster-scoped primary has none, since a ControllerRevision has a namespace",
        );
    }
    if holds_secrets(primary) {
        return Some("a Secret has none, since users who may not read it may read its history");
    }
    // The controllers of apps/v1 prune the ControllerRevisions that their objects own.
    if control::decorates(manifest) {
        return Some(
            "the guest decorates its primaries, whose own controller may delete ControllerRevisions of theirs",
        );
    }
    let is_owned =
        manifest.owned.iter().any(|owned| is_controller_revision(&owned.kind) && !owned.merges);
    (!is_owned).then_some(
        "the manifest does not own apps/v1 ControllerRevision; add `.owns::<ControllerRevision>()`, since the host stores the history in them",
    )
}

fn problem_of_limit(limit: u32) -> Option<String> {
    (!LIMITS.contains(&limit))
        .then(|| format!("limit is not from {} to {}", LIMITS.start(), LIMITS.end()))
}

fn problem_of_paths(paths: &[String]) -> Option<String> {
    if paths.is_empty() || paths.len() > PATHS_MAX {
        return Some(format!("fieldPaths has {} items; give 1 to {PATHS_MAX}", paths.len()));
    }
    paths.iter().enumerate().find_map(|(index, path)| {
        if !is_path(path) {
            return Some(format!(
                "fieldPaths[{index}] is {}, not `spec` or a path below it like `spec.template`",
                quoted(path)
            ));
        }
        let other = paths[..index].iter().find(|other| overlap(path, other))?;
        Some(format!("fieldPaths[{index}] is {}, which overlaps {}", quoted(path), quoted(other)))
    })
}

/// Whether a text is `spec`, or names below it.
fn is_path(path: &str) -> bool {
    let is_name = |name: &str| {
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_$".contains(&byte);
        !name.is_empty() && name.bytes().all(is_of_name)
    };
    let mut names = path.split('.');
    path.len() <= PATH_BYTES_MAX && names.next() == Some("spec") && names.all(is_name)
}

/// Whether one path is the other or leads to it.
fn overlap(a: &str, b: &str) -> bool {
    let leads = |path: &str, to: &str| {
        to.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    leads(a, b) || leads(b, a)
}

fn quoted(path: &str) -> String {
    format!("`{}`", foreign::one_line(path, QUOTED_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn manifest(change: impl Fn(&mut Value)) -> Manifest {
        let mut manifest = json!({
            "name": "cats",
            "primary": {"apiVersion": "example.com/v1", "kind": "CatSet", "plural": "catsets"},
            "owned": [{"kind": {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "plural": "controllerrevisions"
            }}]
        });
        change(&mut manifest);
        from_value(manifest).unwrap()
    }

    fn problem_of(history: Value) -> Option<String> {
        let history = from_value(history).unwrap();
        check(&history, &manifest(|_| {})).err().map(|refusal| refusal.to_string())
    }

    #[test]
    fn history_in_its_limits_is_accepted() {
        for history in [
            json!({}),
            json!({"limit": 1}),
            json!({"limit": 10, "fieldPaths": ["spec"]}),
            json!({"fieldPaths": ["spec.template", "spec.templates", "spec.a.b", "spec.a.c"]}),
            json!({"fieldPaths": [format!("spec.{}", "a".repeat(248))]}),
            json!({"fieldPaths": (0..8).map(|n| format!("spec.a{n}")).collect::<Vec<_>>()}),
        ] {
            assert_eq!(problem_of(history.clone()), None, "{history}");
        }
    }

    #[test]
    fn history_beyond_its_limits_is_refused_with_a_short_message() {
        for (history, problem) in [
            (json!({"limit": 0}), "limit is not from 1 to 10"),
            (json!({"limit": 11}), "limit is not from 1 to 10"),
            (json!({"fieldPaths": []}), "fieldPaths has 0 items; give 1 to 8"),
            (json!({"fieldPaths": vec!["spec"; 10_000]}), "fieldPaths has 10000 items"),
            (json!({"fieldPaths": ["metadata.finalizers"]}), "`metadata.finalizers`, not `spec`"),
            (json!({"fieldPaths": ["status"]}), "`status`, not `spec`"),
            (json!({"fieldPaths": ["specs.a"]}), "`specs.a`, not `spec`"),
            (json!({"fieldPaths": [".."]}), "fieldPaths[0] is `..`, not `spec`"),
            (json!({"fieldPaths": [""]}), "fieldPaths[0] is ``, not `spec`"),
            (json!({"fieldPaths": ["spec."]}), "`spec.`, not `spec`"),
            (json!({"fieldPaths": ["spec.a\nb"]}), "not `spec`"),
            (json!({"fieldPaths": [format!("spec.{}", "a".repeat(249))]}), "not `spec`"),
            (json!({"fieldPaths": ["a".repeat(1 << 20)]}), "not `spec`"),
            (
                json!({"fieldPaths": ["spec.a", "spec"]}),
                "fieldPaths[1] is `spec`, which overlaps `spec.a`",
            ),
            (json!({"fieldPaths": ["spec.a", "spec.a.b"]}), "`spec.a.b`, which overlaps `spec.a`"),
            (json!({"fieldPaths": ["spec.a", "spec.a"]}), "`spec.a`, which overlaps `spec.a`"),
        ] {
            let found = problem_of(history).unwrap();
            assert!(found.contains(problem), "{found} does not contain {problem}");
            assert!(found.len() < 250, "{found}");
        }
    }

    #[test]
    fn history_is_refused_when_the_manifest_cannot_have_one() {
        for (manifest, problem) in [
            (manifest(|manifest| manifest["owned"] = json!([])), "add `.owns::<ControllerRevision"),
            (
                manifest(|manifest| manifest["owned"][0]["merges"] = true.into()),
                "does not own apps/v1 ControllerRevision",
            ),
            (
                manifest(|manifest| {
                    manifest.as_object_mut().unwrap().remove("primary");
                }),
                "the guest has no primary",
            ),
            (
                manifest(|manifest| manifest["primary"]["scope"] = "Cluster".into()),
                "a cluster-scoped primary has none",
            ),
            (
                manifest(|manifest| {
                    manifest["primary"] =
                        json!({"apiVersion": "v1", "kind": "Secret", "plural": "secrets"});
                }),
                "a Secret has none",
            ),
            (manifest(|manifest| manifest["decorates"] = true.into()), "decorates its primaries"),
            (
                manifest(|manifest| {
                    let kind = json!({
                        "apiVersion": "apps/v1",
                        "kind": "StatefulSet",
                        "plural": "statefulsets"
                    });
                    manifest["primary"] = kind;
                }),
                "decorates its primaries",
            ),
        ] {
            let refusal = check(&RevisionHistory::default(), &manifest).unwrap_err();
            assert_eq!(refusal.reason(), "MalformedObject");
            assert!(refusal.to_string().contains(problem), "{refusal}");
        }
    }
}
