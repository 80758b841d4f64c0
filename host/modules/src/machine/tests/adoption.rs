//! Foreign definitions become those of the module.

use expect_test::expect;

use super::*;
use crate::crd_refusal::{CrdRefusal, HeldCrds};
use crate::installed_crds::{AdoptedCrd, InstalledCrds};
use crate::rollout::Example;

fn adopts(generation: i64, adopts_crds: bool) -> Event {
    Event::Spec { generation, spec: Ok(Spec { adopts_crds, ..plain() }) }
}

/// A change of a definition, which the digest of `name` approves.
fn held(name: &str) -> HeldCrds {
    HeldCrds {
        approval: digest(name),
        changes: vec![Example {
            change: PlannedChange::Change,
            object: "CustomResourceDefinition x".to_owned(),
            fields: vec![".spec.color is gone".to_owned()],
        }],
        rejection: rejection(reason::WOULD_NARROW_CRD, RetryPolicy::Never),
    }
}

fn crds_held(name: &str, change: &str) -> Event {
    Event::CrdsHeld { digest: digest(name), held: Box::new(held(change)) }
}

fn adopted(result: Result<(), CrdRefusal>) -> Event {
    Event::CrdsAdopted { digest: digest("a"), result }
}

/// The definition `x` was foreign, and is the module's.
fn written() -> Event {
    let x = AdoptedCrd { name: "x".to_owned(), ..AdoptedCrd::default() };
    Event::CrdsWritten(InstalledCrds { created: Vec::new(), adopted: vec![x] })
}

fn not_adopted(reason: &str) -> Event {
    adopted(Err(CrdRefusal::Rejected(rejection(reason, RetryPolicy::Later))))
}

