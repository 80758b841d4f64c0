//! A candidate whose definitions would accept less than the installed ones is refused and blocked.

use expect_test::expect;

use super::*;

/// The operator's answer to such a definition.
fn incompatible() -> Result<(), Rejection> {
    let message = "the CustomResourceDefinition x would take less: .spec.color is gone";
    Err(Rejection::new(reason::CRD_NOT_ADDITIVE, message, RetryPolicy::Later))
}

/// `a` is active, and `b` is refused for its definitions.
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
        crds("b", incompatible()),
    ] {
        machine.step(event);
    }
    machine
}

fn conditions(machine: &Machine) -> String {
    let show = |condition: Condition| {
        let Condition { type_, status, reason, message } = condition;
        format!("{type_}={} {reason}: {message}\n", status.as_str())
    };
    named(&machine.conditions().into_iter().map(show).collect::<String>())
}

#[test]
fn conditions_name_the_incompatible_field_and_the_active_revision_stays() {
    expect![[r#"
        Blocked=True CRDIncompatible: b is blocked, and an approval does not help: the CustomResourceDefinition x would take less: .spec.color is gone.
        Healthy=Unknown NotReconciled: No run has ended yet.
        Held=False NoApprovalNeeded: No candidate waits for an approval.
        Loaded=False CRDIncompatible: b is refused: the CustomResourceDefinition x would take less: .spec.color is gone. a (a) stays active.
        Ready=False CRDIncompatible: b is refused: the CustomResourceDefinition x would take less: .spec.color is gone. a (a) stays active.
        Serving=True RevisionActive: a (a) is active.
    "#]]
    .assert_eq(&conditions(&refused_for_definitions()));
}

#[test]
fn a_candidate_held_for_a_definition_is_retried_without_approval_when_the_definition_changes() {
    let mut machine = refused_for_definitions();
    let before = conditions(&machine);
    for _ in 0..2 {
        // It is not loaded again, and the conditions stay while it is tried and when it fails.
        let effects = machine.step(Event::Retry);
        assert_eq!(effects, [Effect::InstallCrds(digest("b")), Effect::Report]);
        assert_eq!(conditions(&machine), before);
        assert_eq!(machine.refused().map(|(digest, _)| digest), Some(digest("b")));
        let effects = machine.step(crds("b", incompatible()));
        assert_eq!(effects, [DirectEffect::RetryLater.into(), Effect::Report]);
        assert_eq!(conditions(&machine), before);
    }
    machine.step(Event::Retry);
    machine.step(crds("b", Ok(())));
    machine.step(Event::Committed { digest: digest("b"), result: Ok(()) });
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("b")));
    assert!(
        conditions(&machine).contains("Held=False NoApprovalNeeded"),
        "{}",
        conditions(&machine)
    );
    assert_eq!(machine.refused(), None);
}

#[test]
fn an_approval_does_not_activate_an_incompatible_definition() {
    let mut machine = refused_for_definitions();
    assert!(machine.step(approve("b")).contains(&Effect::Fetch));
    machine.step(source("b"));
    machine.step(crds("b", incompatible()));
    assert_eq!(machine.active().map(|active| active.digest), Some(digest("a")));
    assert!(
        conditions(&machine).contains("Blocked=True CRDIncompatible"),
        "{}",
        conditions(&machine)
    );
}

#[test]
fn candidate_refused_for_another_reason_is_neither_held_nor_blocked() {
    let mut machine = refused_for_definitions();
    machine.step(Event::Retry);
    machine.step(crds("b", Err(rejection("CRDForbidden", RetryPolicy::Later))));
    assert!(
        conditions(&machine).contains("Held=False NoApprovalNeeded"),
        "{}",
        conditions(&machine)
    );
    assert!(conditions(&machine).contains("Ready=False CRDForbidden"), "{}", conditions(&machine));
}
