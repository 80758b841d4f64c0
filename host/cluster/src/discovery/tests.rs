use std::time::Duration;

use innkeeper_contract::Kind;
use innkeeper_core::{Manager, ObjectKey};
use serde_json::{Value, json};

use super::*;
use crate::scripted::{Reply, Server, resources, status};
use crate::{Force, Propagation};

const CORE: &str = "GET /api/v1";
const FOOS: &str = "GET /apis/x.dev/v1";

fn served(kind: &Kind, all: &Value) -> ServedKind {
    #[derive(Deserialize)]
    struct List {
        resources: Vec<Resource>,
    }
    let list: List = serde_json::from_value(all.clone()).unwrap();
    compare(kind, &list.resources)
}

fn mismatch(kind: &Kind, all: &Value) -> String {
    match served(kind, all) {
        ServedKind::Mismatched(mismatch) => mismatch.to_string(),
        other => panic!("{kind:?} is {other:?}"),
    }
}

#[test]
fn kind_is_as_declared_only_with_the_same_kind_plural_and_scope() {
    let core = resources(&[
        ("secrets", "Secret", true),
        ("secrets/status", "Secret", true),
        ("configmaps", "ConfigMap", true),
        ("namespaces", "Namespace", false),
    ]);
    let secret = Kind::namespaced("v1", "Secret", "secrets");
    assert_eq!(served(&secret, &core), ServedKind::AsDeclared);
    assert_eq!(served(&Kind::namespaced("v1", "Pod", "pods"), &core), ServedKind::NotServed);
    for kind in [
        Kind::namespaced("v1", "Sekret", "secrets"),
        Kind::namespaced("v1", "ConfigMap", "secrets"),
        Kind::namespaced("v1", "secret", "secrets"),
        Kind::namespaced("v1", "Secret", "configmaps"),
        Kind::namespaced("v1", "Secret", "sekrets"),
        Kind::cluster("v1", "Secret", "secrets"),
        Kind::namespaced("v1", "Namespace", "namespaces"),
        Kind::namespaced("v1", "Secret", "secrets/status"),
    ] {
        mismatch(&kind, &core);
    }
    assert_eq!(
        mismatch(&Kind::namespaced("v1", "Sekret", "secrets"), &core),
        "the manifest declares v1 Sekret (plural secrets, scope Namespaced), but the API server serves v1 Secret (plural secrets, scope Namespaced): nothing of it is read or written; correct the guest's manifest or the definition of the kind"
    );
}

#[test]
fn subresource_is_not_served_as_a_kind() {
    let scale = resources(&[("foos/scale", "Scale", true), ("foos", "Foo", true)]);
    let kind = Kind::namespaced("x.dev/v1", "Scale", "foos/scale");
    assert_eq!(served(&kind, &scale), ServedKind::NotServed);
}

#[test]
fn resource_with_objects_of_another_group_is_mismatched() {
    let list = json!({"resources": [
        {"name": "foos", "kind": "Foo", "namespaced": true, "group": "y.dev", "version": "v1"}]});
    mismatch(&Kind::namespaced("x.dev/v1", "Foo", "foos"), &list);
    let own = json!({"resources": [
        {"name": "foos", "kind": "Foo", "namespaced": true, "group": "x.dev", "version": "v2"}]});
    assert_eq!(served(&Kind::namespaced("x.dev/v1", "Foo", "foos"), &own), ServedKind::AsDeclared);
}

#[test]
fn name_from_an_aggregated_server_is_quoted_in_bounded_printable_ascii() {
    let long = format!("Bar\n{}", "y".repeat(10_000));
    let list = json!({"resources": [{"name": "foos", "kind": long, "namespaced": true}]});
    let message = mismatch(&Kind::namespaced("x.dev/v1", "Foo", "foos"), &list);
    assert!(message.len() < 500 && message.contains("Bar?yyy"), "{message}");
}

fn foo() -> Kind {
    Kind::namespaced("x.dev/v1", "Foo", "foos")
}

fn document(kind: &str) -> Reply {
    Reply::Json(200, resources(&[("foos", kind, true), ("bars", "Bar", true)]))
}

