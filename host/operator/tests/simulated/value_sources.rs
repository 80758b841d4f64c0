//! Values that the host copies into desired objects, unseen by the guest.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{
    Reply, Script, Sent, Setup, Stage, block_on, complete, primary_path, refusal,
};

/// Two values of the source, in base64.
const FIRST: &str = "Zmlyc3QtdmFsdWU=";
const SECOND: &str = "c2Vjb25kLXZhbHVl";
/// The path of the source.
const SOURCE: &str = "/api/v1/namespaces/central/secrets/pull";

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// The source, with this value.
fn source(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "example.com/pull",
        "metadata": {"name": "pull", "namespace": "central"}, "data": {"token": value, "other": "eA=="}})
}

/// A Secret of this name that copies these keys of the source.
fn copy(namespace: &str, name: &str, keys: &Value) -> Value {
    json!({"object": {"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace}},
        "valuesFrom": [{"kind": "Secret", "namespace": "central", "name": "pull", "keys": keys}]})
}

/// The spec of a primary that desires these objects until it is deleted.
fn spec(objects: &[Value]) -> Value {
    let mut spec = complete(&json!({ "objects": objects }));
    spec["finalizing"] = json!({"finalized": true});
    spec
}

/// The spec of a primary that desires the copy `copy` in its namespace.
fn one_copy() -> Value {
    spec(&[copy("ns", "copy", &json!({"token": "token"}))])
}

fn copy_path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/secrets/{name}")
}

fn script() -> Script {
    let secrets =
        json!({"apiVersion": "v1", "kind": "Secret", "plural": "secrets", "scope": "Namespaced"});
    Script::new().finalizes().owns(json!({ "kind": secrets }))
}

/// A stage whose Module grants the source to every namespace; the source has [`FIRST`].
async fn stage_with(script: Script) -> Stage {
    let spec = json!({"allowCrossNamespace": true, "valueSources": [
        {"kind": "Secret", "namespace": "central", "name": "pull", "toNamespaces": ["*"]},
        {"kind": "ConfigMap", "namespace": "central", "name": "open", "toNamespaces": ["ns"]}]});
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let setup = Setup::new(script).spec(spec).may(&verbs, "", "secrets");
    let stage = setup.start().await;
    stage.apply(&namespace("central")).await;
    stage.apply(&source(FIRST)).await;
    stage
}

async fn stage() -> Stage {
    stage_with(script()).await
}

#[test]
fn copy_follows_its_source_and_costs_one_read_and_one_write_for_each_change() {
    block_on(async {
        // Given a primary whose guest copies a Secret of another namespace.
        let stage = stage().await;
        stage.create("one", &one_copy()).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;

        // Then the copy has the value, the type and the mark, and the guest's body has neither.
        let made = stage.get(&copy_path("ns", "copy")).await.unwrap();
        assert_eq!(made["data"], json!({ "token": FIRST }));
        assert_eq!(made["type"], "example.com/pull");
        let annotations = &made["metadata"]["annotations"];
        assert_eq!(annotations["innkeeper.dev/copied-keys"], r#"["token"]"#);
        assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "one");
        stage.proxy().take();

        // When the source changes, then the host reads it once, and writes the copy once.
        stage.apply(&source(SECOND)).await;
        stage.settle().await;
        assert_eq!(stage.get(&copy_path("ns", "copy")).await.unwrap()["data"]["token"], SECOND);
        let sent = stage.proxy().take();
        let of_secrets: Vec<String> = sent
            .iter()
            .filter(|one| one.path.contains("/secrets") && !one.query.contains("watch"))
            .map(Sent::line)
            .collect();
        assert_eq!(of_secrets, ["get secrets/pull", "apply secrets/copy"]);

        // When another key of the source changes, then the host writes nothing.
        let mut other = source(SECOND);
        other["data"]["other"] = json!("eQ==");
        stage.apply(&other).await;
        stage.settle().await;
        assert_eq!(stage.writes(), [""; 0]);

        // When the host starts again, then the host writes nothing either.
        let stage = stage.stop().await.start().await;
        stage.settle().await;
        stage.pass(600).await;
        let writes = stage.writes();
        assert!(!writes.iter().any(|line| line.contains("secrets")), "{writes:?}");
    });
}

