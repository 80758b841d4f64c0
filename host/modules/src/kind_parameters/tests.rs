use expect_test::{Expect, expect};
use innkeeper_contract::Kind;
use serde_json::json;

use super::*;
use crate::resolved_manifest::resolve;
use crate::{manifest, testing};

fn parameter(name: &str, role: KindRole) -> KindParameter {
    KindParameter { parameter: name.to_owned(), role, merges: false, optional: false }
}

/// A manifest of a decorator with a parameter for each role.
fn manifest() -> Manifest {
    let mut manifest = testing::manifest("g");
    manifest.primary = Some(Kind::namespaced("apps/v1", "StatefulSet", "statefulsets"));
    manifest.decorates = true;
    manifest.parameters_schema = Some(
        json!({"properties": {
            "target": {}, "copies": {}, "watch": {}, "size": {},
        }})
        .into(),
    );
    manifest.kind_parameters = vec![
        parameter("target", KindRole::Primary),
        parameter("copies", KindRole::Owned),
        parameter("watch", KindRole::Reads),
    ];
    manifest
}

fn kind_of(name: &KindName) -> Kind {
    Kind::namespaced(&*name.api_version, &*name.kind, format!("{}s", name.kind.to_lowercase()))
}

/// Resolves parameters as if the API server served every kind.
fn resolved(manifest: &Manifest, parameters: &Value) -> Result<Manifest, Vec<String>> {
    let kinds = requested(manifest, parameters)?.into_iter().map(|one| {
        let kind = kind_of(&one.name);
        (one, kind)
    });
    resolve(manifest, kinds.collect())
}

fn refused(parameters: &Value, expected: &Expect) {
    expected.assert_eq(&resolved(&manifest(), parameters).unwrap_err().join("\n"));
}

fn wrong(change: impl FnOnce(&mut Manifest), expected: &Expect) {
    let mut manifest = manifest();
    change(&mut manifest);
    expected.assert_eq(&manifest::check(&manifest).unwrap_err().join("\n"));
}

fn kind(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind})
}

#[test]
fn kinds_of_parameters_are_added_by_their_role() {
    let parameters = json!({
        "target": kind("apps/v1", "Deployment"),
        "copies": [kind("v1", "Secret"), kind("v1", "ConfigMap")],
        "watch": kind("v1", "Node"),
        "size": 3,
    });
    let manifest = resolved(&manifest(), &parameters).unwrap();
    let deployment = Kind::namespaced("apps/v1", "Deployment", "deployments");
    assert_eq!(manifest.primary, Some(deployment));
    let owned: Vec<_> = manifest.owned.iter().map(|owned| owned.kind.to_string()).collect();
    assert_eq!(owned, ["v1 ConfigMap", "v1 Secret"], "a kind that is listed already is one kind");
    assert_eq!(manifest.reads, [Kind::namespaced("v1", "Node", "nodes")]);
    assert_eq!(manifest.kind_parameters, []);
}

#[test]
fn parameters_that_are_left_out_change_no_kind() {
    let described = manifest();
    let expected = Manifest { kind_parameters: Vec::new(), ..described.clone() };
    for parameters in [Value::Null, json!({}), json!({"target": null, "copies": [], "watch": null})]
    {
        assert_eq!(resolved(&described, &parameters).as_ref(), Ok(&expected), "{parameters}");
    }
}

#[test]
fn owned_kind_that_is_named_twice_has_the_rights_that_both_need() {
    let mut described = manifest();
    described.owned[0].merges = true;
    described.owned[0].optional = true;
    described.kind_parameters[1].optional = true;
    let manifest = resolved(&described, &json!({"copies": kind("v1", "ConfigMap")})).unwrap();
    let [owned] = &*manifest.owned else { panic!("{:?}", manifest.owned) };
    assert!(!owned.merges && owned.optional);
}

