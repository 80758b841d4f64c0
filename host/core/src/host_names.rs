//! Names that belong to the host: labels, annotations and finalizers of `innkeeper.dev` and of
//! every domain below it.
//!
//! The host reads permissions from these names: which object outlived its primary, which object may
//! be deleted, which primary adopts. A guest that could write them could grant itself the same.
//! Most of these names are refused in the metadata of a desired object only. In a Pod template or
//! another part of the spec they are ordinary content: a label that a controller copies from there
//! has no entry of this module in `managedFields`, and the host ignores it without one. The
//! annotations by which a user decides ([`USER_ANNOTATIONS`]) are refused anywhere, since they
//! count when no manager of the host holds them.

use serde_json::{Map, Value};

use crate::consent::USER_ANNOTATIONS;
use crate::foreign;
use crate::value_source::ValueSourceGrant;

/// The domain of the host's own names.
pub const DOMAIN: &str = "innkeeper.dev";

/// How many bytes of a name a message shows: the longest name that Kubernetes allows.
const NAME_BYTES_MAX: usize = 317;

/// What a Module allows its guest beyond its own objects in the namespace of the primary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grants<'a> {
    /// The guest may desire objects outside the namespace of the primary
    /// (`spec.allowCrossNamespace`).
    pub cross_namespace: bool,
    /// The guest may set finalizers on its objects (`spec.allowFinalizers`).
    pub finalizers: bool,
    /// The namespace in which the host runs, if it is not
    /// [`HOST_NAMESPACE`](crate::host_objects::HOST_NAMESPACE). No Module can grant it.
    pub host_namespace: Option<&'a str>,
    /// Objects whose values the host copies into desired objects (`spec.valueSources`).
    pub value_sources: &'a [ValueSourceGrant],
}

/// Whether the name of a label, an annotation or a finalizer belongs to the host.
///
/// As in Kubernetes, upper and lower case in the domain are the same.
pub fn is_reserved(name: &str) -> bool {
    is_within(domain(name), DOMAIN)
}

/// The domain of a qualified name; the whole name if it has no slash.
pub fn domain(name: &str) -> &str {
    name.split_once('/').map_or(name, |(domain, _)| domain)
}

/// Whether a domain is `parent` or a subdomain of it.
pub fn is_within(domain: &str, parent: &str) -> bool {
    let domain = domain.trim().trim_end_matches('.').as_bytes();
    let Some(at) = domain.len().checked_sub(parent.len()) else { return false };
    let (rest, end) = domain.split_at(at);
    (rest.is_empty() || rest.ends_with(b"."))
        && end.iter().map(u8::to_ascii_lowercase).eq(parent.bytes())
}

/// Shortens a name for a message, and makes its characters visible.
pub fn shortened(name: &str) -> String {
    foreign::one_line(name, NAME_BYTES_MAX)
}

/// Checks the labels, annotations and finalizers of a desired object.
///
/// `merges`: the guest merges into an object of another owner.
///
/// # Errors
/// Returns the first name that the guest may not write, with its place and what to do.
pub fn check(object: &Value, merges: bool, grants: Grants<'_>) -> Result<(), String> {
    let metadata = &object["metadata"];
    for member in ["labels", "annotations"] {
        let names = metadata[member].as_object().into_iter().flat_map(Map::keys);
        for name in names {
            check_name(member, name)?;
        }
    }
    if let Some(name) = user_annotation_in(object) {
        return Err(format!(
            "a member is called {name:?}, which a controller could copy to an object: only a user gives this consent; leave it out"
        ));
    }
    match metadata.get("finalizers") {
        None | Some(Value::Null) => Ok(()),
        Some(finalizers) => check_finalizers(finalizers, merges, grants),
    }
}

/// Finds a name of [`USER_ANNOTATIONS`] anywhere in an object, as in a template.
fn user_annotation_in(value: &Value) -> Option<&'static str> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let is_name = |annotation: &&str| name.eq_ignore_ascii_case(annotation);
            USER_ANNOTATIONS.into_iter().find(is_name).or_else(|| user_annotation_in(member))
        }),
        Value::Array(items) => items.iter().find_map(user_annotation_in),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn check_name(member: &str, name: &str) -> Result<(), String> {
    if is_reserved(name) {
        return Err(format!(
            "metadata.{member}: \"{}\" belongs to the host, as all names of {DOMAIN}; leave it out, and give a policy (orphan, deletable) instead",
            shortened(name)
        ));
    }
    // The domain may be imitated in another script; Kubernetes allows ASCII only.
    if !name.is_ascii() || name.contains(|c: char| c.is_ascii_control()) {
        return Err(format!(
            "metadata.{member}: \"{}\" is not a name that Kubernetes allows",
            shortened(name)
        ));
    }
    Ok(())
}

