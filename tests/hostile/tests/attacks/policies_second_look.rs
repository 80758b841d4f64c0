//! Hostile policies against the running operator, second look: what a cluster needs to be repaired,
//! values of Secrets, members that a policy does not see, and the texts of other modes.

use innkeeper_hostile_tests::block_on;
use innkeeper_hostile_tests::policy_arena::PolicyArena;
use innkeeper_simulator::conditions_hold;
use innkeeper_tiny_guests::kubewarden::Kubewarden;
use innkeeper_tiny_guests::{ALLOWED, POLICY_MANIFEST, READ_RESULT, READS, SCRATCH, Tiny};
use serde_json::{Value, json};

const ADMIN: (&str, &[&str]) = ("", &[]);
const NODE: (&str, &[&str]) = ("system:node:a", &["system:nodes", "system:masters"]);

/// A verdict that denies.
const DENIED: &str = r#"{"allowed":false,"message":"no"}"#;

/// An expression that cannot be evaluated.
const BROKEN: &str = "1/0 == 1";

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
        "metadata": {"name": name, "labels": {"app": name}}})
}

/// A policy that denies everything, and reviews all requests that a webhook can have.
fn denying_everything() -> Tiny {
    let manifest = r#"{"name":"tiny","policy":{"kind":"Validate",
        "rules":[{"groups":["*"],"resources":["*/*"],"operations":["CREATE","UPDATE","DELETE"]}]}}"#;
    Tiny::policy(DENIED).manifest(manifest)
}

#[test]
fn policy_that_denies_everything_keeps_nothing_from_being_repaired() {
    block_on(async {
        // Given a policy that denies everything, with a condition that cannot be evaluated.
        let condition = json!({"name": "broken", "expression": BROKEN});
        // Its preview would hold it back.
        let spec = json!({"rollout": {"strategy": "Immediate"}, "policy": {
            "failurePolicy": "Fail", "namespaceSelector": {}, "matchConditions": [condition]}});
        let arena = PolicyArena::start(&denying_everything().component(), &spec).await;

        // Then nothing can be created in a namespace of users.
        let maps = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
        let (code, body) = arena.send_as(ADMIN, ("POST", &maps("ns")), &config_map("a"));
        assert!(code >= 400, "{body}");

        // Then what a cluster and the host need goes on.
        let named = |name: &str| json!({"metadata": {"name": name}});
        let leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        let role = json!({"metadata": {"name": "innkeeper"}, "rules": []});
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let namespaces = || "/api/v1/namespaces".to_owned();
        for (user, method, path, body) in [
            (ADMIN, "PATCH", namespaces() + "/kube-system", labels.clone()),
            (ADMIN, "POST", maps("kube-system"), config_map("a")),
            (ADMIN, "POST", maps("innkeeper-system"), config_map("a")),
            (ADMIN, "POST", maps("innkeeper-modules"), config_map("a")),
            (ADMIN, "PATCH", namespaces() + "/innkeeper-system", labels),
            (ADMIN, "POST", leases.to_owned(), named("a")),
            (ADMIN, "POST", roles.to_owned(), role),
            (NODE, "POST", "/api/v1/nodes".to_owned(), named("a")),
            (NODE, "PATCH", "/api/v1/nodes/a/status".to_owned(), ready),
        ] {
            let (code, answer) = arena.send_as(user, (method, &path), &body);
            assert!((200..300).contains(&code), "{method} {path}: {code} {answer}");
        }
        let configurations =
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let own = format!("{configurations}/innkeeper-policy-hostile");
        let (code, _) = arena.send_as(ADMIN, ("DELETE", &own), &Value::Null);
        assert_eq!(code, 200);
        arena.end().await;
    });
}