#[test]
fn values_that_name_no_kind_are_refused_with_their_place() {
    refused(
        &json!({
            "target": [kind("apps/v1", "Deployment")],
            "copies": [kind("v1", "pods/exec"), kind("../v1", "Pod"), {"kind": "Pod"}, "Pod"],
            "watch": vec![kind("v1", "Pod"); 10_000],
        }),
        &expect![[r#"
            spec.parameters.target: is a list, and a guest has one primary; write apiVersion and kind, as in {apiVersion: apps/v1, kind: Deployment}
            spec.parameters.copies[0].kind: "pods/exec" is not a CamelCase name
            spec.parameters.copies[1].apiVersion: "../v1" is not a group and a version
            spec.parameters.copies[2]: names no kind; write apiVersion and kind, as in {apiVersion: apps/v1, kind: Deployment}
            spec.parameters.copies[3]: names no kind; write apiVersion and kind, as in {apiVersion: apps/v1, kind: Deployment}
            spec.parameters.watch: 10000 kinds are more than the 20 that a parameter may name"#]],
    );
}

#[test]
fn kinds_that_no_guest_may_have_are_refused_as_parameters_too() {
    refused(
        &json!({
            "target": kind("innkeeper.dev/v1alpha1", "Module"),
            "copies": [
                kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
                kind("innkeeper.dev/v1alpha1", "Module"),
                kind("v1", "List"),
            ],
        }),
        &expect![[r#"
            primary: kinds of innkeeper.dev are the host's own
            owned[1].kind: CustomResourceDefinition cannot be owned; describe definitions in crds
            owned[2].kind: kinds of innkeeper.dev are the host's own
            owned[3].kind.kind: List is no kind of its own"#]],
    );
}

#[test]
fn plural_of_an_aggregated_server_that_is_no_name_is_refused() {
    let mut all = requested(&manifest(), &json!({"watch": kind("x.dev/v1", "Foo")})).unwrap();
    let kind = Kind::namespaced("x.dev/v1", "Foo", "../..");
    let errors = resolve(&manifest(), vec![(all.remove(0), kind)]).unwrap_err();
    assert_eq!(errors, [r#"reads[0].plural: "../.." is not a lower-case plural"#]);
}

#[test]
fn primary_whose_definition_the_guest_installs_is_refused() {
    let mut described = manifest();
    described.crds = vec![json!({"spec": {"group": "x.dev", "names": {"kind": "Foo"}}}).into()];
    let errors = resolved(&described, &json!({"target": kind("x.dev/v1", "Foo")})).unwrap_err();
    assert_eq!(
        errors,
        [
            "spec.parameters.target: the guest installs the definition of x.dev/v1 Foo, so x.dev/v1 Foo is no kind that it decorates; name another kind"
        ]
    );
}

#[test]
fn kind_parameters_that_make_no_sense_are_refused_in_the_manifest() {
    assert_eq!(manifest::check(&manifest()), Ok(()));
    wrong(
        |manifest| {
            manifest.decorates = false;
            manifest.kind_parameters = vec![
                parameter("target", KindRole::Primary),
                parameter("target", KindRole::Primary),
                KindParameter { merges: true, ..parameter("watch", KindRole::Reads) },
                parameter("other", KindRole::Reads),
            ];
        },
        &expect![[r#"
            kindParameters[0].role: a guest whose primary is a parameter decorates its primaries; set decorates
            kindParameters[1].parameter: "target" is named twice
            kindParameters[1].role: another parameter has the role Primary
            kindParameters[1].role: a guest whose primary is a parameter decorates its primaries; set decorates
            kindParameters[2]: merges and optional are for the role Owned
            kindParameters[3].parameter: "other" is no property of parametersSchema; add it there"#]],
    );
    wrong(
        |manifest| {
            manifest.parameters_schema = None;
            manifest.kind_parameters.truncate(1);
        },
        &expect![[
            r#"kindParameters[0].parameter: "target" is no property of parametersSchema; add it there"#
        ]],
    );
    wrong(
        |manifest| manifest.kind_parameters = vec![parameter("size", KindRole::Reads); 9],
        &expect!["kindParameters: 9 are more than the 8 that a guest may have"],
    );
}