fn check_finalizers(finalizers: &Value, merges: bool, grants: Grants<'_>) -> Result<(), String> {
    let place = "metadata.finalizers";
    if merges {
        return Err(format!("{place}: a guest puts no finalizer on an object of somebody else"));
    }
    if !grants.finalizers {
        return Err(format!(
            "{place}: the Module does not allow finalizers on objects (spec.allowFinalizers); a finalizer on the primary is declared in the manifest"
        ));
    }
    let names = finalizers.as_array().ok_or_else(|| format!("{place} is not a list"))?;
    for name in names {
        let name = name.as_str().ok_or_else(|| format!("{place}: an item is not a text"))?;
        check_name("finalizers", name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn user_annotation_in_a_template_is_refused_and_other_names_are_not() {
        let with = |name: &str| json!({"spec": {"templates": [{"metadata": {"annotations": {name: "true"}}}]}});
        for name in ["innkeeper.dev/adopt", "Innkeeper.dev/adopt"] {
            for merges in [false, true] {
                assert!(check(&with(name), merges, Grants::default()).is_err(), "{name}");
            }
        }
        for name in ["innkeeper.dev/retained-for", "example.com/adopt"] {
            assert_eq!(check(&with(name), false, Grants::default()), Ok(()), "{name}");
        }
    }

    #[test]
    fn name_of_the_hosts_domain_is_reserved_in_every_spelling() {
        for name in [
            "innkeeper.dev/adopt",
            "innkeeper.dev",
            "x.innkeeper.dev/adopt",
            "Innkeeper.DEV/kept-for",
            "innkeeper.dev./adopt",
            " innkeeper.dev/adopt",
        ] {
            assert!(is_reserved(name), "{name:?}");
        }
        for name in ["app", "innkeeper.dev.example.com/a", "notinnkeeper.dev/a", "a/innkeeper.dev"]
        {
            assert!(!is_reserved(name), "{name:?}");
        }
    }

    fn refused(metadata: &Value, merges: bool, finalizers: bool) -> String {
        let grants = Grants { finalizers, ..Grants::default() };
        check(&json!({ "metadata": metadata }), merges, grants).unwrap_err()
    }

    #[test]
    fn reserved_name_is_refused_with_its_place() {
        assert_eq!(
            refused(&json!({"labels": {"a": "b", "innkeeper.dev/retained-for": "x"}}), true, false),
            "metadata.labels: \"innkeeper.dev/retained-for\" belongs to the host, as all names of innkeeper.dev; leave it out, and give a policy (orphan, deletable) instead"
        );
        let annotations = json!({"annotations": {"INNKEEPER.dev/adopt": 7}});
        assert!(refused(&annotations, false, true).starts_with("metadata.annotations"));
    }

    #[test]
    fn name_outside_ascii_is_refused() {
        let lookalike = json!({"labels": {"innkeep\u{435}r.dev/kept-for": "x"}});
        assert!(refused(&lookalike, false, false).contains("is not a name that Kubernetes allows"));
        let zero_width = json!({"annotations": {"innkeeper\u{200b}.dev/adopt": "true"}});
        assert!(refused(&zero_width, false, false).contains("is not a name"));
    }

    #[test]
    fn long_name_is_cut_in_the_message() {
        let long = format!("innkeeper.dev/{}", "x".repeat(1 << 20));
        assert!(refused(&json!({"labels": {long: "x"}}), false, false).len() < 1_000);
    }

    #[test]
    fn finalizer_is_refused_without_the_grant_or_when_merged() {
        let finalizers = json!({"finalizers": ["example.com/a"]});
        assert!(refused(&finalizers, false, false).contains("spec.allowFinalizers"));
        assert!(refused(&json!({"finalizers": []}), false, false).contains("spec.allowFinalizers"));
        assert!(refused(&finalizers, true, true).contains("somebody else"));
        let reserved = json!({"finalizers": ["innkeeper.dev/other"]});
        assert!(refused(&reserved, false, true).contains("belongs to the host"));
        assert_eq!(
            refused(&json!({"finalizers": "a"}), false, true),
            "metadata.finalizers is not a list"
        );
        let grants = Grants { finalizers: true, ..Grants::default() };
        assert_eq!(check(&json!({"metadata": finalizers}), false, grants), Ok(()));
    }

    #[test]
    fn label_in_a_pod_template_is_ordinary_content() {
        let template =
            json!({"template": {"metadata": {"labels": {"innkeeper.dev/retained-for": "x"}}}});
        let object = json!({"metadata": {"labels": {"app": "a"}}, "spec": template});
        assert_eq!(check(&object, false, Grants::default()), Ok(()));
    }
}
