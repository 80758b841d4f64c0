//! A definition of the active revision that somebody deletes is installed again.

use expect_test::expect;

use super::*;
use crate::installed_crds::InstalledCrds;

const CRD: &str = "xs.quay.io";

fn deleted() -> Event {
    Event::CrdsDeleted(vec![CRD.to_owned()])
}

fn reinstalled(name: &str) -> Event {
    Event::CrdsReinstalled { digest: digest(name), result: Ok(()) }
}

/// The definition did not exist, and was created.
fn written() -> Event {
    let created = vec![CRD.to_owned()];
    Event::CrdsWritten(InstalledCrds { created, adopted: Vec::new() })
}

fn not_reinstalled(name: &str, retry: RetryPolicy) -> Event {
    Event::CrdsReinstalled { digest: digest(name), result: Err(rejection("CRDForbidden", retry)) }
}

fn paused(generation: i64, paused: bool) -> Event {
    Event::Spec { generation, spec: Ok(Spec { paused, ..plain() }) }
}

/// The message of the condition Ready after these events, given the active revision `a`.
fn ready_after(events: impl IntoIterator<Item = Event>) -> String {
    let mut machine = Machine::default();
    run(&mut machine, [spec(1), source("a"), loaded("a", false)]);
    run(&mut machine, events);
    let ready = machine.conditions().into_iter().find(|one| one.type_ == "Ready").unwrap();
    format!("{} {}: {}", ready.status.as_str(), ready.reason, ready.message)
}