#[test]
fn condition_of_a_policy_is_not_evaluated_for_what_is_never_reviewed() {
    block_on(async {
        // The API server fails a request once its conditions have cost too much, whatever others
        // say. So an expression of a policy must cost nothing for such a request.
        let expressions =
            [BROKEN, "1/0 == 1 // )", "1/0 == 1 ? true : false", "true && 1/0 == 1 || 1/0 == 2"];
        for expression in expressions {
            let condition = json!({"name": "costly", "expression": expression});
            let spec = json!({"policy": {"matchConditions": [condition]}});
            let arena = PolicyArena::start(&Tiny::policy(ALLOWED).component(), &spec).await;
            let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/innkeeper-policy-hostile";
            let configuration = arena.lab().api().get(path).await.unwrap().unwrap();
            let conditions = configuration["webhooks"][0]["matchConditions"].as_array().unwrap();
            let of_policy = conditions.iter().find(|one| one["name"] == "costly").unwrap();
            let expression = of_policy["expression"].as_str().unwrap();
            for request in never_reviewed() {
                assert_eq!(conditions_hold([expression], &request), Ok(true), "{expression}");
            }
            assert!(conditions_hold([expression], &reviewed()).is_err(), "{expression}");
            arena.end().await;
        }
    });
}

/// The member `request` of an AdmissionReview about an object.
fn admission_request(resource: &Value, name: &str, groups: &[&str]) -> Value {
    json!({"operation": "CREATE", "resource": resource, "name": name, "namespace": "ns",
        "subResource": "", "userInfo": {"username": "a", "groups": groups},
        "object": {"metadata": {"name": name,
            "annotations": {"kubernetes.io/config.mirror": "x"}}},
        "oldObject": null})
}

fn resource(group: &str, resource: &str) -> Value {
    json!({"group": group, "version": "v1", "resource": resource})
}

/// Requests that no policy reviews, and no selector of a webhook configuration leaves out.
fn never_reviewed() -> [Value; 5] {
    let roles = resource("rbac.authorization.k8s.io", "clusterroles");
    [
        admission_request(&resource("coordination.k8s.io", "leases"), "a", &[]),
        admission_request(&resource("innkeeper.dev", "modules"), "a", &[]),
        admission_request(&resource("", "pods"), "a", &["system:nodes"]),
        admission_request(&resource("", "nodes"), "a", &["system:nodes"]),
        admission_request(&roles, "innkeeper", &[]),
    ]
}

/// A request that policies review.
fn reviewed() -> Value {
    admission_request(&resource("", "configmaps"), "a", &[])
}