#[test]
fn copy_stays_while_its_source_or_key_is_missing_and_follows_when_it_returns() {
    block_on(async {
        let stage = stage().await;
        stage.create("one", &one_copy()).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let uid = stage.get(&copy_path("ns", "copy")).await.unwrap()["metadata"]["uid"].clone();

        // When the source loses its key, and then is deleted.
        stage.merge_at(SOURCE, &json!({"data": {"token": null}})).await;
        let message = stage.until_primary("one", "Synced", "False", "ValueKeyMissing").await;
        let expected = "Secret ns/copy: its value source Secret central/pull has no key `token`; add the key to the source";
        assert_eq!(message, expected);
        stage.api().delete(SOURCE).await.unwrap();
        stage.until_primary("one", "Synced", "False", "ValueSourceMissing").await;
        stage.pass(600).await;

        // Then the copy stays as it is.
        let kept = stage.get(&copy_path("ns", "copy")).await.unwrap();
        assert_eq!((&kept["data"]["token"], &kept["metadata"]["uid"]), (&json!(FIRST), &uid));

        // When the source returns, then the copy follows.
        stage.apply(&source(SECOND)).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let copy = stage.get(&copy_path("ns", "copy")).await.unwrap();
        assert_eq!((&copy["data"]["token"], &copy["metadata"]["uid"]), (&json!(SECOND), &uid));
    });
}

#[test]
fn round_with_copies_in_three_namespaces_reads_the_source_once() {
    block_on(async {
        let stage = stage().await;
        let spaces = ["ns", "x", "y"];
        for name in &spaces[1..] {
            stage.apply(&namespace(name)).await;
        }
        stage.settle().await;
        stage.proxy().take();
        let copies: Vec<Value> =
            spaces.iter().map(|space| copy(space, "copy", &json!({"token": "renamed"}))).collect();
        stage.create("one", &spec(&copies)).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        for space in spaces {
            let copy = stage.get(&copy_path(space, "copy")).await.unwrap();
            assert_eq!(copy["data"], json!({ "renamed": FIRST }), "{space}");
        }
        let sent = stage.proxy().take();
        let reads = sent.iter().filter(|one| one.method == "GET" && one.path == SOURCE);
        assert_eq!(reads.count(), 1);

        // When the guest drops its copies and the primary is deleted, then they are gone.
        stage.delete("one").await;
        stage.until_gone(&primary_path("one")).await;
        stage.settle().await;
        for space in spaces {
            assert_eq!(stage.get(&copy_path(space, "copy")).await, None, "{space}");
        }
        assert!(stage.get(SOURCE).await.is_some());
    });
}

#[test]
fn config_map_is_copied_with_its_binary_values() {
    block_on(async {
        let stage = stage().await;
        let data = json!({"a": "text"});
        let binary = json!({"b": "AAEC"});
        stage.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "open", "namespace": "central"}, "data": data, "binaryData": binary})).await;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy"}, "data": {"own": "x"}});
        let from = json!([{"kind": "ConfigMap", "namespace": "central", "name": "open"}]);
        let desired = json!({"objects": [{"object": object, "valuesFrom": from}]});
        stage.create("one", &complete(&desired)).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        let copy = stage.config_map("copy").await.unwrap();
        assert_eq!(copy["data"], json!({"a": "text", "own": "x"}));
        assert_eq!(copy["binaryData"], binary);
    });
}