#[test]
fn candidate_is_held_until_the_change_of_its_definitions_is_approved() {
    check(
        [
            adopts(1, true),
            source("a"),
            loaded("a", true),
            crds_held("a", "c"),
            // The component itself is not what waits.
            approve("a"),
            approve("c"),
            // The definition has changed since.
            crds_held("a", "b"),
            approve("b"),
            crds("a", Ok(())),
        ],
        &expect![[r#"
            event           active  candidate             Ready                 effects
            spec 1          -       -                     False Waiting         Fetch, Report
            source a        -       loading a             False Loading         Load(a), Report
            loaded a        -       installing CRDs of a  False InstallingCRDs  InstallCrds(a), Report
            CRDs of a held  -       held a                False Held            Notify(Held), Report
            approve a       -       held a                False Held
            approve c       -       installing CRDs of a  False InstallingCRDs  Notify(Approved), InstallCrds(a), Report
            CRDs of a held  -       held a                False Held            Notify(Held), Report
            approve b       -       installing CRDs of a  False InstallingCRDs  Notify(Approved), InstallCrds(a), Report
            CRDs of a       a       -                     True RevisionActive   Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn definitions_of_the_active_revision_are_adopted_when_the_spec_asks_for_it() {
    check_active(
        spec(1),
        [adopts(2, true), written(), adopted(Ok(())), adopts(3, true), adopts(4, false)],
        &expect![[r#"
            event         active  candidate  Ready                 effects
            spec 2        a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            written CRDs  a       -          Unknown AdoptingCRDs  Notify(CRDAdopted)
            adopted a     a       -          True RevisionActive   Report
            spec 3        a       -          True RevisionActive   ApplySettings, Report
            spec 4        a       -          True RevisionActive   ApplySettings, Report
        "#]],
    );
}

#[test]
fn active_revision_stays_while_its_adoption_is_held_and_refused() {
    let is_held = || adopted(Err(CrdRefusal::Held(Box::new(held("c")))));
    check_active(
        spec(1),
        [
            adopts(2, true),
            not_adopted(reason::WOULD_LOSE_DATA),
            Event::Retry,
            not_adopted(reason::WOULD_LOSE_DATA),
            Event::Retry,
            is_held(),
            approve("b"),
            approve("c"),
            written(),
            adopted(Ok(())),
        ],
        &expect![[r#"
            event          active  candidate  Ready                 effects
            spec 2         a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            not adopted a  a       -          False WouldLoseData   Notify(WouldLoseData), RetryLater, Report
            retry          a       -          False WouldLoseData   AdoptCrds(a)
            not adopted a  a       -          False WouldLoseData   RetryLater
            retry          a       -          False WouldLoseData   AdoptCrds(a)
            not adopted a  a       -          False WouldNarrowCRD  Notify(WouldNarrowCRD), Report
            approve b      a       -          False WouldNarrowCRD
            approve c      a       -          False WouldNarrowCRD  Notify(Approved), AdoptCrds(a)
            written CRDs   a       -          False WouldNarrowCRD  Notify(CRDAdopted)
            adopted a      a       -          True RevisionActive   Report
        "#]],
    );
    check_active(
        spec(1),
        [adopts(2, true), is_held(), adopts(3, false), approve("c")],
        &expect![[r#"
            event          active  candidate  Ready                 effects
            spec 2         a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            not adopted a  a       -          False WouldNarrowCRD  Notify(WouldNarrowCRD), Report
            spec 3         a       -          True RevisionActive   ApplySettings, Report
            approve c      a       -          True RevisionActive
        "#]],
    );
}

#[test]
fn revision_that_was_active_before_a_restart_is_active_before_its_definitions_are_adopted() {
    check(
        [
            status_loaded("a", &[]),
            adopts(1, true),
            source("a"),
            loaded("a", true),
            crds("a", Ok(())),
            adopted(Err(CrdRefusal::Held(Box::new(held("c"))))),
        ],
        &expect![[r#"
            event          active  candidate             Ready                 effects
            status loaded  -       -                     False Waiting
            spec 1         -       -                     False Waiting         Fetch, Report
            source a       -       loading a             False Loading         Load(a), Report
            loaded a       -       installing CRDs of a  False InstallingCRDs  InstallCrds(a), Report
            CRDs of a      a       -                     Unknown AdoptingCRDs  SaveSnapshot(a), Swap(a), AdoptCrds(a), Report
            not adopted a  a       -                     False WouldNarrowCRD  Notify(WouldNarrowCRD), Report
        "#]],
    );
}

#[test]
fn conditions_say_what_is_held_and_how_to_approve_it() {
    let mut machine = Machine::default();
    run(&mut machine, [spec(1), source("a"), loaded("a", false), adopts(2, true)]);
    let shown = |machine: &Machine| {
        let conditions = machine.conditions().into_iter();
        let lines: Vec<String> = conditions
            .filter(|one| ["Blocked", "Held", "Ready"].contains(&&*one.type_))
            .map(|one| {
                format!("{}={} {}: {}", one.type_, one.status.as_str(), one.reason, one.message)
            })
            .collect();
        let text = lines.join("\n");
        text.replace(&digest("c").to_string(), "C").replace(&digest("a").short(), "a")
    };
    run(&mut machine, [adopted(Err(CrdRefusal::Held(Box::new(held("c")))))]);
    assert_eq!(machine.held_crds(), Some(digest("c")));
    expect![[r#"
        Blocked=False CRDsCompatible: No candidate is blocked.
        Held=True WouldNarrowCRD: because of WouldNarrowCRD. To approve it, annotate the Module with innkeeper.dev/approve=C; to keep the definition, set spec.crds to Keep.
        Ready=False WouldNarrowCRD: because of WouldNarrowCRD"#]].assert_eq(&shown(&machine));
    run(&mut machine, [adopts(3, true), not_adopted(reason::WOULD_LOSE_DATA)]);
    assert_eq!(machine.held_crds(), None);
    expect![[r#"
        Blocked=True WouldLoseData: a is blocked, and an approval does not help: because of WouldLoseData.
        Held=False NoApprovalNeeded: No candidate waits for an approval.
        Ready=False WouldLoseData: because of WouldLoseData"#]].assert_eq(&shown(&machine));
}

#[test]
fn adoption_runs_again_after_a_change_of_the_spec_meanwhile() {
    check_active(
        spec(1),
        [
            adopts(2, true),
            adopts(3, true),
            adopted(Ok(())),
            adopts(4, true),
            written(),
            adopted(Ok(())),
            adopts(5, true),
        ],
        &expect![[r#"
            event         active  candidate  Ready                 effects
            spec 2        a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            spec 3        a       -          Unknown AdoptingCRDs  ApplySettings, Report
            adopted a     a       -          Unknown AdoptingCRDs  AdoptCrds(a)
            spec 4        a       -          Unknown AdoptingCRDs  ApplySettings, Report
            written CRDs  a       -          Unknown AdoptingCRDs  Notify(CRDAdopted)
            adopted a     a       -          Unknown AdoptingCRDs  AdoptCrds(a)
            spec 5        a       -          Unknown AdoptingCRDs  ApplySettings, Report
        "#]],
    );
}

#[test]
fn adoption_that_is_not_asked_for_any_more_ends_with_the_try_under_way() {
    check_active(
        spec(1),
        [
            adopts(2, true),
            adopts(3, false),
            adopts(4, true),
            not_adopted(reason::WOULD_LOSE_DATA),
            adopts(5, false),
            not_adopted(reason::WOULD_LOSE_DATA),
            Event::Retry,
        ],
        &expect![[r#"
            event          active  candidate  Ready                 effects
            spec 2         a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            spec 3         a       -          True RevisionActive   ApplySettings, Report
            spec 4         a       -          Unknown AdoptingCRDs  ApplySettings, Report
            not adopted a  a       -          Unknown AdoptingCRDs  AdoptCrds(a)
            spec 5         a       -          True RevisionActive   ApplySettings, Report
            not adopted a  a       -          True RevisionActive
            retry          a       -          True RevisionActive
        "#]],
    );
}

#[test]
fn approval_during_a_try_is_acted_on_when_the_try_ends() {
    let is_held = || adopted(Err(CrdRefusal::Held(Box::new(held("c")))));
    check_active(
        spec(1),
        [
            adopts(2, true),
            is_held(),
            adopts(3, true),
            is_held(),
            adopts(4, true),
            approve("c"),
            is_held(),
            written(),
            adopted(Ok(())),
        ],
        &expect![[r#"
            event          active  candidate  Ready                 effects
            spec 2         a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            not adopted a  a       -          False WouldNarrowCRD  Notify(WouldNarrowCRD), Report
            spec 3         a       -          False WouldNarrowCRD  ApplySettings, AdoptCrds(a), Report
            not adopted a  a       -          False WouldNarrowCRD
            spec 4         a       -          False WouldNarrowCRD  ApplySettings, AdoptCrds(a), Report
            approve c      a       -          False WouldNarrowCRD  Notify(Approved)
            not adopted a  a       -          False WouldNarrowCRD  AdoptCrds(a)
            written CRDs   a       -          False WouldNarrowCRD  Notify(CRDAdopted)
            adopted a      a       -          True RevisionActive   Report
        "#]],
    );
}

#[test]
fn held_adoption_is_tried_again_only_after_a_change_of_the_definition() {
    let rests = || {
        let mut held = held("c");
        held.rejection.retry = RetryPolicy::WhenSpecChanges;
        adopted(Err(CrdRefusal::Held(Box::new(held))))
    };
    check_active(
        spec(1),
        [
            adopts(2, true),
            rests(),
            Event::Retry,
            Event::CrdChanged,
            Event::Retry,
            // It changes again while it is compared.
            Event::CrdChanged,
            Event::Retry,
            rests(),
            Event::Retry,
            rests(),
            Event::Retry,
        ],
        &expect![[r#"
            event          active  candidate  Ready                 effects
            spec 2         a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            not adopted a  a       -          False WouldNarrowCRD  Notify(WouldNarrowCRD), Report
            retry          a       -          False WouldNarrowCRD
            changed CRD    a       -          False WouldNarrowCRD  RetryLater
            retry          a       -          False WouldNarrowCRD  AdoptCrds(a)
            changed CRD    a       -          False WouldNarrowCRD
            retry          a       -          False WouldNarrowCRD
            not adopted a  a       -          False WouldNarrowCRD  RetryLater
            retry          a       -          False WouldNarrowCRD  AdoptCrds(a)
            not adopted a  a       -          False WouldNarrowCRD
            retry          a       -          False WouldNarrowCRD
        "#]],
    );
}

#[test]
fn definitions_that_were_written_before_a_failure_are_named_in_events() {
    let partly = || {
        let Event::CrdsWritten(InstalledCrds { adopted, .. }) = written() else { unreachable!() };
        Event::CrdsWritten(InstalledCrds { created: vec!["y".to_owned(), "z".to_owned()], adopted })
    };
    check_active(
        spec(1),
        [
            adopts(2, true),
            partly(),
            not_adopted("CRDForbidden"),
            Event::CrdsDeleted(vec!["y".to_owned()]),
            Event::ReinstallCrds,
            partly(),
        ],
        &expect![[r#"
            event            active  candidate  Ready                 effects
            spec 2           a       -          Unknown AdoptingCRDs  ApplySettings, AdoptCrds(a), Report
            written CRDs     a       -          Unknown AdoptingCRDs  Notify(CRDAdopted)
            not adopted a    a       -          False CRDForbidden    Notify(CRDForbidden), RetryLater, Report
            deleted CRD y    a       -          False CRDDeleted      Notify(CRDDeleted), ReinstallLater, Report
            time to install  a       -          False CRDDeleted      ReinstallCrds { digest: a, names: ["y"] }
            written CRDs     a       -          False CRDDeleted      Notify(CRDAdopted), Notify(CRDReinstalled)
        "#]],
    );
}
