//! Writes that the API server refuses, and what the Module says of them.

use serde_json::{Value, json};

use crate::support::{
    Script, Sent, Setup, Stage, block_on, complete, condition, config_map, desired,
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The revision that is active, and how often the Module was rolled back.
async fn version(stage: &Stage) -> Value {
    stage.module().await["status"]["guest"]["version"].clone()
}

fn one(name: &str) -> Value {
    complete(&desired(&[config_map(name, "1")]))
}

#[test]
fn module_that_may_not_create_is_neither_healthy_nor_ready_until_it_may() {
    block_on(async {
        // Given a module whose account has lost the right to create ConfigMaps.
        let stage = Stage::start(Script::new()).await;
        stage.revoke("create", "configmaps").await;

        // When two primaries are created.
        stage.create("one", &one("a")).await;
        stage.create("two", &one("b")).await;
        stage.until_primary("one", "Synced", "False", "Forbidden").await;
        stage.until_primary("two", "Synced", "False", "Forbidden").await;
        stage.pass(10).await;

        // Then the Module says so: verb, resource, number of primaries and what to do.
        let message = stage.until_module("Healthy", "False", "Forbidden").await;
        for part in ["2 primaries", "may not create configmaps in namespace ns", "innkeeper rbac"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(stage.until_module("Ready", "False", "Forbidden").await, message);

        // When the account has the right, then the Module is healthy and ready.
        stage.grant(&["create"], "", "configmaps").await;
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;
        stage.until_module("Ready", "True", "RevisionActive").await;
    });
}

#[test]
fn object_that_is_refused_because_of_one_primarys_data_is_named_and_the_module_is_healthy() {
    block_on(async {
        // Given a module with a good primary.
        let stage = Stage::start(Script::new()).await;
        stage.create("good", &one("a")).await;
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;

        // When another primary desires an object that the API server refuses.
        let mut invalid = config_map("b", "1");
        invalid["data"] = json!({"no key": "1"});
        stage.create("bad", &complete(&desired(&[invalid]))).await;

        // Then the Module is healthy and ready, and names the primary.
        let message = stage.until_module("Healthy", "True", "SomeWritesRefused").await;
        assert!(message.contains("1 primary are refused: ns/bad (Invalid)"), "{message}");
        let module = stage.module().await;
        assert_eq!(condition(&module, "Ready").unwrap()["status"], "True");

        // When it is corrected, then nothing is refused.
        stage.set_spec("bad", &one("b")).await;
        stage.until_module("Healthy", "True", "ReconcileSucceeded").await;
    });
}

#[test]
fn conflict_of_a_primary_is_named_and_the_module_is_healthy() {
    block_on(async {
        let stage = Setup::new(Script::new()).object(config_map("a", "theirs")).start().await;
        stage.create("one", &one("a")).await;
        let message = stage.until_module("Healthy", "True", "SomeWritesRefused").await;
        assert!(message.contains("ns/one (Conflict)"), "{message}");
    });
}

#[test]
fn role_binding_that_grants_more_than_the_account_has_is_explained_by_the_verb_bind() {
    block_on(async {
        // Given a module that may write RoleBindings, and no right to grant.
        let bindings = json!({"kind": {"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "plural": "rolebindings", "scope": "Namespaced"}});
        let all = ["get", "list", "watch", "create", "patch", "delete"];
        let setup = Setup::new(Script::new().owns(bindings)).may(&all, RBAC, "rolebindings");
        let stage = setup.start().await;

        // When a primary desires a binding to a role that grants everything.
        let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": {"name": "admins"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "ns"}]});
        stage.create("one", &complete(&desired(&[binding]))).await;

        // Then the condition of the primary names the verb that is missing, and the Module is
        // healthy: which role it is may come from the primary's own data.
        let expected = "to write rolebindings, the ServiceAccount needs all rights that the bound role grants, or the verb bind on that role";
        let message = stage.until_primary("one", "Synced", "False", "Forbidden").await;
        assert!(message.contains(expected), "{message}");
        let message = stage.until_module("Healthy", "True", "SomeWritesRefused").await;
        assert!(message.contains("ns/one (Forbidden)"), "{message}");
        stage.until_module("Ready", "True", "RevisionActive").await;
    });
}

#[test]
fn turn_that_the_write_rate_interrupts_changes_nothing_about_the_module() {
    block_on(async {
        // Given a primary with one refused object and more others than the rate allows at once.
        let objects = |value: &str| {
            let mut invalid = config_map("a", "1");
            invalid["data"] = json!({"no key": "1"});
            let mut objects = vec![invalid];
            objects.extend((0..40).map(|number| config_map(&format!("b-{number}"), value)));
            complete(&desired(&objects))
        };
        let spec = json!({"limits": {"writesPerSecond": 1}});
        let stage = Setup::new(Script::new()).spec(spec).start().await;
        stage.create("one", &objects("1")).await;
        stage.until_module("Healthy", "True", "SomeWritesRefused").await;
        stage.pass(60).await;
        let before = stage.module().await["metadata"]["resourceVersion"].clone();

        // When all of them change, which takes several turns.
        stage.set_spec("one", &objects("2")).await;
        stage.pass(5).await;
        assert_eq!(stage.config_map("b-9").await.unwrap()["data"]["value"], "1");
        stage.pass(120).await;
        assert_eq!(stage.config_map("b-9").await.unwrap()["data"]["value"], "2");

        // Then the Module has named the primary all the time.
        assert_eq!(stage.module().await["metadata"]["resourceVersion"], before);
    });
}

/// A script of this version that makes a Service for each primary if `makes`.
fn maker(version: &str, makes: bool) -> Script {
    let services = json!({"kind": {"apiVersion": "v1", "kind": "Service", "plural": "services",
        "scope": "Namespaced"}});
    let script = Script::new().with("version", json!(version)).owns(services);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]}});
    if makes { script.when("\"kind\":\"Script\"", &desired(&[service])) } else { script }
}

#[test]
fn revision_that_may_not_write_what_only_it_writes_is_rolled_back() {
    block_on(async {
        // Given a revision that makes nothing, and an account that may only read Services.
        let setup =
            Setup::new(maker("1.0.0", false)).may(&["get", "list", "watch"], "", "services");
        let stage = setup.spec(json!({"rollout": {"strategy": "Immediate"}})).start().await;
        stage.create("one", &json!({})).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // When a revision that makes Services becomes active.
        stage.push(&maker("2.0.0", true)).await;
        stage.until_module("Ready", "False", "RolledBack").await;

        // Then the previous one is active again.
        assert_eq!(version(&stage).await, "1.0.0");
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn right_that_is_taken_away_in_the_rollback_window_rolls_no_revision_back() {
    block_on(async {
        // Given two revisions that make the same objects, the second in its rollback window.
        let immediate = json!({"rollout": {"strategy": "Immediate"}});
        let stage = Setup::new(Script::new()).spec(immediate).start().await;
        stage.push(&Script::new().with("version", json!("2.0.0"))).await;
        assert_eq!(version(&stage).await, "2.0.0");

        // When somebody takes the right to create from the account.
        stage.revoke("create", "configmaps").await;
        stage.create("one", &one("a")).await;
        stage.until_module("Healthy", "False", "Forbidden").await;
        stage.pass(60).await;

        // Then the second revision stays: the first one could not write either.
        assert_eq!(version(&stage).await, "2.0.0");
    });
}

#[test]
fn object_that_is_refused_in_the_rollback_window_rolls_no_revision_back() {
    block_on(async {
        let immediate = json!({"rollout": {"strategy": "Immediate"}});
        let stage = Setup::new(Script::new()).spec(immediate).start().await;
        stage.push(&Script::new().with("version", json!("2.0.0"))).await;
        let mut invalid = config_map("b", "1");
        invalid["data"] = json!({"no key": "1"});
        stage.create("bad", &complete(&desired(&[invalid]))).await;
        stage.until_module("Healthy", "True", "SomeWritesRefused").await;
        stage.pass(60).await;
        assert_eq!(version(&stage).await, "2.0.0");
    });
}

#[test]
fn revision_that_lacks_a_right_for_a_verb_that_the_previous_one_does_not_need_is_rolled_back() {
    block_on(async {
        // Given a revision whose object is there, and an account that may not change it.
        let of = |version: &str, value: &str| {
            let script = Script::new().with("version", json!(version));
            script.when("\"kind\":\"Script\"", &desired(&[config_map("a", value)]))
        };
        let immediate = json!({"rollout": {"strategy": "Immediate"}});
        let stage = Setup::new(of("1.0.0", "1")).spec(immediate).start().await;
        stage.create("one", &json!({})).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.revoke("patch", "configmaps").await;

        // When a revision that changes the object becomes active.
        stage.push(&of("2.0.0", "2")).await;
        stage.until_module("Ready", "False", "RolledBack").await;

        // Then the previous one is active again: it has nothing to write.
        assert_eq!(version(&stage).await, "1.0.0");
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn primary_that_is_refused_again_and_again_does_not_flood_the_status_of_the_module() {
    block_on(async {
        // Given a primary that a tenant breaks and corrects, every second for two minutes.
        let stage = Stage::start(Script::new()).await;
        let mut invalid = config_map("a", "1");
        invalid["data"] = json!({"no key": "1"});
        let bad = complete(&desired(&[invalid]));
        stage.create("one", &one("a")).await;
        stage.settle().await;
        stage.proxy().take();
        for second in 0..120 {
            let spec = if second % 2 == 0 { &bad } else { &one("a") };
            stage.set_spec("one", spec).await;
            stage.pass(1).await;
        }
        let is_status = |one: &&Sent| one.path.ends_with("/modules/scripts/status");
        let writes = stage.proxy().take().iter().filter(is_status).count();
        assert!((5..=14).contains(&writes), "{writes} writes of the Module's status");

        // When it stays broken, then the Module says so.
        stage.set_spec("one", &bad).await;
        stage.until_module("Healthy", "True", "SomeWritesRefused").await;
    });
}
