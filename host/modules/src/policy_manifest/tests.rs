use expect_test::{Expect, expect};
use innkeeper_contract::Manifest;

use super::*;
use crate::manifest;
use crate::testing;

/// A policy that reviews the creation of Pods.
fn policy() -> PolicyManifest {
    testing::policy_manifest("g").policy.unwrap()
}

/// Checks the policy as a part of its manifest.
fn check_all(policy: PolicyManifest) -> Result<(), Vec<String>> {
    manifest::check(&Manifest { policy: Some(policy), ..testing::policy_manifest("g") })
}

#[track_caller]
fn accepted(change: impl FnOnce(&mut PolicyManifest)) {
    let mut policy = policy();
    change(&mut policy);
    assert_eq!(check_all(policy), Ok(()));
}

#[track_caller]
fn refused(change: impl FnOnce(&mut PolicyManifest), expected: &Expect) {
    let mut policy = policy();
    change(&mut policy);
    expected.assert_eq(&check_all(policy).unwrap_err().join("\n"));
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression: expression.to_owned() }
}

#[test]
fn sound_policy_passes() {
    accepted(|_| {});
    accepted(|policy| {
        policy.rules[0].groups = texts(["*"]);
        policy.rules[0].versions = texts(["*"]);
        policy.rules[0].resources = texts(["*/*"]);
        policy.rules[0].operations = vec![Operation::Create, Operation::Update, Operation::Delete];
    });
    accepted(|policy| {
        policy.kind = PolicyKind::Mutate;
        policy.reinvocation = true;
        policy.rules[0].groups = texts(["", "apps", "example.com"]);
        policy.rules[0].versions = texts(["v1", "v1beta1"]);
        policy.rules[0].resources = texts(["*", "pods/status", "deployments/*"]);
        policy.match_conditions =
            vec![condition("not-a-lease", "true"), condition("example.com/b", "object.x == 1")];
    });
}

#[test]
fn connect_is_refused_with_the_remedy() {
    refused(
        |policy| policy.rules[0].operations.push(Operation::Connect),
        &expect![
            "policy.rules[0].operations: CONNECT is not reviewed: a connection has no object; use a ValidatingAdmissionPolicy"
        ],
    );
}