#[tokio::test(start_paused = true)]
async fn kinds_of_one_version_take_one_request_for_all_modules() {
    let server = Server::new();
    server.always(FOOS, document("Foo"));
    let cluster = server.cluster();
    let ask = |account: &str, kind: Kind| {
        let client = cluster.as_account(&crate::Account::new("m", account));
        async move { client.discovery().check(&kind, Duration::MAX).await.unwrap() }
    };
    let (a, b, c) = tokio::join!(
        ask("a", foo()),
        ask("b", foo()),
        ask("c", Kind::namespaced("x.dev/v1", "Bar", "bars"))
    );
    assert_eq!([a, b, c], [ServedKind::AsDeclared, ServedKind::AsDeclared, ServedKind::AsDeclared]);
    assert_eq!(server.log().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn old_doubtful_or_forgotten_answer_is_requested_again() {
    let server = Server::new();
    server.always(FOOS, document("Foo"));
    let client = server.client("a");
    let ask =
        async |age: u64| client.discovery().check(&foo(), Duration::from_secs(age)).await.unwrap();
    ask(60).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    ask(60).await;
    assert_eq!(server.log().len(), 1);
    ask(10).await;
    assert_eq!(server.log().len(), 2, "too old");
    client.discovery().forget("y.dev");
    ask(60).await;
    assert_eq!(server.log().len(), 2, "another group");
    server.always(FOOS, document("Baz"));
    client.discovery().forget("x.dev");
    assert!(matches!(ask(60).await, ServedKind::Mismatched(_)));
    assert!(matches!(ask(60).await, ServedKind::Mismatched(_)));
    assert_eq!(server.log().len(), 3);
    server.always(FOOS, document("Foo"));
    tokio::time::sleep(RECHECK_PERIOD).await;
    assert_eq!(ask(60).await, ServedKind::AsDeclared, "a bad answer does not hold for long");
}

#[tokio::test(start_paused = true)]
async fn client_sends_nothing_while_discovery_fails() {
    let server = Server::new();
    let path = "GET /apis/x.dev/v1/namespaces/n/foos/a";
    server.always(path, Reply::Json(200, json!({"metadata": {"namespace": "n", "name": "a"}})));
    let client = server.client("a");
    let key = ObjectKey::new("n", "a");
    for reply in [
        Reply::Json(503, status(503, "ServiceUnavailable", "away", &json!({}))),
        Reply::Json(403, status(403, "Forbidden", "no", &json!({}))),
        Reply::Json(200, json!({"resources": "nonsense"})),
        Reply::Text(200, "<html>"),
    ] {
        server.always(FOOS, reply);
        tokio::time::sleep(RECHECK_PERIOD).await;
        client.get(&foo(), &key).await.unwrap_err();
    }
    assert_eq!(server.count("foos"), 0, "{:#?}", server.log());
    server.always(FOOS, document("Foo"));
    tokio::time::sleep(RECHECK_PERIOD).await;
    client.get(&foo(), &key).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn client_of_a_module_sends_no_request_for_a_mismatched_kind() {
    let server = Server::new();
    let client = server.client("a");
    let (loot, key) = (Kind::namespaced("v1", "Loot", "secrets"), ObjectKey::new("n", "a"));
    let manager = Manager::primary("m", "u");
    let body = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}});
    let errors = [
        client.get(&loot, &key).await.unwrap_err(),
        client.get_as::<Value>(&loot, &key).await.unwrap_err(),
        client.list_as::<Value>(&loot, "").await.unwrap_err(),
        client.apply(&loot, &key, &manager, &body, Force::Yes).await.unwrap_err(),
        client.apply_status(&loot, &key, &manager, &body, Force::Yes).await.unwrap_err(),
        client.merge_patch(&loot, &key, &manager, &body).await.unwrap_err(),
        client.delete(&loot, &key, "u", Propagation::Background).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.reason(), "KindMismatch", "{error}");
    }
    assert_eq!(server.log(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn client_of_a_module_neither_reads_host_secrets_nor_writes_host_objects() {
    let server = Server::new();
    server.always(CORE, Reply::Json(200, resources(&[("secrets", "Secret", true)])));
    let secrets = Kind::namespaced("v1", "Secret", "secrets");
    let cluster =
        server.cluster().with_secret_key(crate::SecretDigestKey::new(b"k").kept_in("sys"));
    let account = cluster.as_account(&crate::Account::new("m", "a"));
    // A Module of a folder may act with the rights of the host's kubeconfig.
    for client in [account, cluster.host().for_module()] {
        for namespace in ["innkeeper-system", "innkeeper-modules", "sys"] {
            let key = ObjectKey::new(namespace, "innkeeper-digest-key");
            let manager = Manager::primary("m", "u");
            let body = json!({"metadata": {"name": "a", "uid": "u"}});
            for error in [
                client.get(&secrets, &key).await.unwrap_err(),
                client.get_as::<Value>(&secrets, &key).await.unwrap_err(),
            ] {
                assert_eq!(error.reason(), "NotFound", "{error}");
            }
            for error in [
                client.apply(&secrets, &key, &manager, &body, Force::Yes).await.unwrap_err(),
                client.delete(&secrets, &key, "u", Propagation::Background).await.unwrap_err(),
            ] {
                assert!(error.to_string().contains("belongs to Innkeeper itself"), "{error}");
            }
        }
    }
    assert_eq!(server.count("innkeeper-digest-key"), 0);
    let path = "GET /api/v1/namespaces/sys/secrets/innkeeper-digest-key";
    server.always(path, Reply::Json(200, json!({"metadata": {}})));
    let key = ObjectKey::new("sys", "innkeeper-digest-key");
    cluster.host().get_as::<Value>(&secrets, &key).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn object_outside_the_scope_of_its_kind_is_refused() {
    let server = Server::new();
    server.always(FOOS, Reply::Json(200, resources(&[("foos", "Foo", false)])));
    let path = "GET /apis/x.dev/v1/foos/a";
    let client = server.client("a");
    let foo = Kind::cluster("x.dev/v1", "Foo", "foos");
    let stored = json!({"metadata": {"namespace": "victim", "name": "a"}});
    server.always(path, Reply::Json(200, stored));
    let error = client.get(&foo, &ObjectKey::new("", "a")).await.unwrap_err().to_string();
    assert!(error.contains("lies in namespace \"victim\""), "{error}");
    server.always(path, Reply::Json(200, json!({"metadata": {"name": "a"}})));
    client.get(&foo, &ObjectKey::new("", "a")).await.unwrap();
}
