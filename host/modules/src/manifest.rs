//! Whether a manifest makes sense, beyond its shape: names go into URLs, field managers and
//! finalizers, so they are checked before anything is done with them.

use std::collections::BTreeSet;

use innkeeper_contract::{Kind, Manifest, Scope};
use innkeeper_core::{PrimarySelector, control, foreign, names as grammar};
use semver::Version;
use serde_json::Value;

use crate::validated_spec::is_reserved_group;
use crate::{definitions, kind_parameters, module};

/// The most kinds that a guest may own and read: each is a cache and two requests at least.
const KINDS_MAX: usize = 100;

/// The most CustomResourceDefinitions that a guest may describe.
const CRDS_MAX: usize = 20;

/// The longest version of a guest, in bytes.
const VERSION_BYTES_MAX: usize = 128;

/// The most errors that are reported; the others show up when these are corrected.
const ERRORS_MAX: usize = 20;

/// The longest error, in bytes: names in a manifest may be of any length.
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
    if !grammar::is_subdomain(&manifest.name) {
        errors.push(format!(
            "name: {:?} is not a name of Kubernetes (lower case letters, digits, '-' and '.', at most 253 characters)",
            manifest.name
        ));
    }
    // A guest without a version has an empty one.
    let version = &manifest.version;
    if !version.is_empty()
        && (version.len() > VERSION_BYTES_MAX || Version::parse(version).is_err())
    {
        errors.push(format!(
            "version: {version:?} is not a semantic version of at most {VERSION_BYTES_MAX} characters, like 1.2.3 or 1.2.3-rc.1"
        ));
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
        // The host would apply them as any object: unchecked, and with any metadata.
        if owned.kind.group() == definitions::GROUP {
            errors.push(format!(
                "{place}: {} cannot be owned; describe definitions in crds",
                owned.kind.kind
            ));
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
    if let Some(selector) = &manifest.selector {
        PrimarySelector::read(selector, "selector", &mut |field, problem| {
            errors.push(format!("{field}: {problem}"));
        });
        let fields = selector.match_fields.iter().take(ERRORS_MAX).enumerate();
        for (index, field) in fields {
            if field.key.split('.').next() == Some("status") && !control::decorates(manifest) {
                errors.push(format!("selector.matchFields[{index}].key: {:?} is written for the guest, which would end its own selection; select by a field of the spec", field.key));
            }
        }
    }
    if let Some(finalizer) = &manifest.finalizer
        && !finalizer.is_empty()
        && !is_finalizer(finalizer)
    {
        errors.push(format!("finalizer: {finalizer:?} is not a name like example.com/cleanup"));
    }
    kind_parameters::check(manifest, &mut errors);
    for (index, definition) in manifest.crds.iter().enumerate() {
        crd(&format!("crds[{index}]"), definition, manifest, &mut errors);
    }
    errors.truncate(ERRORS_MAX);
    for error in &mut errors {
        *error = foreign::one_line(&*error, ERROR_BYTES_MAX);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn names(kind: &Kind) -> (String, String) {
    (kind.api_version.clone(), kind.kind.clone())
}

fn kind(place: &str, kind: &Kind, errors: &mut Vec<String>) {
    if !grammar::is_api_version(&kind.api_version) {
        errors.push(format!(
            "{place}.apiVersion: {:?} is not a group and a version",
            kind.api_version
        ));
    }
    if !grammar::is_kind(&kind.kind) {
        errors.push(format!("{place}.kind: {:?} is not a CamelCase name", kind.kind));
    }
    if !grammar::is_letter_label(&kind.plural) {
        errors.push(format!("{place}.plural: {:?} is not a lower-case plural", kind.plural));
    }
    // `kubectl` and this host read an object of such a kind as the objects in its `items`.
    if kind.kind == "List" {
        errors.push(format!("{place}.kind: List is no kind of its own"));
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
    definitions::check(place, definition, errors);
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    if !grammar::is_subdomain(group)
        || !grammar::is_letter_label(plural)
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
    agrees(place, definition, manifest, errors);
    // The manifest and the definition name the same kind twice: they must agree, or the host
    // would watch what is not there.
    let primary = &manifest.primary;
    if group == primary.group() && text("/spec/names/kind") == primary.kind {
        let scope = scope_of(primary);
        if plural != primary.plural || text("/spec/scope") != scope {
            errors.push(format!(
                "{place}: is {plural}, {}; the primary is {}, {scope}",
                foreign::one_line(text("/spec/scope"), 63),
                primary.plural
            ));
        }
        let revision = definition.pointer("/spec/versions").and_then(Value::as_array).is_some_and(
            |versions| {
                versions.iter().any(|version| {
                    version["name"] == primary.version() && version["served"] == true
                })
            },
        );
        if !revision {
            errors.push(format!(
                "{place}.spec.versions: {} of the primary is not served",
                primary.version()
            ));
        }
    }
}

/// Checks that a definition and the kinds owned and read that it defines agree: discovery cannot
/// compare a kind before its definition is installed.
fn agrees(place: &str, definition: &Value, manifest: &Manifest, errors: &mut Vec<String>) {
    let text =
        |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let (kind, scope) = (text("/spec/names/kind"), text("/spec/scope"));
    let primary = &manifest.primary;
    let owned = manifest.owned.iter().enumerate();
    let owned = owned.map(|(index, owned)| (format!("owned[{index}].kind"), &owned.kind));
    let reads = manifest.reads.iter().enumerate();
    let reads = reads.map(|(index, kind)| (format!("reads[{index}]"), kind));
    let all = [("primary".to_owned(), primary)].into_iter().chain(owned).chain(reads);
    for (of, declared) in all.filter(|(_, one)| one.group() == group) {
        let is_named = declared.kind == kind;
        // Of the primary's own definition the version is compared too, by the caller.
        if (!is_named && declared.plural != plural) || (is_named && *declared == *primary) {
            continue;
        }
        if !is_named || declared.plural != plural || scope_of(declared) != scope {
            errors.push(format!(
                "{place}: defines {kind} as {plural}, {scope}; {of} declares {} as {}, {}",
                declared.kind,
                declared.plural,
                scope_of(declared)
            ));
        }
    }
}

fn scope_of(kind: &Kind) -> &'static str {
    match kind.scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    }
}

/// A finalizer: a DNS name, a slash and a word, or a DNS name with a dot.
fn is_finalizer(text: &str) -> bool {
    if text.contains('/') {
        grammar::is_qualified(text)
    } else {
        grammar::is_subdomain(text) && text.contains('.')
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
    fn selector_by_status_is_refused_unless_the_guest_decorates() {
        let selector = json!({"matchFields": [{"key": "status.phase", "operator": "Exists"}]});
        let select = |manifest: &mut Manifest| {
            manifest.selector = serde_json::from_value(selector.clone()).unwrap();
        };
        refused(
            select,
            &expect![[
                r#"selector.matchFields[0].key: "status.phase" is written for the guest, which would end its own selection; select by a field of the spec"#
            ]],
        );
        let mut decorator = manifest("g");
        decorator.decorates = true;
        select(&mut decorator);
        assert_eq!(check(&decorator), Ok(()));
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
    fn names_and_versions_that_would_change_a_document_are_refused() {
        for name in [
            "",
            "a\n---\nkind: ClusterRoleBinding",
            "a\rb",
            "a\u{85}b",
            "a\u{2028}b",
            "a\u{202e}b",
            "a\u{1b}]52;c;eA==\u{7}",
            "a #b",
            " a",
            "-a",
            "a: b",
            "%YAML",
            "&a",
            "*a",
            "!!bool",
            "Upper",
            "a_b",
        ] {
            let mut manifest = manifest("g");
            manifest.name = name.to_owned();
            let errors = check(&manifest).unwrap_err();
            assert!(errors.len() == 1 && errors[0].starts_with("name: "), "{errors:?}");
            assert!(errors[0].chars().all(foreign::is_visible), "{errors:?}");
        }
        let long = format!("1.0.0-{}", "a".repeat(200));
        for version in
            ["1", "v1.0.0", "1.0.0\n", "1.0.0\nkind: X", "on", "1e3", "01.0.0", " 1.0.0", &long]
        {
            let mut manifest = manifest("g");
            manifest.version = version.to_owned();
            let errors = check(&manifest).unwrap_err();
            assert!(errors.len() == 1 && errors[0].starts_with("version: "), "{errors:?}");
        }
        for version in ["", "1.2.3", "0.1.0-rc.1+build.5"] {
            let mut manifest = manifest("my-guest.v2");
            manifest.version = version.to_owned();
            assert_eq!(check(&manifest), Ok(()), "{version}");
        }
    }

    #[test]
    fn kinds_that_would_grant_everything_or_other_scalars_are_refused() {
        refused(
            |manifest| {
                manifest.reads = vec![
                    Kind::namespaced("*/v1", "Pod", "pods"),
                    Kind::namespaced("*", "Pod", "pods"),
                    Kind::namespaced("v1", "*", "pods"),
                    Kind::namespaced("v1", "Pod", "*"),
                    Kind::namespaced("v1", "Pod", "1e3"),
                    Kind::namespaced("v1", "List", "lists"),
                    Kind::namespaced("v1", "Pod", "pods, secrets"),
                ];
            },
            &expect![[r#"
                reads[0].apiVersion: "*/v1" is not a group and a version
                reads[1].apiVersion: "*" is not a group and a version
                reads[2].kind: "*" is not a CamelCase name
                reads[3].plural: "*" is not a lower-case plural
                reads[4].plural: "1e3" is not a lower-case plural
                reads[5].kind: List is no kind of its own
                reads[6].plural: "pods, secrets" is not a lower-case plural"#]],
        );
    }

    #[test]
    fn kinds_that_differ_in_case_or_are_subresources_are_refused() {
        refused(
            |manifest| {
                manifest.reads = [
                    ("secret", "secrets"),
                    ("ſecret", "secrets"),
                    ("Seсret", "secrets"),
                    ("Secret", "Secrets"),
                    ("Secret", "secrets/status"),
                    ("Secret", "ѕecrets"),
                    ("Secret", "secrets."),
                    ("Secret", ""),
                ]
                .map(|(kind, plural)| Kind::namespaced("v1", kind, plural))
                .into();
            },
            &expect![[r#"
                reads[0].kind: "secret" is not a CamelCase name
                reads[1].kind: "ſecret" is not a CamelCase name
                reads[2].kind: "Seсret" is not a CamelCase name
                reads[3].plural: "Secrets" is not a lower-case plural
                reads[4].plural: "secrets/status" is not a lower-case plural
                reads[5].plural: "ѕecrets" is not a lower-case plural
                reads[6].plural: "secrets." is not a lower-case plural
                reads[7].plural: "" is not a lower-case plural"#]],
        );
    }

    #[test]
    fn a_definition_must_agree_with_every_kind_that_the_manifest_declares() {
        refused(
            |manifest| {
                manifest.primary = Kind::namespaced("quay.io/v1alpha1", "Other", "podroutes");
                manifest.owned = vec![OwnedKind {
                    kind: Kind::cluster("quay.io/v1alpha1", "Podroute", "podroutes"),
                    optional: true,
                    merges: false,
                }];
                manifest.reads = vec![Kind::namespaced("quay.io/v1", "Podroute", "routes")];
                manifest.crds = vec![definition()];
            },
            &expect![[r#"
                crds[0]: defines Podroute as podroutes, Namespaced; primary declares Other as podroutes, Namespaced
                crds[0]: defines Podroute as podroutes, Namespaced; owned[0].kind declares Podroute as podroutes, Cluster
                crds[0]: defines Podroute as podroutes, Namespaced; reads[0] declares Podroute as routes, Namespaced"#]],
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
    fn errors_are_bounded_in_number_and_length() {
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
