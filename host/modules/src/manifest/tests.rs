//! Manifests that the host accepts, and those that it refuses.

use expect_test::{Expect, expect};
use innkeeper_contract::{KindParameter, KindRole, OwnedKind};
use serde_json::json;

use super::*;
use crate::testing::{manifest, policy_manifest};

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
    manifest.crds.push(definition().into());
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
            manifest.primary.as_mut().unwrap().plural = "pods/exec".into();
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
            manifest.primary = Some(Kind::namespaced("quay.io/v1alpha1", "Other", "podroutes"));
            manifest.owned = vec![OwnedKind {
                kind: Kind::cluster("quay.io/v1alpha1", "Podroute", "podroutes"),
                optional: true,
                merges: false,
            }];
            manifest.reads = vec![Kind::namespaced("quay.io/v1", "Podroute", "routes")];
            manifest.crds = vec![definition().into()];
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
            let primary = manifest.primary.clone().unwrap();
            manifest.owned = vec![
                OwnedKind { kind: module, optional: false, merges: false },
                OwnedKind { kind: primary.clone(), optional: false, merges: true },
                OwnedKind { kind: primary.clone(), optional: false, merges: false },
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
            manifest.crds = vec![json!({}).into(); CRDS_MAX + 1];
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
            let pod = json!({"kind": "Pod"});
            manifest.crds = [other, hook, name, reserved, pod].map(Into::into).into();
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

#[test]
fn manifest_without_primary_and_policy_is_refused() {
    refused(
        |manifest| {
            manifest.primary = None;
            manifest.owned.clear();
        },
        &expect!["manifest: names no primary and no policy; name one of them"],
    );
}

#[test]
fn manifest_with_a_policy_and_no_primary_passes() {
    let mut manifest = policy_manifest("g");
    manifest.reads.push(Kind::namespaced("v1", "Pod", "pods"));
    assert_eq!(check(&manifest), Ok(()));
    manifest.primary = Some(Kind::namespaced("quay.io/v1alpha1", "Podroute", "podroutes"));
    assert_eq!(check(&manifest), Ok(()));
}

#[test]
fn members_about_primaries_are_refused_without_a_primary() {
    refused(
        |given| {
            *given = Manifest {
                primary: None,
                policy: policy_manifest("g").policy,
                selector: serde_json::from_value(json!({"matchLabels": {"a": "b"}})).unwrap(),
                crds: vec![definition().into()],
                resync_seconds: Some(0),
                finalizer: Some(String::new()),
                decorates: true,
                ..manifest("g")
            };
        },
        &expect![[r#"
            selector: only for a guest with a primary; leave it out
            owned: only for a guest with a primary; leave it out
            crds: only for a guest with a primary; leave it out
            resyncSeconds: only for a guest with a primary; leave it out
            finalizer: only for a guest with a primary; leave it out
            decorates: only for a guest with a primary; leave it out"#]],
    );
}

#[test]
fn kind_parameters_of_a_guest_without_a_primary_are_only_read() {
    let parameter = |name: &str, role| KindParameter {
        parameter: name.to_owned(),
        role,
        merges: false,
        optional: false,
    };
    let mut given = policy_manifest("g");
    let properties = json!({"a": {}, "b": {}, "c": {}});
    given.parameters_schema = Some(json!({"type": "object", "properties": properties}).into());
    given.kind_parameters = vec![parameter("a", KindRole::Reads)];
    assert_eq!(check(&given), Ok(()));
    given.kind_parameters.push(parameter("b", KindRole::Owned));
    given.kind_parameters.push(parameter("c", KindRole::Primary));
    let errors = check(&given).unwrap_err();
    expect![[r#"
        kindParameters[1].role: Owned is only for a guest with a primary; a policy has the role Reads
        kindParameters[2].role: Primary is only for a guest with a primary; a policy has the role Reads
        kindParameters[2].role: a guest whose primary is a parameter decorates its primaries; set decorates"#]]
    .assert_eq(&errors.join("\n"));
}