#[test]
fn source_that_changes_between_plan_and_write_is_planned_again() {
    block_on(async {
        let stage = stage().await;
        stage.settle().await;
        // Given a source that another client replaces before the host reads it.
        let simulator = stage.simulator().clone();
        let replaced = Arc::new(Mutex::new(false));
        let done = replaced.clone();
        stage.proxy().intercept(move |sent| {
            if sent.method == "GET"
                && sent.path == SOURCE
                && !std::mem::replace(&mut done.lock().unwrap(), true)
            {
                let request = http::Request::patch(SOURCE)
                    .header("content-type", "application/merge-patch+json")
                    .body(source(SECOND).to_string().into());
                simulator.request(request.unwrap());
            }
            Reply::Forward
        });
        stage.create("one", &one_copy()).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;

        // Then the copy is written once, with the new value.
        assert!(*replaced.lock().unwrap());
        let writes = stage.writes();
        assert_eq!(
            writes.iter().filter(|line| *line == "apply secrets/copy").count(),
            1,
            "{writes:?}"
        );
        assert_eq!(stage.get(&copy_path("ns", "copy")).await.unwrap()["data"]["token"], SECOND);
    });
}

#[test]
fn right_that_the_account_lacks_on_the_source_is_named() {
    block_on(async {
        let stage = stage().await;
        stage.settle().await;
        stage.revoke("get", "secrets").await;
        stage.create("one", &one_copy()).await;
        let message = stage.until_primary("one", "Synced", "False", "Forbidden").await;
        for part in [
            "Secret ns/copy: its value source Secret central/pull cannot be read",
            "may not get secrets in namespace central",
            "the ServiceAccount needs the verb get on it, for example by resourceNames: [pull]",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(stage.get(&copy_path("ns", "copy")).await, None);
        stage.grant(&["get"], "", "secrets").await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
    });
}

#[test]
fn refusal_of_a_copy_is_shown_without_the_servers_text() {
    block_on(async {
        let stage = stage().await;
        for (code, reason, expected) in [
            (422, "Invalid", "Invalid"),
            (400, "BadRequest", "Malformed"),
            (403, "Forbidden", "Forbidden"),
            (500, "InternalError", "ServerError"),
        ] {
            stage.proxy().intercept(move |sent| {
                if sent.path.ends_with("/secrets/copy") && sent.method == "PATCH" {
                    let text = format!("webhook says: {} f of first-value", sent.body);
                    return refusal(code, reason, &text);
                }
                Reply::Forward
            });
            stage.create("one", &one_copy()).await;
            let message = stage.until_primary("one", "Synced", "False", expected).await;
            assert!(message.contains("the API server's message is hidden"), "{message}");
            let shown = format!("{} {:?}", stage.primary("one").await, stage.events("one").await);
            assert!(!shown.contains("first-value") && !shown.contains(FIRST), "{shown}");
            stage.proxy().forward();
            stage.delete("one").await;
            stage.until_gone(&primary_path("one")).await;
        }
    });
}

#[test]
fn guest_sees_its_copy_without_a_digest() {
    block_on(async {
        let seen = json!({"objects": [copy("ns", "copy", &json!({"token": "token"}))],
            "status": {"seen": "copied"}});
        let stage = stage_with(script().when(r#""token":"copied""#, &seen)).await;
        stage.create("one", &one_copy()).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.settle().await;
        assert_eq!(stage.primary("one").await["status"]["seen"], "copied");
    });
}

#[test]
fn grant_that_is_withdrawn_leaves_the_copy_and_says_so() {
    block_on(async {
        let stage = stage().await;
        stage.create("one", &one_copy()).await;
        stage.until_primary("one", "Synced", "True", "Applied").await;
        stage.merge_module(&json!({"spec": {"valueSources": null}})).await;
        let message = stage.until_primary("one", "Synced", "False", "ValueSourceNotGranted").await;
        assert!(message.contains("add it to spec.valueSources of the Module"), "{message}");
        stage.pass(60).await;
        assert_eq!(stage.get(&copy_path("ns", "copy")).await.unwrap()["data"]["token"], FIRST);
    });
}
