//! Carrying out a plan: answers of the API server that are no success, foreign objects, and prune.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{
    NAMESPACE, Reply, Script, Sent, Setup, Stage, block_on, complete, config_map, config_map_path,
    count, desired, refusal,
};

/// Has the first request that writes the ConfigMap `a` get this reply.
fn first_write_of_a(stage: &Stage, reply: Reply) {
    let mut reply = Some(reply);
    stage.proxy().intercept(move |sent: &Sent| {
        let is_meant = sent.is_write() && sent.path.ends_with("/configmaps/a");
        is_meant.then(|| reply.take()).flatten().unwrap_or(Reply::Forward)
    });
}

fn both(a: &str, b: &str) -> Value {
    complete(&desired(&[config_map("a", a), config_map("b", b)]))
}

#[test]
fn write_names_its_manager_and_what_it_expects_to_be_there() {
    block_on(async {
        // Given a primary with an object, and a ConfigMap of an administrator.
        let stage = Setup::new(Script::new()).object(config_map("theirs", "1")).start().await;
        let merged = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"},
            "data": {"ours": "1"}});
        let spec = |value: &str| {
            complete(&json!({"objects": [{"object": config_map("a", value)},
                {"object": merged, "policy": ["merge"]}]}))
        };

        // When the object is created, changed and deleted.
        stage.create("one", &spec("1")).await;
        stage.settle().await;
        let uid = |object: Option<Value>| object.unwrap()["metadata"]["uid"].clone();
        let uid_of_a = uid(stage.config_map("a").await);
        let uid_of_theirs = uid(stage.config_map("theirs").await);
        stage.set_spec("one", &spec("2")).await;
        stage.settle().await;
        stage.set_spec("one", &complete(&json!({}))).await;
        stage.settle().await;

        // Then each write of an object names the primary in its manager, and carries a guard.
        let sent = stage.sent_writes();
        let manager =
            format!("innkeeper%2Fscripts%2F{}", text(&uid(Some(stage.primary("one").await))));
        let of = |line: &str| {
            let found: Vec<&Sent> = sent.iter().filter(|one| one.line() == line).collect();
            assert!(found.iter().all(|one| one.method == "DELETE" || one.query.contains(&manager)));
            found
        };
        let [create, change] = of("apply configmaps/a")[..] else { panic!("{sent:#?}") };
        assert_eq!(create.body["metadata"]["resourceVersion"], "1", "nothing is there");
        assert_eq!(change.body["metadata"]["uid"], uid_of_a, "this object is there");
        let [merge, unmerge] = of("apply configmaps/theirs")[..] else { panic!("{sent:#?}") };
        for request in [merge, unmerge] {
            assert_eq!(request.body["metadata"]["uid"], uid_of_theirs);
            assert!(!request.query.contains("force=true"), "{}", request.query);
        }
        let [delete] = of("delete configmaps/a")[..] else { panic!("{sent:#?}") };
        assert_eq!(delete.body["preconditions"]["uid"], uid_of_a);
    });
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn conflict_is_followed_by_a_read_and_another_try_in_the_same_second() {
    block_on(async {
        // Given a module, and an API server that answers the first create by a conflict.
        let stage = Stage::start(Script::new()).await;
        first_write_of_a(&stage, refusal(409, "AlreadyExists", "configmaps \"a\" already exists"));

        // When a primary with two objects is created.
        stage.create("one", &both("1", "1")).await;
        stage.pass(1).await;

        // Then the host reads the object, writes both, and reports no problem.
        let expected = [
            "apply configmaps/a",
            "get configmaps/a",
            "apply configmaps/a",
            "apply configmaps/b",
            "apply scripts/one/status",
        ];
        assert_eq!(stage.requests_for_objects(), expected);
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // When the same happens to an update.
        first_write_of_a(&stage, refusal(409, "Conflict", "the object has been modified"));
        stage.set_spec("one", &both("2", "2")).await;
        stage.pass(1).await;

        // Then the host does the same.
        assert_eq!(stage.requests_for_objects(), expected);
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "2");
        let events = stage.events("one").await;
        assert!(events.is_empty(), "{events:?}");
    });
}

#[test]
fn create_whose_answer_is_lost_is_read_before_anything_else_is_written() {
    block_on(async {
        // Given an API server that carries out the first create, and whose answer is lost.
        let stage = Stage::start(Script::new()).await;
        first_write_of_a(&stage, Reply::Lose);

        // When a primary with two objects is created.
        stage.create("one", &both("1", "1")).await;
        stage.settle().await;

        // Then the round ends with a report, and after a while the host reads the object that it
        // made, and creates the other one only.
        let expected = [
            "apply configmaps/a",
            "apply scripts/one/status",
            "get configmaps/a",
            "apply configmaps/b",
            "apply scripts/one/status",
        ];
        assert_eq!(stage.requests_for_objects(), expected);
        let events = stage.events("one").await;
        let reasons: BTreeSet<&str> = events.iter().map(|(reason, _)| reason.as_str()).collect();
        assert_eq!(reasons, ["Applied", "OutcomeUnknown"].into());
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "1");
    });
}