#[test]
fn value_of_a_secret_is_in_no_request_that_a_policy_gets_and_in_no_object_that_it_reads() {
    block_on(async {
        // Given a policy that denies everything in which it finds the value, and all while it can
        // read it.
        let manifest = POLICY_MANIFEST
            .replace(r#"["configmaps"]"#, r#"["configmaps","secrets"]"#)
            .replace(r#""UPDATE""#, r#""UPDATE","DELETE""#)
            .replace(
                r#""kind":"ConfigMap","plural":"configmaps""#,
                r#""kind":"Secret","plural":"secrets""#,
            );
        let guest = Tiny::policy(ALLOWED)
            .manifest(&manifest)
            .verdict_for(&["hunter2"], DENIED)
            .verdict_for(&["aHVudGVyMg"], DENIED)
            .importing(READS)
            .data(SCRATCH, "v1SecretnscmaHVudGVyMg")
            .review_wat(&finds_in_read());
        let arena = PolicyArena::start(&guest.component(), &json!({"policy": {}})).await;
        let applied = json!({"kind": "Secret", "stringData": {"other": "hunter2"}}).to_string();
        let secret = |label: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": "aHVudGVyMg=="},
                "stringData": {"other": "hunter2"},
                "metadata": {"name": "cm", "labels": {"app": label}, "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": applied,
                    "example.com/copy": r#" {"data":{"key":"aHVudGVyMg=="}}"#}}})
        };

        // Then it denies no request for the Secret, and none while it reads it.
        let path = "/api/v1/namespaces/ns/secrets";
        let one = format!("{path}/cm");
        let (code, body) = arena.send_as(ADMIN, ("POST", path), &secret("a"));
        assert_eq!(code, 201, "{body}");
        let (code, body) = arena.send_as(ADMIN, ("PUT", &one), &secret("b"));
        assert_eq!(code, 200, "{body}");
        assert_eq!(arena.create(&config_map("calm")).code, 201);
        let (code, body) = arena.send_as(ADMIN, ("DELETE", &one), &Value::Null);
        assert_eq!(code, 200, "{body}");

        // Then it does deny a ConfigMap with the value.
        let mut copied = config_map("copied");
        copied["data"]["key"] = "aHVudGVyMg==".into();
        assert_eq!(arena.create(&copied).code, 403);
        arena.end().await;
    });
}

/// Denies if a read of the Secret `ns/cm` has the text after its name.
fn finds_in_read() -> String {
    let at = |offset: usize| SCRATCH + offset;
    format!(
        "(call $get (i32.const {}) (i32.const 2) (i32.const {}) (i32.const 6)
             (i32.const {}) (i32.const 2) (i32.const {}) (i32.const 2) (i32.const {READ_RESULT}))
         (if (i32.eqz (i32.load8_u (i32.const {READ_RESULT})))
             (then (if (call $find
                     (i32.load offset=4 (i32.const {READ_RESULT}))
                     (i32.load offset=8 (i32.const {READ_RESULT}))
                     (i32.const {}) (i32.const 10))
                 (then unreachable))))",
        at(0),
        at(2),
        at(8),
        at(10),
        at(12),
    )
}

#[test]
fn empty_member_of_a_verdict_changes_nothing_that_the_policy_does_not_see() {
    block_on(async {
        for added in ["managedFields", "ownerReferences", "deletionTimestamp", "selfLink"] {
            for empty in ["[]", "null", "{}"] {
                let guest = Tiny::replacing(
                    r#""metadata":{"#,
                    &format!(r#""metadata":{{"{added}":{empty},"#),
                );
                let spec = json!({"policy": {"failurePolicy": "Fail"}});
                let arena = PolicyArena::start(&guest.component(), &spec).await;
                let answer = arena.create(&config_map("attacked"));
                assert_eq!(answer.code, 201, "{added} {empty}: {answer:?}");
                let fields = answer.stored["metadata"]["managedFields"].as_array();
                assert!(fields.is_some_and(|fields| !fields.is_empty()), "{added}: {answer:?}");
                arena.end().await;
            }
        }
    });
}

#[test]
fn hostile_texts_of_the_mode_warn_are_cut_and_visible() {
    const TERMINAL: &str = "x\n\r\u{1b}[2J\u{1b}]52;c;eA==\u{7}\u{9b}2J\u{202e}\u{200b}\u{2028}y";
    let verdicts = [
        json!({"allowed": false, "message": TERMINAL.repeat(1_000)}),
        json!({"allowed": false, "message": "", "warnings": vec![TERMINAL; 1_000]}),
    ];
    block_on(async {
        for mode in ["Warn", "Audit"] {
            for verdict in &verdicts {
                let guest = Tiny::policy(&verdict.to_string());
                let spec = json!({"policy": {"mode": mode}});
                let arena = PolicyArena::start(&guest.component(), &spec).await;
                let answer = arena.create(&config_map("attacked"));
                assert_eq!(answer.code, 201, "{answer:?}");
                assert_eq!(answer.warnings.is_empty(), mode == "Audit", "{answer:?}");
                assert!(answer.warnings.len() <= 16, "{}", answer.warnings.len());
                for warning in &answer.warnings {
                    let hides = |c: char| c.is_control() || "\u{202e}\u{200b}\u{2028}".contains(c);
                    assert!(warning.len() <= 300 && !warning.contains(hides), "{warning:?}");
                }
                arena.end().await;
            }
        }
    });
}

#[test]
fn field_mask_of_a_kubewarden_policy_without_end_ends_no_host() {
    block_on(async {
        let payload = json!({"api_version": "v1", "kind": "ConfigMap", "namespace": "ns",
            "field_masks": ["a.".repeat(28_000)]});
        let name = ["kubewarden", "kubernetes", "list_resources_by_namespace"];
        let policy = Kubewarden::default().answering_with_host_call(name, &payload.to_string());
        let spec = json!({"policy": {"failurePolicy": "Fail"}});
        let arena = PolicyArena::start(&policy.module(), &spec).await;
        let answer = arena.create(&config_map("attacked"));
        assert_eq!(answer.code, 500, "the list is no verdict: {answer:?}");
        arena.neighbour_reviews();
        arena.end().await;
    });
}
