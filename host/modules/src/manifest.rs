//! Whether a manifest makes sense, beyond its shape: names go into URLs, field managers and
//! finalizers, so they are checked before anything is done with them.

use std::collections::BTreeSet;

use innkeeper_contract::{Kind, Manifest, Scope};
use innkeeper_core::said;
use serde_json::Value;

use crate::module;
use crate::settings::is_reserved_group;

/// The most kinds that a guest may own and read: each is a cache and two requests at least.
const KINDS_MAX: usize = 100;

/// The most CustomResourceDefinitions that a guest may describe.
const CRDS_MAX: usize = 20;

/// How many errors are told; the others show up when these are mended.
const ERRORS_MAX: usize = 20;

/// How much of one error is told, in bytes: names in a manifest may be of any length.
const ERROR_BYTES_MAX: usize = 1_024;

/// Checks a manifest.
///
/// # Errors
/// Everything that is wrong, each with its place in the manifest.
pub fn check(manifest: &Manifest) -> Result<(), Vec<String>> {
    let mut errors = Vec::new();
    // Not looked at one by one: there may be any number.
    for (place, count, max) in [
        ("owned and reads", manifest.owned.len() + manifest.reads.len(), KINDS_MAX),
        ("crds", manifest.crds.len(), CRDS_MAX),
    ] {
        if count > max {
            errors.push(format!("{place}: {count} are more than the {max} that a guest may have"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if manifest.name.is_empty() || manifest.name.len() > 253 {
        errors.push("name: must have 1 to 253 characters".to_owned());
    }
    if manifest.version.len() > 128 {
        errors.push("version: must have at most 128 characters".to_owned());
    }
    kind("primary", &manifest.primary, &mut errors);
    if manifest.primary.group() == module::GROUP {
        errors.push(format!("primary: kinds of {} are the host's own", module::GROUP));
    }
    let mut seen = BTreeSet::new();
    for (index, owned) in manifest.owned.iter().enumerate() {
        let place = format!("owned[{index}].kind");
        kind(&place, &owned.kind, &mut errors);
        if owned.kind.group() == module::GROUP {
            errors.push(format!("{place}: kinds of {} are the host's own", module::GROUP));
        }
        // A guest may merge into its primary, and make others of its kind.
        let is_another =
            names(&owned.kind) == names(&manifest.primary) && owned.kind != manifest.primary;
        if !seen.insert(names(&owned.kind)) || is_another {
            errors.push(format!("{place}: {} is named twice", owned.kind));
        }
    }
    for (index, read) in manifest.reads.iter().enumerate() {
        kind(&format!("reads[{index}]"), read, &mut errors);
    }
    if let Some(finalizer) = &manifest.finalizer
        && !finalizer.is_empty()
        && !is_qualified(finalizer)
    {
        errors.push(format!("finalizer: {finalizer:?} is not a name like example.com/cleanup"));
    }
    for (index, definition) in manifest.crds.iter().enumerate() {
        crd(&format!("crds[{index}]"), definition, manifest, &mut errors);
    }
    errors.truncate(ERRORS_MAX);
    for error in &mut errors {
        *error = said::cut(error, ERROR_BYTES_MAX);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn names(kind: &Kind) -> (String, String) {
    (kind.api_version.clone(), kind.kind.clone())
}

fn kind(place: &str, kind: &Kind, errors: &mut Vec<String>) {
    let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
    if !(group.is_empty() && !kind.api_version.contains('/') || is_subdomain(group))
        || !is_label(version)
    {
        errors.push(format!(
            "{place}.apiVersion: {:?} is not a group and a version",
            kind.api_version
        ));
    }
    let mut chars = kind.kind.chars();
    if !chars.next().is_some_and(|c| c.is_ascii_uppercase())
        || !chars.all(|c| c.is_ascii_alphanumeric())
        || kind.kind.len() > 63
    {
        errors.push(format!("{place}.kind: {:?} is not a CamelCase name", kind.kind));
    }
    if !is_label(&kind.plural) {
        errors.push(format!("{place}.plural: {:?} is not a lower-case plural", kind.plural));
    }
}

fn crd(place: &str, definition: &Value, manifest: &Manifest, errors: &mut Vec<String>) {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/apiVersion") != "apiextensions.k8s.io/v1"
        || text("/kind") != "CustomResourceDefinition"
    {
        errors
            .push(format!("{place}: is not a CustomResourceDefinition of apiextensions.k8s.io/v1"));
        return;
    }
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    if !is_subdomain(group)
        || !is_label(plural)
        || text("/metadata/name") != format!("{plural}.{group}")
    {
        errors.push(format!(
            "{place}.metadata.name: {:?} must be spec.names.plural and spec.group: {:?}",
            text("/metadata/name"),
            format!("{plural}.{group}")
        ));
    }
    if is_reserved_group(group) {
        errors.push(format!("{place}.spec.group: {group} belongs to Kubernetes or to Innkeeper"));
    }
    if !matches!(text("/spec/conversion/strategy"), "" | "None") {
        errors.push(format!("{place}.spec.conversion: a conversion webhook is not supported"));
    }
    // The manifest and the definition name the same kind twice: they must agree, or the host
    // would watch what is not there.
    let primary = &manifest.primary;
    if group == primary.group() && text("/spec/names/kind") == primary.kind {
        let scope = match primary.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "Cluster",
        };
        if plural != primary.plural || text("/spec/scope") != scope {
            errors.push(format!(
                "{place}: is {plural}, {}; the primary is {}, {scope}",
                text("/spec/scope"),
                primary.plural
            ));
        }
        let served = definition.pointer("/spec/versions").and_then(Value::as_array).is_some_and(
            |versions| {
                versions.iter().any(|version| {
                    version["name"] == primary.version() && version["served"] == true
                })
            },
        );
        if !served {
            errors.push(format!(
                "{place}.spec.versions: {} of the primary is not served",
                primary.version()
            ));
        }
    }
}

/// One part of a DNS name.
fn is_label(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 63
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// A finalizer: one word, or a DNS name, a slash and a word.
fn is_qualified(text: &str) -> bool {
    let word = |text: &str| {
        let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        text.len() <= 63
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
            && ends(text.chars().next())
            && ends(text.chars().next_back())
    };
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && word(name),
        None => is_subdomain(text) && text.contains('.'),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use innkeeper_contract::OwnedKind;
    use serde_json::json;

    use super::*;
    use crate::testing::manifest;

    fn refused(change: impl FnOnce(&mut Manifest), expected: &Expect) {
        let mut manifest = manifest("g");
        change(&mut manifest);
        expected.assert_eq(&check(&manifest).unwrap_err().join("\n"));
    }

    fn definition() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "podroutes.quay.io"},
            "spec": {
                "group": "quay.io", "scope": "Namespaced",
                "names": {"kind": "Podroute", "plural": "podroutes"},
                "versions": [{"name": "v1alpha1", "served": true, "storage": true}],
            },
        })
    }

    #[test]
    fn a_sound_manifest_passes() {
        let mut manifest = manifest("g");
        manifest.crds.push(definition());
        manifest.finalizer = Some("finalizer.kabocha.example.com".into());
        assert_eq!(check(&manifest), Ok(()));
        manifest.finalizer = Some("example.com/cleanup".into());
        assert_eq!(check(&manifest), Ok(()));
    }

    #[test]
    fn names_that_would_change_a_url_are_refused() {
        refused(
            |manifest| {
                manifest.primary.plural = "pods/exec".into();
                manifest.reads.push(Kind::namespaced("v1/../..", "Pod", "pods"));
                manifest.reads.push(Kind::namespaced("/v1", "pod", "pods?x"));
            },
            &expect![[r#"
                primary.plural: "pods/exec" is not a lower-case plural
                reads[0].apiVersion: "v1/../.." is not a group and a version
                reads[1].apiVersion: "/v1" is not a group and a version
                reads[1].kind: "pod" is not a CamelCase name
                reads[1].plural: "pods?x" is not a lower-case plural"#]],
        );
    }

    #[test]
    fn the_hosts_own_kinds_and_kinds_named_twice_are_refused() {
        refused(
            |manifest| {
                let module = Kind::cluster("innkeeper.dev/v1alpha1", "Module", "modules");
                manifest.owned = vec![
                    OwnedKind { kind: module, optional: false, merges: false },
                    OwnedKind { kind: manifest.primary.clone(), optional: false, merges: true },
                    OwnedKind { kind: manifest.primary.clone(), optional: false, merges: false },
                ];
            },
            &expect![[r#"
                owned[0].kind: kinds of innkeeper.dev are the host's own
                owned[2].kind: quay.io/v1alpha1 Podroute is named twice"#]],
        );
    }

    #[test]
    fn more_kinds_than_a_guest_may_have_are_counted_and_no_more() {
        refused(
            |manifest| {
                let kind = Kind::namespaced("v1/../..", "pod", "pods?x");
                manifest.reads = vec![kind; KINDS_MAX + 1];
                manifest.crds = vec![json!({}); CRDS_MAX + 1];
            },
            &expect![[r#"
                owned and reads: 102 are more than the 100 that a guest may have
                crds: 21 are more than the 20 that a guest may have"#]],
        );
    }

    #[test]
    fn what_is_wrong_is_told_in_bounded_words() {
        let mut manifest = manifest("g");
        manifest.reads = vec![Kind::namespaced("v1", "x".repeat(4096), "y".repeat(4096)); 90];
        let errors = check(&manifest).unwrap_err();
        assert_eq!(errors.len(), ERRORS_MAX);
        assert!(errors.iter().all(|error| error.len() <= ERROR_BYTES_MAX + 3));
    }

    #[test]
    fn definitions_must_agree_with_the_primary_and_with_themselves() {
        refused(
            |manifest| {
                let mut other = definition();
                other["spec"]["scope"] = "Cluster".into();
                other["spec"]["versions"][0]["served"] = false.into();
                let mut hook = definition();
                hook["spec"]["conversion"] = json!({"strategy": "Webhook"});
                let mut name = definition();
                name["metadata"]["name"] = "podroutes.example.com".into();
                let mut reserved = definition();
                reserved["spec"]["group"] = "apps.k8s.io".into();
                reserved["metadata"]["name"] = "podroutes.apps.k8s.io".into();
                manifest.crds = vec![other, hook, name, reserved, json!({"kind": "Pod"})];
            },
            &expect![[r#"
                crds[0]: is podroutes, Cluster; the primary is podroutes, Namespaced
                crds[0].spec.versions: v1alpha1 of the primary is not served
                crds[1].spec.conversion: a conversion webhook is not supported
                crds[2].metadata.name: "podroutes.example.com" must be spec.names.plural and spec.group: "podroutes.quay.io"
                crds[3].spec.group: apps.k8s.io belongs to Kubernetes or to Innkeeper
                crds[4]: is not a CustomResourceDefinition of apiextensions.k8s.io/v1"#]],
        );
    }
}
