//! Random cases of what follows later: garbage collection, and what roles allow.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::case::{Case, Step};

/// Objects of a case that own each other.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
/// Users of a case.
const USERS: [&str; 2] = ["ann{s}", "system:serviceaccount:{n}:bob{s}"];

fn step(method: &str, path: String, body: Value, about: &str) -> Step {
    Step { method: method.to_owned(), path, body, about: about.to_owned(), ..Step::default() }
}

fn settled(path: String, about: &str) -> Step {
    Step { settled: true, ..step("GET", path, Value::Null, about) }
}

fn pick<'t>(rng: &mut Rng, texts: &[&'t str]) -> &'t str {
    texts[rng.usize(..texts.len())]
}

/// The collection of an object, by its name.
fn collection(name: &str) -> (&'static str, &'static str) {
    match name {
        "b" => ("Secret", "/api/v1/namespaces/{n}/secrets"),
        "d" => ("ServiceAccount", "/api/v1/namespaces/{n}/serviceaccounts"),
        _ => ("ConfigMap", "/api/v1/namespaces/{n}/configmaps"),
    }
}

/// Objects that own each other, deleted in all ways.
pub fn owners(rng: &mut Rng) -> Case {
    let mut steps = Vec::new();
    // What is held while its owner waits is not compared: see docs/simulator.md.
    let held = rng.bool();
    for (index, name) in NAMES.iter().enumerate() {
        let (_, path) = collection(name);
        let mut metadata = json!({"name": format!("{name}{{s}}"), "labels": {"run": "{s}"}});
        if held && rng.u8(..3) == 0 {
            metadata["finalizers"] = json!(["x.dev/a"]);
        }
        let mut owners = Vec::new();
        for owner in &NAMES[..index] {
            if rng.u8(..5) < 2 {
                let (kind, _) = collection(owner);
                let mut one = json!({"apiVersion": "v1", "kind": kind, "name": format!("{owner}{{s}}"), "uid": format!("{{uid:{owner}}}")});
                if rng.bool() {
                    one["blockOwnerDeletion"] = true.into();
                }
                owners.push(one);
            }
        }
        if rng.u8(..12) == 0 {
            owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "11111111-1111-4111-8111-111111111111"}));
        }
        if !owners.is_empty() {
            metadata["ownerReferences"] = owners.into();
        }
        steps.push(step(
            "POST",
            path.to_owned(),
            json!({ "metadata": metadata }),
            "create of owners",
        ));
    }
    look(&mut steps);
    for _ in 0..4 {
        let name = pick(rng, &NAMES);
        let (_, path) = collection(name);
        let one = format!("{path}/{name}{{s}}");
        if rng.u8(..4) == 0 {
            let body = json!({"metadata": {"finalizers": null}});
            let mut release = step("PATCH", one, body, "release of owners");
            "application/merge-patch+json".clone_into(&mut release.content_type);
            steps.push(release);
        } else {
            let policies = if held { ["Background", "Orphan"] } else { ["Foreground", "Orphan"] };
            let policy = pick(rng, &policies);
            let body = json!({ "propagationPolicy": policy });
            steps.push(step("DELETE", one, body, &format!("delete of owners, {policy}")));
        }
        look(&mut steps);
    }
    Case { steps, ..Case::default() }
}

/// What is left, when all is done.
fn look(steps: &mut Vec<Step>) {
    for name in ["a", "b", "d"] {
        let (_, path) = collection(name);
        steps.push(settled(format!("{path}?labelSelector=run={{s}}"), "list of what is left"));
    }
}

/// Roles and bindings, and what they let somebody do.
pub fn roles(rng: &mut Rng) -> Case {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut steps = Vec::new();
    for (kind, place) in [("Role", "/namespaces/{n}/roles"), ("ClusterRole", "/clusterroles")] {
        let mut rule = json!({
            "apiGroups": [pick(rng, &["", "apps", "*"])],
            "resources": [pick(rng, &["configmaps", "*", "deployments", "configmaps/status", "*/scale", "deployments/scale"])],
            "verbs": [pick(rng, &["get", "*", "list", "create"]), pick(rng, &["get", "delete"])],
        });
        if rng.u8(..4) == 0 {
            rule["resourceNames"] = json!(["one"]);
        }
        let body = json!({"metadata": {"name": "r{s}"}, "rules": [rule]});
        steps.push(step("POST", format!("{rbac}{place}"), body, &format!("create {kind}")));
    }
    let cluster = rng.u8(..3) == 0;
    let role = if cluster || rng.bool() { "ClusterRole" } else { "Role" };
    let subject = match rng.u8(..3) {
        0 => json!({"kind": "User", "name": "ann{s}", "apiGroup": "rbac.authorization.k8s.io"}),
        1 => json!({"kind": "ServiceAccount", "name": "bob{s}", "namespace": "{n}"}),
        _ => {
            json!({"kind": "Group", "name": "team{s}", "apiGroup": "rbac.authorization.k8s.io"})
        }
    };
    let body = json!({"metadata": {"name": "b{s}"}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": "r{s}"}});
    let place = if cluster { "/clusterrolebindings" } else { "/namespaces/{n}/rolebindings" };
    steps.push(step("POST", format!("{rbac}{place}"), body, "create binding"));
    for _ in 0..6 {
        steps.push(question(rng));
    }
    if cluster {
        // Nobody else's case is to be allowed by this one.
        let path = format!("{rbac}{place}/b{{s}}");
        steps.push(step("DELETE", path, Value::Null, "delete binding"));
    }
    Case { steps, ..Case::default() }
}

/// A review, or a request as somebody.
fn question(rng: &mut Rng) -> Step {
    let user = pick(rng, &USERS);
    let (group, resource, sub) = [
        ("", "configmaps", ""),
        ("", "configmaps", "status"),
        ("", "secrets", ""),
        ("apps", "deployments", ""),
        ("apps", "deployments", "scale"),
    ][rng.usize(..5)];
    let verb = pick(rng, &["get", "list", "create", "delete"]);
    let name = pick(rng, &["one", "two", ""]);
    if rng.bool() {
        let mut attributes =
            json!({"verb": verb, "group": group, "resource": resource, "namespace": "{n}"});
        if !sub.is_empty() {
            attributes["subresource"] = sub.into();
        }
        if !name.is_empty() {
            attributes["name"] = name.into();
        }
        let mut spec = json!({ "user": user, "resourceAttributes": attributes });
        if user.starts_with("system:") {
            spec["groups"] = json!([
                "system:serviceaccounts",
                "system:serviceaccounts:{n}",
                "team{s}",
                "system:authenticated"
            ]);
        }
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned();
        let mut asked = step("POST", path, json!({ "spec": spec }), "review");
        asked.settled = true;
        return asked;
    }
    let group = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
    let sub =
        if sub.is_empty() || resource == "configmaps" { String::new() } else { format!("/{sub}") };
    let name = if name.is_empty() { "two" } else { name };
    let path = match verb {
        "list" => format!("{group}/namespaces/{{n}}/{resource}?labelSelector=run={{s}}"),
        _ => format!("{group}/namespaces/{{n}}/{resource}/{name}{sub}"),
    };
    let mut asked = settled(path, "request as somebody");
    user.clone_into(&mut asked.user);
    asked
}
