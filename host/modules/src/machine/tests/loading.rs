//! Sources, loads, specs and parameters.

use expect_test::expect;
use innkeeper_contract::EventType;

use super::*;

#[test]
fn first_component_is_loaded_and_becomes_active() {
    check(
        [spec(1), source("a"), loaded("a", false)],
        &expect![[r#"
            event     active  candidate  Ready                effects
            spec 1    -       -          False Waiting        Fetch, Report
            source a  -       loading a  False Loading        Load(a), Report
            loaded a  a       -          True RevisionActive  Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn missing_source_is_no_warning_until_a_revision_was_active() {
    let severities = |machine: &mut Machine| {
        let effects = machine.step(missing());
        let notices = effects.into_iter().filter_map(|effect| match effect {
            Effect::Direct(DirectEffect::Notify(notice)) => Some((notice.reason, notice.type_)),
            _ => None,
        });
        notices.collect::<Vec<_>>()
    };
    let mut machine = Machine::default();
    machine.step(spec(1));
    let reason = || "SourceNotFound".to_owned();
    assert_eq!(severities(&mut machine), [(reason(), EventType::Normal)]);
    run(&mut machine, [source("a"), loaded("a", false)]);
    assert_eq!(severities(&mut machine), [(reason(), EventType::Warning)]);
    let mut restarted = Machine::default();
    run(&mut restarted, [status_loaded("a", &[]), spec(1)]);
    assert_eq!(severities(&mut restarted), [(reason(), EventType::Warning)]);
}

#[test]
fn definitions_are_installed_before_the_swap() {
    check(
        [spec(1), source("a"), loaded("a", true), crds("a", Ok(()))],
        &expect![[r#"
            event      active  candidate             Ready                 effects
            spec 1     -       -                     False Waiting         Fetch, Report
            source a   -       loading a             False Loading         Load(a), Report
            loaded a   -       installing CRDs of a  False InstallingCRDs  InstallCrds(a), Report
            CRDs of a  a       -                     True RevisionActive   Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn broken_candidate_leaves_the_active_revision_and_is_not_tried_again() {
    check_active(
        spec(1),
        [
            source("b"),
            refused("b", RetryPolicy::Never),
            source("b"),
            source("a"),
            source("b"),
            spec(2),
            source("c"),
            loaded("c", false),
        ],
        &expect![[r#"
            event      active  candidate   Ready                effects
            source b   a       loading b   False Loading        Load(b), Report
            refused b  a       rejected b  False Broken         Notify(Broken), Report
            source b   a       rejected b  False Broken
            source a   a       -           True RevisionActive  Report
            source b   a       rejected b  False Broken         Report
            spec 2     a       rejected b  False Broken         ApplySettings, Report
            source c   a       loading c   False Loading        Load(c), Report
            loaded c   c       -           True RevisionActive  Commit(c), Report, Swap(c), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn candidate_refused_for_the_spec_is_tried_again_when_the_spec_changes() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::WhenSpecChanges),
            Event::Retry,
            spec(2),
            loaded("a", false),
        ],
        &expect![[r#"
            event      active  candidate   Ready                effects
            spec 1     -       -           False Waiting        Fetch, Report
            source a   -       loading a   False Loading        Load(a), Report
            refused a  -       rejected a  False Broken         Notify(Broken), Report
            retry      -       rejected a  False Broken
            spec 2     -       loading a   False Loading        Load(a), Report
            loaded a   a       -           True RevisionActive  Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn version_refused_for_now_is_loaded_again_when_the_source_returns_to_it() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::Later),
            source("b"),
            loaded("b", false),
            source("a"),
            loaded("a", false),
        ],
        &expect![[r#"
            event      active  candidate   Ready                effects
            spec 1     -       -           False Waiting        Fetch, Report
            source a   -       loading a   False Loading        Load(a), Report
            refused a  -       rejected a  False Broken         Notify(Broken), RetryLater, Report
            source b   -       loading b   False Loading        Load(b), Report
            loaded b   b       -           True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), Report
            source a   b       loading a   False Loading        Load(a), Report
            loaded a   a       -           True RevisionActive  Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn version_refused_for_good_is_not_loaded_again_when_the_source_returns_to_it() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::Never),
            source("b"),
            loaded("b", false),
            source("a"),
        ],
        &expect![[r#"
            event      active  candidate   Ready                effects
            spec 1     -       -           False Waiting        Fetch, Report
            source a   -       loading a   False Loading        Load(a), Report
            refused a  -       rejected a  False Broken         Notify(Broken), Report
            source b   -       loading b   False Loading        Load(b), Report
            loaded b   b       -           True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), Report
            source a   b       rejected a  False Broken         Report
        "#]],
    );
}

#[test]
fn candidate_refused_for_now_is_tried_again_after_the_backoff() {
    check(
        [
            spec(1),
            source("a"),
            refused("a", RetryPolicy::Later),
            Event::Retry,
            loaded("a", true),
            crds("a", Err(rejection("Forbidden", RetryPolicy::Later))),
            Event::Retry,
            loaded("a", true),
            crds("a", Ok(())),
            Event::Retry,
        ],
        &expect![[r#"
            event         active  candidate             Ready                effects
            spec 1        -       -                     False Waiting        Fetch, Report
            source a      -       loading a             False Loading        Load(a), Report
            refused a     -       rejected a            False Broken         Notify(Broken), RetryLater, Report
            retry         -       loading a             False Broken         Load(a), Report
            loaded a      -       installing CRDs of a  False Broken         InstallCrds(a), Report
            no CRDs of a  -       rejected a            False Forbidden      Notify(Forbidden), RetryLater, Report
            retry         -       installing CRDs of a  False Forbidden      InstallCrds(a), Report
            loaded a      -       installing CRDs of a  False Forbidden
            CRDs of a     a       -                     True RevisionActive  Commit(a), Report, Swap(a), Notify(RevisionActive), Report
            retry         a       -                     True RevisionActive
        "#]],
    );
}

#[test]
fn newest_source_supersedes_a_load_and_the_ones_between_are_skipped() {
    check(
        [
            spec(1),
            source("a"),
            source("b"),
            source("c"),
            loaded("a", false),
            loaded("a", false),
            loaded("c", false),
        ],
        &expect![[r#"
            event     active  candidate  Ready                effects
            spec 1    -       -          False Waiting        Fetch, Report
            source a  -       loading a  False Loading        Load(a), Report
            source b  -       loading a  False Loading
            source c  -       loading a  False Loading
            loaded a  -       loading c  False Loading        Load(c), Report
            loaded a  -       loading c  False Loading
            loaded c  c       -          True RevisionActive  Commit(c), Report, Swap(c), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn newer_source_supersedes_an_installation_of_definitions() {
    check(
        [
            spec(1),
            source("a"),
            loaded("a", true),
            source("b"),
            crds("a", Ok(())),
            loaded("b", false),
        ],
        &expect![[r#"
            event      active  candidate             Ready                 effects
            spec 1     -       -                     False Waiting         Fetch, Report
            source a   -       loading a             False Loading         Load(a), Report
            loaded a   -       installing CRDs of a  False InstallingCRDs  InstallCrds(a), Report
            source b   -       loading b             False Loading         Load(b), Report
            CRDs of a  -       loading b             False Loading
            loaded b   b       -                     True RevisionActive   Commit(b), Report, Swap(b), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn load_is_repeated_when_the_spec_changed_in_the_meantime() {
    check(
        [
            spec(1),
            source("a"),
            spec(2),
            refused("a", RetryPolicy::WhenSpecChanges),
            loaded("a", false),
        ],
        &expect![[r#"
            event      active  candidate  Ready                effects
            spec 1     -       -          False Waiting        Fetch, Report
            source a   -       loading a  False Loading        Load(a), Report
            spec 2     -       loading a  False Loading        Report
            refused a  -       loading a  False Loading        Load(a)
            loaded a   a       -          True RevisionActive  Commit(a), Report, Swap(a), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn active_revision_stays_when_the_source_is_deleted() {
    check(
        [spec(1), missing(), source("a"), loaded("a", false), missing(), missing(), source("a")],
        &expect![[r#"
            event      active  candidate  Ready                 effects
            spec 1     -       -          False Waiting         Fetch, Report
            no source  -       -          False SourceNotFound  Notify(SourceNotFound), Report
            source a   -       loading a  False Loading         Load(a), Report
            loaded a   a       -          True RevisionActive   Commit(a), Report, Swap(a), Notify(RevisionActive), Report
            no source  a       -          False SourceNotFound  Notify(SourceNotFound), Report
            no source  a       -          False SourceNotFound
            source a   a       -          True RevisionActive   Report
        "#]],
    );
}

#[test]
fn other_source_with_the_same_bytes_is_not_loaded() {
    let other = Spec { other_source: true, ..plain() };
    check_active(
        spec(1),
        [Event::Spec { generation: 2, spec: Ok(other) }, source("a")],
        &expect![[r#"
            event     active  candidate  Ready                effects
            spec 2    a       -          False Waiting        ApplySettings, Fetch, Report
            source a  a       -          True RevisionActive  Report
        "#]],
    );
}

#[test]
fn invalid_spec_and_parameters_leave_the_old_ones_in_force() {
    let others = Spec { other_parameters: true, ..plain() };
    let misfit =
        Event::ParametersChecked(Err(rejection("InvalidParameters", RetryPolicy::WhenSpecChanges)));
    let bad = Err(rejection("InvalidSpec", RetryPolicy::WhenSpecChanges));
    check_active(
        spec(1),
        [
            Event::Spec { generation: 2, spec: Ok(others.clone()) },
            misfit.clone(),
            Event::Spec { generation: 3, spec: Ok(others) },
            misfit,
            Event::Spec { generation: 4, spec: bad.clone() },
            Event::Spec { generation: 5, spec: bad },
            spec(6),
        ],
        &expect![[r#"
            event                  active  candidate  Ready                       effects
            spec 2                 a       -          Unknown CheckingParameters  ApplySettings(old parameters), CheckParameters, Report
            parameters do not fit  a       -          False InvalidParameters     Notify(InvalidParameters), Report
            spec 3                 a       -          False InvalidParameters     ApplySettings(old parameters), CheckParameters, Report
            parameters do not fit  a       -          False InvalidParameters
            bad spec 4             a       -          False InvalidSpec           Notify(InvalidSpec), Report
            bad spec 5             a       -          False InvalidSpec           Report
            spec 6                 a       -          True RevisionActive         ApplySettings, Report
        "#]],
    );
}

#[test]
fn pause_takes_effect_in_every_state_of_the_candidate() {
    let suspended = Spec { paused: true, ..plain() };
    check_active(
        spec(1),
        [
            Event::Spec { generation: 2, spec: Ok(suspended.clone()) },
            source("b"),
            refused("b", RetryPolicy::Never),
            Event::Spec { generation: 3, spec: Ok(suspended) },
        ],
        &expect![[r#"
            event      active  candidate   Ready          effects
            spec 2     a       -           False Paused   ApplySettings, Report
            source b   a       loading b   False Loading  Load(b), Report
            refused b  a       rejected b  False Broken   Notify(Broken), Report
            spec 3     a       rejected b  False Broken   ApplySettings, Report
        "#]],
    );
}

#[test]
fn failing_runs_are_reported_once_for_each_revision() {
    let fail = || Event::Health(Err(rejection("GuestTrapped", RetryPolicy::Never).into()));
    check_active(
        spec(1),
        [fail(), fail(), Event::Health(Ok(None)), fail(), source("b"), loaded("b", false)],
        &expect![[r#"
            event         active  candidate  Ready                effects
            runs fail     a       -          True RevisionActive  Notify(GuestTrapped), Report
            runs fail     a       -          True RevisionActive
            runs succeed  a       -          True RevisionActive  Report
            runs fail     a       -          True RevisionActive  Notify(GuestTrapped), Report
            source b      a       loading b  False Loading        Load(b), Report
            loaded b      b       -          True RevisionActive  Commit(b), Report, Swap(b), Notify(RevisionActive), Report
        "#]],
    );
}

#[test]
fn module_that_may_not_write_is_not_ready() {
    let fail = |reason, lacks_right| {
        let rejection = rejection(reason, RetryPolicy::Later);
        Event::Health(Err(RunFailure { rejection, lacks_right }))
    };
    check_active(
        spec(1),
        [
            fail("Forbidden", true),
            fail("Forbidden", true),
            // A guest chose the reason.
            fail("Forbidden", false),
            Event::Health(Ok(None)),
        ],
        &expect![[r#"
            event         active  candidate  Ready                effects
            runs fail     a       -          False Forbidden      Notify(Forbidden), Report
            runs fail     a       -          False Forbidden
            runs fail     a       -          True RevisionActive  Notify(Forbidden), Report
            runs succeed  a       -          True RevisionActive  Report
        "#]],
    );
}

#[test]
fn deleted_module_stops() {
    check(
        [spec(1), source("a"), Event::Deleted],
        &expect![[r#"
            event     active  candidate  Ready          effects
            spec 1    -       -          False Waiting  Fetch, Report
            source a  -       loading a  False Loading  Load(a), Report
            deleted   -       loading a  False Loading  RemoveModule
        "#]],
    );
}

#[test]
fn conditions_of_a_decided_candidate_name_it() {
    let mut machine = Machine::default();
    let mut notices = Vec::new();
    for event in
        [spec(1), source("a"), loaded("a", false), source("b"), refused("b", RetryPolicy::Never)]
    {
        for effect in machine.step(event) {
            if let Effect::Direct(DirectEffect::Notify(notice)) = effect {
                notices.push(format!("{:?} {}: {}", notice.type_, notice.reason, notice.message));
            }
        }
    }
    for condition in machine.conditions() {
        let Condition { type_, status, reason, message } = condition;
        notices.push(format!("{type_}={} {reason}: {message}", status.as_str()));
    }
    expect![[r#"
        Blocked=False CRDsCompatible: No candidate is blocked.
        Healthy=Unknown NotReconciled: No run has ended yet.
        Held=False NoApprovalNeeded: No candidate waits for an approval.
        Loaded=Unknown Committing: a (a) is decided; the host writes the decision.
        Ready=False Committing: a (a) is decided; the host writes the decision.
        Serving=False NoActiveRevision: No revision is active."#]]
    .assert_eq(&named(&notices.join("\n")));
}