#[test]
fn lists_beyond_their_limits_are_counted_and_not_looked_at() {
    let many = |count| vec!["no name".to_owned(); count];
    refused(|policy| policy.rules.clear(), &expect!["policy.rules: has 0 items; give 1 to 32"]);
    refused(
        |policy| {
            policy.rules = vec![policy.rules[0].clone(); 33];
            policy.match_conditions = vec![condition("no name", ""); 17];
        },
        &expect![[r#"
            policy.rules: has 33 items; give 1 to 32
            policy.matchConditions: has 17 items; give 0 to 16"#]],
    );
    refused(
        |policy| {
            policy.rules[0].groups = many(33);
            policy.rules[0].versions = many(33);
            policy.rules[0].resources = many(65);
            policy.rules[0].operations = vec![Operation::Create; 4];
        },
        &expect![[r#"
            policy.rules[0].groups: has 33 items; give 1 to 32
            policy.rules[0].versions: has 33 items; give 0 to 32
            policy.rules[0].resources: has 65 items; give 1 to 64
            policy.rules[0].operations: has 4 items; give 1 to 3"#]],
    );
    refused(
        |policy| {
            policy.rules[0].groups.clear();
            policy.rules[0].resources.clear();
            policy.rules[0].operations.clear();
        },
        &expect![[r#"
            policy.rules[0].groups: has 0 items; give 1 to 32
            policy.rules[0].resources: has 0 items; give 1 to 64
            policy.rules[0].operations: has 0 items; give 1 to 3"#]],
    );
}

#[test]
fn names_that_kubernetes_does_not_allow_are_refused() {
    refused(
        |policy| {
            policy.rules[0].groups = texts(["Apps", "apps/v1", "*.example.com", " "]);
            policy.rules[0].versions = texts(["", "1", "v1*", "V1"]);
        },
        &expect![[r#"
            policy.rules[0].groups: "Apps" is no API group like apps or networking.k8s.io
            policy.rules[0].groups: "apps/v1" is no API group like apps or networking.k8s.io
            policy.rules[0].groups: "*.example.com" is no API group like apps or networking.k8s.io
            policy.rules[0].groups: " " is no API group like apps or networking.k8s.io
            policy.rules[0].versions: "" is no version like v1 or v1beta1
            policy.rules[0].versions: "1" is no version like v1 or v1beta1
            policy.rules[0].versions: "v1*" is no version like v1 or v1beta1
            policy.rules[0].versions: "V1" is no version like v1 or v1beta1"#]],
    );
    for resource in
        ["", "Pods", "pods/", "/status", "*/scale", "pods/*/x", "pods/a/b", "**", "pod s", "../x"]
    {
        let mut policy = policy();
        policy.rules[0].resources = texts([resource]);
        let errors = check_all(policy).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("is no resource like pods, pods/status, pods/* or *"));
    }
}

#[test]
fn names_that_stand_twice_or_that_another_includes_are_refused() {
    refused(
        |policy| {
            policy.rules[0].groups = texts(["", "apps", ""]);
            policy.rules[0].versions = texts(["v1", "*"]);
            policy.rules[0].operations = vec![Operation::Create; 2];
        },
        &expect![[r#"
            policy.rules[0].groups: "" is named twice
            policy.rules[0].versions: "*" stands for all; leave out the others
            policy.rules[0].operations: CREATE is named twice"#]],
    );
    refused(
        |policy| {
            policy.rules[0].resources = texts(["*", "pods", "nodes/status", "nodes/*", "pods"]);
        },
        &expect![[r#"
            policy.rules[0].resources: pods is named twice
            policy.rules[0].resources: nodes/* includes nodes/status; leave one of them out
            policy.rules[0].resources: * includes pods; leave one of them out"#]],
    );
    refused(
        |policy| policy.rules[0].resources = texts(["*/*", "*", "pods/status"]),
        &expect![[r#"
            policy.rules[0].resources: */* includes *; leave one of them out
            policy.rules[0].resources: */* includes pods/status; leave one of them out"#]],
    );
}

#[test]
fn groups_that_no_policy_gets_are_refused() {
    refused(
        |policy| {
            policy.rules[0].groups = texts([
                "innkeeper.dev",
                "admissionregistration.k8s.io",
                "authentication.k8s.io",
                "authorization.k8s.io",
            ]);
        },
        &expect![[r#"
            policy.rules[0].groups: requests of innkeeper.dev are never sent to policies; leave it out
            policy.rules[0].groups: requests of admissionregistration.k8s.io are never sent to policies; leave it out
            policy.rules[0].groups: requests of authentication.k8s.io are never sent to policies; leave it out
            policy.rules[0].groups: requests of authorization.k8s.io are never sent to policies; leave it out"#]],
    );
}

#[test]
fn policy_that_changes_objects_names_no_group_that_decides_about_rights() {
    let groups = || texts(["rbac.authorization.k8s.io", "certificates.k8s.io"]);
    accepted(|policy| policy.rules[0].groups = groups());
    refused(
        |policy| {
            policy.kind = PolicyKind::Mutate;
            policy.rules[0].groups = groups();
        },
        &expect![[r#"
            policy.rules[0].groups: no policy may change objects of rbac.authorization.k8s.io, which decide about rights; use a policy of the kind Validate for them
            policy.rules[0].groups: no policy may change objects of certificates.k8s.io, which decide about rights; use a policy of the kind Validate for them"#]],
    );
    refused(
        |policy| {
            policy.kind = PolicyKind::Mutate;
            policy.rules[0].groups = texts(["*"]);
        },
        &expect![[
            r#"policy.rules[0].groups: "*" has groups that no policy may change, such as rbac.authorization.k8s.io; name the groups"#
        ]],
    );
}

#[test]
fn policy_that_changes_objects_names_no_tokens() {
    for resource in ["serviceaccounts/token", "serviceaccounts/*", "*/*"] {
        let mut policy = policy();
        policy.rules[0].resources = texts([resource]);
        assert_eq!(check_all(policy.clone()), Ok(()));
        policy.kind = PolicyKind::Mutate;
        let errors = check_all(policy.clone()).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].ends_with(
            "has the tokens of ServiceAccounts, which no policy may change; name other resources"
        ));
        policy.rules[0].groups = texts(["apps"]);
        assert_eq!(check_all(policy), Ok(()), "{resource} of another group");
    }
}

#[test]
fn reinvocation_of_a_policy_that_only_decides_is_refused() {
    refused(
        |policy| policy.reinvocation = true,
        &expect![
            "policy.reinvocation: only for the kind Mutate; a policy that only decides is called once"
        ],
    );
}

#[test]
fn conditions_without_a_name_or_an_expression_are_refused() {
    refused(
        |policy| {
            policy.match_conditions = vec![
                condition("", "true"),
                condition("a b", ""),
                condition("a", "true"),
                condition("a", &"x".repeat(4_097)),
                condition("innkeeper.dev/groups", "false"),
            ];
        },
        &expect![[r#"
            policy.matchConditions[0].name: "" is no name like not-a-lease or example.com/not-a-lease
            policy.matchConditions[1].name: "a b" is no name like not-a-lease or example.com/not-a-lease
            policy.matchConditions[1].expression: has 0 bytes; give 1 to 4096
            policy.matchConditions[3].name: a is the name of another condition
            policy.matchConditions[3].expression: has 4097 bytes; give 1 to 4096
            policy.matchConditions[4].name: innkeeper.dev/groups belongs to the host, as all names of innkeeper.dev; take another"#]],
    );
}

#[test]
fn errors_show_no_control_characters_and_are_bounded() {
    let mut policy = policy();
    let hostile = "a\n\u{1b}]52;c;eA==\u{7}\u{202e}".repeat(10_000);
    let rule = &mut policy.rules[0];
    (rule.groups, rule.versions) = (texts([&hostile]), texts([&hostile]));
    rule.resources = texts([&hostile]);
    policy.match_conditions = vec![condition(&hostile, &hostile)];
    policy.rules = vec![policy.rules[0].clone(); 32];
    let errors = check_all(policy).unwrap_err();
    assert_eq!(errors.len(), 20);
    for error in errors {
        assert!(error.len() < 1_100 && error.chars().all(foreign::is_visible), "{error}");
    }
}