#[test]
fn server_that_is_overloaded_ends_the_round_and_is_asked_again_later() {
    block_on(async {
        // Given an API server that asks to come again after a minute.
        let stage = Stage::start(Script::new()).await;
        let busy = json!({"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "code": 429, "reason": "TooManyRequests", "message": "too many requests"});
        stage.proxy().intercept(move |sent: &Sent| {
            let is_meant = sent.is_write() && sent.path.contains("/configmaps/");
            if is_meant { Reply::Refuse(busy.clone()) } else { Reply::Forward }
        });

        // When a primary with two objects is created.
        stage.create("one", &both("1", "1")).await;
        stage.until_primary("one", "Synced", "False", "TooManyRequests").await;

        // Then only the first object was tried.
        let requests = stage.requests_for_objects();
        assert_eq!(count(&requests).get("apply configmaps/b"), None, "{requests:?}");

        // When the server answers again, then both are written.
        stage.proxy().forward();
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.config_map("a").await.is_some() && stage.config_map("b").await.is_some());
    });
}

#[test]
fn object_whose_create_is_forbidden_is_reported_while_the_others_are_applied() {
    block_on(async {
        // Given a guest that owns ServiceAccounts, which its account may only read.
        let kind = json!({"apiVersion": "v1", "kind": "ServiceAccount", "plural": "serviceaccounts",
            "scope": "Namespaced"});
        let stage = Setup::new(Script::new().owns(json!({ "kind": kind })))
            .may(&["get", "list", "watch"], "", "serviceaccounts")
            .start()
            .await;

        // When a primary desires one, and ConfigMaps.
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}});
        let objects = [config_map("a", "1"), account, config_map("b", "1")];
        stage.create("one", &complete(&desired(&objects))).await;
        let message = stage.until_primary("one", "Synced", "False", "Forbidden").await;

        // Then the condition says what is missing, and the others are applied.
        assert!(message.contains("ServiceAccount ns/sa") && message.contains("patch"), "{message}");
        assert!(stage.config_map("a").await.is_some() && stage.config_map("b").await.is_some());
        let events = stage.events("one").await;
        let [(reason, _)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(reason, "Forbidden");

        // When the account gets the right, then the object is applied.
        stage.grant(&["create", "patch"], "", "serviceaccounts").await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/sa");
        assert!(stage.get(&path).await.is_some());
        let events = stage.events("one").await;
        assert!(events.iter().any(|(reason, _)| reason == "Applied"), "{events:?}");
    });
}

#[test]
fn object_that_breaks_a_rule_of_its_kind_is_reported_while_the_others_are_applied() {
    block_on(async {
        // Given a primary that desires a ConfigMap with a key that the API server refuses.
        let stage = Stage::start(Script::new()).await;
        let mut invalid = config_map("a", "1");
        invalid["data"] = json!({"no key": "1"});
        stage.create("one", &complete(&desired(&[invalid, config_map("b", "1")]))).await;

        // When the host applies it.
        let message = stage.until_primary("one", "Synced", "False", "Invalid").await;

        // Then the condition quotes the API server, and the other object is applied.
        assert!(message.contains("ConfigMap ns/a") && message.contains("no key"), "{message}");
        assert_eq!(stage.config_map("a").await, None);
        assert!(stage.config_map("b").await.is_some());

        // When the guest corrects it, then it is applied at once.
        stage.set_spec("one", &both("1", "1")).await;
        stage.pass(1).await;
        assert!(stage.config_map("a").await.is_some());
    });
}

#[test]
fn object_in_a_namespace_that_does_not_exist_is_reported_and_applied_when_it_does() {
    block_on(async {
        // Given a module that may write into other namespaces.
        let setup = Setup::new(Script::new().finalizes());
        let stage = setup.spec(json!({"allowCrossNamespace": true})).start().await;

        // When a primary desires an object in a namespace that does not exist.
        let mut elsewhere = config_map("a", "1");
        elsewhere["metadata"]["namespace"] = json!("missing");
        stage.create("one", &complete(&desired(&[elsewhere, config_map("b", "1")]))).await;
        let message = stage.until_primary("one", "Synced", "False", "NamespaceNotFound").await;

        // Then the condition names the namespace, and the other object is applied.
        assert!(message.contains("missing"), "{message}");
        assert!(stage.config_map("b").await.is_some());

        // When the namespace is created, then the object is applied.
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "missing"}});
        stage.api().apply(&namespace, "").await.unwrap();
        stage.until_primary("one", "Synced", "True", "Applied").await;
        assert!(stage.get("/api/v1/namespaces/missing/configmaps/a").await.is_some());
    });
}