#[test]
fn deleted_definition_is_installed_again_after_a_wait() {
    check_active(
        spec(1),
        [
            deleted(),
            deleted(),
            Event::ReinstallCrds,
            Event::CrdFound(CRD.into()),
            written(),
            reinstalled("a"),
        ],
        &expect![[r#"
            event                   active  candidate  Ready                effects
            deleted CRD xs.quay.io  a       -          False CRDDeleted     Notify(CRDDeleted), ReinstallLater, Report
            deleted CRD xs.quay.io  a       -          False CRDDeleted
            time to install         a       -          False CRDDeleted     ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            found CRD xs.quay.io    a       -          False CRDDeleted
            written CRDs            a       -          False CRDDeleted     Notify(CRDReinstalled)
            reinstalled a           a       -          True RevisionActive  Report
        "#]],
    );
}

#[test]
fn definition_deleted_during_its_installation_is_installed_once_more() {
    check_active(
        spec(1),
        [
            deleted(),
            Event::ReinstallCrds,
            deleted(),
            written(),
            reinstalled("a"),
            Event::ReinstallCrds,
        ],
        &expect![[r#"
            event                   active  candidate  Ready             effects
            deleted CRD xs.quay.io  a       -          False CRDDeleted  Notify(CRDDeleted), ReinstallLater, Report
            time to install         a       -          False CRDDeleted  ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            deleted CRD xs.quay.io  a       -          False CRDDeleted
            written CRDs            a       -          False CRDDeleted  Notify(CRDReinstalled)
            reinstalled a           a       -          False CRDDeleted  ReinstallLater
            time to install         a       -          False CRDDeleted  ReinstallCrds { digest: a, names: ["xs.quay.io"] }
        "#]],
    );
}

#[test]
fn definition_that_somebody_else_installs_is_not_installed() {
    check_active(
        spec(1),
        [deleted(), Event::CrdFound(CRD.into()), Event::ReinstallCrds],
        &expect![[r#"
            event                   active  candidate  Ready                effects
            deleted CRD xs.quay.io  a       -          False CRDDeleted     Notify(CRDDeleted), ReinstallLater, Report
            found CRD xs.quay.io    a       -          True RevisionActive  Report
            time to install         a       -          True RevisionActive
        "#]],
    );
}

#[test]
fn failed_installation_is_tried_again_later_and_warns_once() {
    check_active(
        spec(1),
        [
            deleted(),
            Event::ReinstallCrds,
            not_reinstalled("a", RetryPolicy::Later),
            Event::ReinstallCrds,
            not_reinstalled("a", RetryPolicy::Later),
            Event::ReinstallCrds,
            not_reinstalled("a", RetryPolicy::WhenSpecChanges),
            spec(2),
            written(),
            reinstalled("a"),
        ],
        &expect![[r#"
            event                   active  candidate  Ready                effects
            deleted CRD xs.quay.io  a       -          False CRDDeleted     Notify(CRDDeleted), ReinstallLater, Report
            time to install         a       -          False CRDDeleted     ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            not reinstalled a       a       -          False CRDForbidden   Notify(CRDForbidden), ReinstallLater, Report
            time to install         a       -          False CRDForbidden   ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            not reinstalled a       a       -          False CRDForbidden   ReinstallLater
            time to install         a       -          False CRDForbidden   ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            not reinstalled a       a       -          False CRDForbidden   Notify(CRDForbidden)
            spec 2                  a       -          False CRDForbidden   ApplySettings, ReinstallCrds { digest: a, names: ["xs.quay.io"] }, Report
            written CRDs            a       -          False CRDForbidden   Notify(CRDReinstalled)
            reinstalled a           a       -          True RevisionActive  Report
        "#]],
    );
}

#[test]
fn definition_stays_deleted_while_the_module_is_paused() {
    check_active(
        spec(1),
        [
            paused(2, true),
            deleted(),
            Event::ReinstallCrds,
            paused(3, false),
            written(),
            reinstalled("a"),
        ],
        &expect![[r#"
            event                   active  candidate  Ready                effects
            spec 2                  a       -          False Paused         ApplySettings, Report
            deleted CRD xs.quay.io  a       -          False CRDDeleted     Notify(CRDDeleted), Report
            time to install         a       -          False CRDDeleted
            spec 3                  a       -          False CRDDeleted     ApplySettings, ReinstallCrds { digest: a, names: ["xs.quay.io"] }, Report
            written CRDs            a       -          False CRDDeleted     Notify(CRDReinstalled)
            reinstalled a           a       -          True RevisionActive  Report
        "#]],
    );
}

#[test]
fn candidate_loads_while_a_definition_is_installed_again() {
    check_active(
        spec(1),
        [
            source("b"),
            deleted(),
            Event::ReinstallCrds,
            loaded("b", true),
            written(),
            reinstalled("a"),
            deleted(),
            Event::ReinstallCrds,
            crds("b", Ok(())),
            // The answer for a revision that is not active any more.
            written(),
            reinstalled("a"),
        ],
        &expect![[r#"
            event                   active  candidate             Ready                 effects
            source b                a       loading b             False Loading         Load(b), Report
            deleted CRD xs.quay.io  a       loading b             False CRDDeleted      Notify(CRDDeleted), ReinstallLater, Report
            time to install         a       loading b             False CRDDeleted      ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            loaded b                a       installing CRDs of b  False CRDDeleted      InstallCrds(b), Report
            written CRDs            a       installing CRDs of b  False CRDDeleted      Notify(CRDReinstalled)
            reinstalled a           a       installing CRDs of b  False InstallingCRDs  Report
            deleted CRD xs.quay.io  a       installing CRDs of b  False CRDDeleted      Notify(CRDDeleted), ReinstallLater, Report
            time to install         a       installing CRDs of b  False CRDDeleted      ReinstallCrds { digest: a, names: ["xs.quay.io"] }
            CRDs of b               b       -                     True RevisionActive   Commit(b), Report, Swap(b), Notify(RevisionActive), Report
            written CRDs            b       -                     True RevisionActive
            reinstalled a           b       -                     True RevisionActive
        "#]],
    );
}

#[test]
fn definition_is_not_installed_again_without_an_active_revision_or_during_a_teardown() {
    check(
        [spec(1), deleted(), Event::ReinstallCrds, source("a"), loaded("a", true), deleted()],
        &expect![[r#"
            event                   active  candidate             Ready                 effects
            spec 1                  -       -                     False Waiting         Fetch, Report
            deleted CRD xs.quay.io  -       -                     False Waiting
            time to install         -       -                     False Waiting
            source a                -       loading a             False Loading         Load(a), Report
            loaded a                -       installing CRDs of a  False InstallingCRDs  InstallCrds(a), Report
            deleted CRD xs.quay.io  -       installing CRDs of a  False InstallingCRDs
        "#]],
    );
    check_active(
        spec(1),
        [deleted(), Event::Deleting, Event::ReinstallCrds, deleted(), Event::ReinstallCrds],
        &expect![[r#"
            event                   active  candidate  Ready             effects
            deleted CRD xs.quay.io  a       -          False CRDDeleted  Notify(CRDDeleted), ReinstallLater, Report
            deleting                a       teardown   False Finalizing  Teardown, Report
            time to install         a       teardown   False Finalizing
            deleted CRD xs.quay.io  a       teardown   False Finalizing
            time to install         a       teardown   False Finalizing
        "#]],
    );
}

#[test]
fn condition_ready_says_what_is_deleted_and_what_the_host_does() {
    let refused = || not_reinstalled("a", RetryPolicy::Later);
    let messages = [
        ready_after([deleted()]),
        ready_after([deleted(), Event::ReinstallCrds, refused()]),
        ready_after([deleted(), Event::ReinstallCrds, refused(), paused(2, true)]),
        ready_after([deleted(), Event::ReinstallCrds, written(), reinstalled("a")]),
    ];
    expect![[r#"
        False CRDDeleted: The CustomResourceDefinition xs.quay.io was deleted, with all its objects: the host installs it again.
        False CRDForbidden: The CustomResourceDefinition xs.quay.io was deleted, with all its objects: it is not installed again: because of CRDForbidden.
        False CRDDeleted: The CustomResourceDefinition xs.quay.io was deleted, with all its objects: the Module is paused, so the host does not install it again.
        True RevisionActive: The present source is active with the present spec."#]].assert_eq(&messages.join("\n"));
}
