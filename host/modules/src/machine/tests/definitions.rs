//! A version whose definitions would take less than the installed ones: refused, and a person is
//! told.

use super::*;

/// What the operator says of such a definition.
fn breaks() -> Result<(), Rejection> {
    let message = "the CustomResourceDefinition x would take less: .spec.color is gone";
    Err(Rejection::new(reason::CRD_NOT_ADDITIVE, message, RetryPolicy::Later))
}

/// `a` serves, and `b` is refused for its definitions.
fn refused_for_definitions() -> Machine {
    let mut machine = Machine::default();
    for event in [
        spec(1),
        source("a"),
        loaded("a", true),
        crds("a", Ok(())),
        Event::Committed { digest: digest("a"), result: Ok(()) },
        source("b"),
        loaded("b", true),
        crds("b", breaks()),
    ] {
        machine.step(event);
    }
    machine
}

fn said(machine: &Machine) -> String {
    let told = |condition: Condition| {
        let Condition { type_, status, reason, message } = condition;
        format!("{type_}={} {reason}: {message}\n", status.as_str())
    };
    named(&machine.conditions().into_iter().map(told).collect::<String>())
}

#[test]
fn the_conditions_name_the_place_and_the_old_version_goes_on() {
    expect![[r#"
        Blocked=True CRDIncompatible: b is blocked, and an approval does not help: the CustomResourceDefinition x would take less: .spec.color is gone.
        Healthy=Unknown NotReconciled: No run has ended yet.
        Held=False NoApprovalNeeded: No candidate waits for an approval.
        Loaded=False CRDIncompatible: b is refused: the CustomResourceDefinition x would take less: .spec.color is gone. a (a) stays active.
        Ready=False CRDIncompatible: b is refused: the CustomResourceDefinition x would take less: .spec.color is gone. a (a) stays active.
        Serving=True RevisionActive: a (a) is active.
    "#]]
    .assert_eq(&said(&refused_for_definitions()));
}

#[test]
fn a_candidate_held_for_a_definition_is_retried_without_approval_when_the_definition_changes() {
    let mut machine = refused_for_definitions();
    let before = said(&machine);
    for _ in 0..2 {
        // It is not loaded again, and nothing is said while it is tried or when it is in vain.
        let effects = machine.step(Event::Retry);
        assert_eq!(effects, [Effect::InstallCrds(digest("b")), Effect::Report]);
        assert_eq!(said(&machine), before);
        assert_eq!(machine.refused().map(|(digest, _)| digest), Some(digest("b")));
        let effects = machine.step(crds("b", breaks()));
        assert_eq!(effects, [Effect::RetryLater, Effect::Report]);
        assert_eq!(said(&machine), before);
    }
    machine.step(Event::Retry);
    machine.step(crds("b", Ok(())));
    machine.step(Event::Committed { digest: digest("b"), result: Ok(()) });
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("b")));
    assert!(said(&machine).contains("Held=False NoApprovalNeeded"), "{}", said(&machine));
    assert_eq!(machine.refused(), None);
}

#[test]
fn an_approval_does_not_activate_an_incompatible_definition() {
    let mut machine = refused_for_definitions();
    assert!(machine.step(approve("b")).contains(&Effect::Fetch));
    machine.step(source("b"));
    machine.step(crds("b", breaks()));
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("a")));
    assert!(said(&machine).contains("Blocked=True CRDIncompatible"), "{}", said(&machine));
}

#[test]
fn other_refusals_hold_nothing() {
    let mut machine = refused_for_definitions();
    machine.step(Event::Retry);
    machine.step(crds("b", Err(rejection("CRDForbidden", RetryPolicy::Later))));
    assert!(said(&machine).contains("Held=False NoApprovalNeeded"), "{}", said(&machine));
    assert!(said(&machine).contains("Ready=False CRDForbidden"), "{}", said(&machine));
}