#[test]
fn foreign_object_is_not_touched_until_its_primary_may_adopt_it() {
    block_on(async {
        // Given a ConfigMap of an administrator.
        let stage = Setup::new(Script::new()).object(config_map("a", "theirs")).start().await;
        let before = stage.config_map("a").await;

        // When a primary desires an object of its name, and another one.
        stage.create("one", &both("ours", "ours")).await;
        let message = stage.until_primary("one", "Synced", "False", "Conflict").await;
        stage.settle().await;

        // Then nothing is written but the status: a primary has all of its objects or none.
        assert!(message.contains("ConfigMap ns/a"), "{message}");
        assert_eq!(stage.writes(), ["apply scripts/one/status"]);
        assert_eq!(stage.config_map("a").await, before);
        assert_eq!(stage.config_map("b").await, None);

        // When the primary has the annotation that permits it.
        stage.annotate("one", "innkeeper.dev/adopt", &json!("true")).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // Then the object is adopted, an Event says so, and the other one is created.
        let adopted = stage.config_map("a").await.unwrap();
        assert_eq!(adopted["metadata"]["uid"], before.unwrap()["metadata"]["uid"]);
        assert_eq!(adopted["metadata"]["ownerReferences"][0]["name"], "one");
        assert_eq!(adopted["data"]["value"], "ours");
        assert!(stage.config_map("b").await.is_some());
        let events = stage.events("one").await;
        assert!(events.iter().any(|(reason, _)| reason == "Adopted"), "{events:?}");
    });
}

#[test]
fn object_of_another_primary_is_neither_changed_nor_adopted() {
    block_on(async {
        // Given an object of one primary.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &complete(&desired(&[config_map("a", "one")]))).await;
        stage.settle().await;
        let before = stage.config_map("a").await;

        // When another primary desires it, and is permitted to adopt.
        stage.create("two", &complete(&desired(&[config_map("a", "two")]))).await;
        stage.annotate("two", "innkeeper.dev/adopt", &json!("true")).await;
        let message = stage.until_primary("two", "Synced", "False", "Conflict").await;

        // Then the condition names the owner, and the object stays as it is.
        assert!(message.contains("one"), "{message}");
        assert_eq!(stage.config_map("a").await, before);

        // When the owner is deleted, then the other primary has the object.
        stage.delete("one").await;
        stage.until_primary("two", "Synced", "True", "Applied").await;
        assert_eq!(stage.config_map("a").await.unwrap()["data"]["value"], "two");
    });
}

#[test]
fn object_that_is_no_longer_desired_is_deleted_only_after_a_round_without_problems() {
    block_on(async {
        // Given a primary with two objects.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &both("1", "1")).await;
        stage.settle().await;

        // When the guest replaces one of them by an object that the API server refuses.
        let mut invalid = config_map("c", "1");
        invalid["data"] = json!({"no key": "1"});
        stage.set_spec("one", &complete(&desired(&[config_map("a", "1"), invalid]))).await;
        stage.until_primary("one", "Synced", "False", "Invalid").await;
        stage.pass(60).await;

        // Then the old object stays, as what replaces it is not there.
        assert!(stage.config_map("b").await.is_some());
        stage.writes();

        // When the refused object is corrected.
        let spec = complete(&desired(&[config_map("a", "1"), config_map("c", "1")]));
        stage.set_spec("one", &spec).await;
        stage.settle().await;

        // Then it is created first, and the old one is deleted after it.
        let writes = stage.writes();
        let expected = ["apply configmaps/c", "delete configmaps/b", "apply scripts/one/status"];
        assert_eq!(writes, expected);
    });
}

#[test]
fn objects_stay_when_the_outcome_is_partial_and_when_the_guest_fails() {
    block_on(async {
        // Given a primary with two objects.
        let stage = Stage::start(Script::new()).await;
        stage.create("one", &both("1", "1")).await;
        stage.settle().await;
        stage.writes();

        // When the guest gives one of them, changed, as a partial outcome.
        stage.set_spec("one", &json!({"partial": desired(&[config_map("a", "2")])})).await;
        stage.settle().await;

        // Then that one is applied, and the other stays.
        assert_eq!(stage.writes(), ["apply configmaps/a", "apply scripts/one/status"]);
        assert!(stage.config_map("b").await.is_some());

        // When it fails, then both stay.
        let failed = json!({"reason": "NoAnswer", "message": "Nobody knows.", "permanent": true});
        stage.set_spec("one", &json!({ "failed": failed })).await;
        stage.until_primary("one", "Synced", "False", "NoAnswer").await;
        stage.settle().await;
        assert!(stage.config_map("a").await.is_some() && stage.config_map("b").await.is_some());

        // When it gives none as a complete outcome but keeps one, then the other is deleted.
        let keep = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}]);
        stage.set_spec("one", &complete(&json!({ "keep": keep }))).await;
        stage.settle().await;
        assert!(stage.config_map("a").await.is_some());
        assert_eq!(stage.get(&config_map_path("b")).await, None);
    });
}
