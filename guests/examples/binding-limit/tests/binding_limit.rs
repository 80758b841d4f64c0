//! What the policy allows and denies.

use binding_limit::{Policy, RoleBinding};
use innkeeper_sdk::testing::ReviewScenario;
use serde_json::{Value, json};

fn binding(namespace: &str, name: &str, user: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

/// The request for a binding of `ann` in `namespace`, in a cluster where she has one in the
/// namespaces `a` and `b`.
fn create(namespace: &str, max_namespaces: usize) -> ReviewScenario<Policy> {
    ReviewScenario::create::<RoleBinding>(binding(namespace, "new", "ann"))
        .parameters(json!({ "maxNamespaces": max_namespaces }))
        .with_object(binding("a", "one", "ann"))
        .with_object(binding("b", "one", "ann"))
        .with_object(binding("b", "two", "bob"))
}

#[test]
fn binding_within_the_limit_is_allowed() {
    create("c", 3).run().is_allowed();
}

#[test]
fn binding_in_one_namespace_too_many_is_denied() {
    let run = create("c", 2).run();
    run.is_denied("the User ann has RoleBindings in 2 namespaces already");
    run.has_cause("subjects[0]");
}

#[test]
fn further_binding_in_a_namespace_is_allowed() {
    create("b", 2).run().is_allowed();
}

#[test]
fn binding_is_not_decided_about_without_rights_to_read() {
    create("a", 2).deny_reads::<RoleBinding>().run().is_failed("RoleBindings cannot be read");
}
