//! Installations of definitions: their results, and what the spec allows meanwhile.

use super::*;

/// The component `a` describes one definition.
fn loaded_with_definition() -> Input<Fake> {
    loaded("a", |manifest| {
        manifest.crds = vec![
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "xs.quay.io"},
                "spec": {"group": "quay.io", "names": {"kind": "X", "plural": "xs"},
                    "scope": "Namespaced", "versions": [{"name": "v1", "served": true}]},
            })
            .into(),
        ];
    })
}

fn adopter(members: Value) -> Value {
    let mut spec = with(json!({"allowedCRDGroups": ["quay.io"], "crds": "Adopt"}));
    let Value::Object(members) = members else { panic!("not an object") };
    spec.as_object_mut().unwrap().extend(members);
    spec
}

#[test]
fn result_of_an_earlier_installation_of_the_same_component_is_not_taken() {
    let refused = |reason: &str| Err(Rejection::new(reason, "refused", RetryPolicy::Later));
    check(
        &mut driver(),
        [
            ("spec 1", module(1, &adopter(json!({"allowedCRDGroups": []})))),
            ("source a", source("a")),
            ("loaded a", loaded_with_definition()),
            ("spec 2", module(2, &adopter(json!({})))),
            ("loaded a", loaded_with_definition()),
            ("earlier installation", installed(1, "a", refused("CRDGroupNotAllowed"))),
            ("earlier installation", installed(1, "a", Ok(()))),
            ("installation", installed(2, "a", refused("CRDForbidden"))),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                install xs.quay.io granted=false, over foreign ones
                report 1 InstallingCRDs
            spec 2
                load a within 67108864 bytes
                report 2 Loading
            loaded a
                install xs.quay.io granted=true, over foreign ones
                report 2 InstallingCRDs
            earlier installation
            earlier installation
            installation
                notify CRDForbidden
                retry later
                report 2 CRDForbidden
        "#]],
    );
}

#[test]
fn definitions_that_a_superseded_installation_wrote_are_named_in_an_event() {
    let adopted = vec![AdoptedCrd {
        name: "xs.quay.io".to_owned(),
        display_losses: vec!["the short name x".to_owned()],
    }];
    let mut driver = driver();
    for input in
        [module(1, &adopter(json!({}))), source("a"), loaded_with_definition(), source("b")]
    {
        driver.handle("m", input);
    }
    let actions = driver.handle(
        "m",
        Input::CrdsInstalled(Box::new(FinishedInstallation {
            purpose: CrdPurpose::Candidate,
            number: 1,
            digest: component("a").digest,
            written: InstalledCrds { created: Vec::new(), adopted },
            result: Ok(()),
        })),
    );
    let messages: Vec<_> = actions
        .iter()
        .filter_map(|action| match action {
            Action::Direct(DirectEffect::Notify(notice)) => {
                Some(format!("{}: {}", notice.reason, notice.message))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        messages,
        [
            "CRDAdopted: The foreign CustomResourceDefinition xs.quay.io is the module's now; kubectl does not know any more: the short name x."
        ]
    );
    assert_eq!(driver.active_digest("m"), None);
}

#[test]
fn definitions_are_adopted_once_the_module_is_not_paused() {
    let mut driver = driver();
    check(
        &mut driver,
        [
            ("spec 1", module(1, &adopter(json!({"paused": true})))),
            ("source a", source("a")),
            ("loaded a", loaded_with_definition()),
            ("installation", installed(1, "a", Ok(()))),
            ("spec 2", module(2, &adopter(json!({})))),
        ],
        &expect![[r#"
            spec 1
                fetch ConfigMap innkeeper-modules/m-1
                report 1 Waiting
            source a
                load a within 67108864 bytes
                report 1 Loading
            loaded a
                install xs.quay.io granted=true
                report 1 InstallingCRDs
            installation
                commit
                report 1 Committing
                activate a #1 parameters=null memory=67108864
                notify RevisionActive
                report 1 Paused
            spec 2
                activate a #2 parameters=null memory=67108864
                install xs.quay.io granted=true, over foreign ones
                report 2 AdoptingCRDs
        "#]],
    );
}

#[test]
fn grant_of_definitions_follows_the_spec_and_ends_with_the_module() {
    let mut driver = driver();
    let grant = |driver: &Driver<Fake>| {
        let CrdGrant { groups, adopts, .. } = driver.crd_grant("m");
        (groups.into_iter().collect::<Vec<_>>().join(","), adopts)
    };
    assert_eq!(grant(&driver), (String::new(), false));
    driver.handle("m", module(1, &adopter(json!({}))));
    assert_eq!(grant(&driver), ("quay.io".to_owned(), true));
    assert!(driver.reinstalls_crd("m", "xs.quay.io") && !driver.reinstalls_crd("m", "xs.a.io"));
    driver.handle("m", module(2, &adopter(json!({"paused": true}))));
    assert_eq!(grant(&driver), ("quay.io".to_owned(), false));
    assert!(!driver.reinstalls_crd("m", "xs.quay.io"));
    driver.handle("m", module(3, &with(json!({"allowedCRDGroups": ["a.io"]}))));
    assert_eq!(grant(&driver), ("a.io".to_owned(), false));
    driver.handle("m", Event::Deleting);
    assert_eq!(grant(&driver), (String::new(), false));
}

#[test]
fn grant_of_definitions_follows_the_present_approval() {
    let mut driver = driver();
    driver.handle("m", module(1, &adopter(json!({}))));
    let change = Digest::of(b"change");
    for approve in [Some(change), None] {
        driver.handle("m", Event::Approval { approve, reject: None });
        assert_eq!(driver.crd_grant("m").approved, approve);
    }
}
