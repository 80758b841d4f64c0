//! Three modules with accounts of their own: what each can read and write, and that nothing else
//! reaches it, by whatever way; and that a Secret's bytes reach nobody.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use innkeeper_cluster_tests::stage::{MODULES, SOON};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage, eventually};
use serde_json::{Value, json};

const READER: Kind = Kind::new("example.innkeeper.dev/v1", "Reader");
const RBAC: &str = "rbac.authorization.k8s.io";

/// What nobody may see. By itself and as the API writes it.
const TREASURE: &str = "the-bytes-of-the-treasure";

/// Within this time a right that is taken away has ended the reads.
const A_MINUTE: Duration = Duration::from_mins(1);

/// The modules, and the namespaces in which each has its primaries.
const MODULES_AND_HOMES: [(&str, &str); 3] =
    [("maps", "home-of-maps"), ("secrets", "home-of-secrets"), ("writer", "home-of-writer")];

/// The role of an account in one namespace, or in the whole cluster.
fn role(module: &str, namespace: Option<&str>, rules: &Value) -> String {
    let (role, binding) = match namespace {
        Some(_) => ("Role", "RoleBinding"),
        None => ("ClusterRole", "ClusterRoleBinding"),
    };
    let name = format!("{module}-{}", namespace.unwrap_or("everywhere"));
    let metadata = json!({"name": name, "namespace": namespace});
    let rules = json!({"apiVersion": format!("{RBAC}/v1"), "kind": role, "metadata": metadata,
        "rules": rules});
    let bound = json!({"apiVersion": format!("{RBAC}/v1"), "kind": binding, "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": module, "namespace": MODULES}]});
    format!("{rules}\n---\n{bound}\n")
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

const READ: [&str; 3] = ["get", "list", "watch"];

/// What every module of Readers needs for its primaries, in its own namespace.
fn of_primaries() -> [Value; 4] {
    let group = "example.innkeeper.dev";
    [
        rule(group, "readers", &READ),
        rule(group, "readers/status", &["patch"]),
        rule(group, "readers/finalizers", &["update"]),
        rule("events.k8s.io", "events", &["create", "patch"]),
    ]
}

fn with(more: &[Value]) -> Value {
    of_primaries().into_iter().chain(more.iter().cloned()).collect()
}

async fn stage() -> Result<(Stage, Host)> {
    let stage = Stage::new().await?;
    let crd: Value =
        serde_json::from_str(include_str!("../../../guests/examples/reader/crd.json"))?;
    for crd in stage.admin.apply(&crd.to_string()).await? {
        stage.admin.until_established(&crd).await?;
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(TREASURE);
    for (module, home) in MODULES_AND_HOMES {
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}),
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"treasure": encoded},
                "metadata": {"name": "treasure", "namespace": home}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"map": format!("map of {home}")},
                "metadata": {"name": "map", "namespace": home}}),
        ] {
            stage.admin.apply(&object.to_string()).await?;
        }
        // Each asks for all of it, and for what lies with the others.
        let reads: Vec<Value> = MODULES_AND_HOMES
            .iter()
            .flat_map(|(_, home)| {
                [
                    json!({"namespace": home, "name": "map"}),
                    json!({"namespace": home, "name": "treasure", "secret": true}),
                    json!({"namespace": home, "secret": true}),
                ]
            })
            .collect();
        let reader = json!({"apiVersion": READER.api_version, "kind": READER.kind,
            "metadata": {"name": "reader", "namespace": home},
            "spec": {"reads": reads, "writes": "made",
                "looksFor": [backwards(TREASURE), backwards(&encoded), backwards("map of home")]}});
        stage.admin.apply(&reader.to_string()).await?;
        let spec = json!({ "namespaces": [home] });
        stage.module_without_rights(module, "reader", &spec).await?;
    }
    let maps = rule("", "configmaps", &READ);
    let secrets = rule("", "secrets", &READ);
    let write = rule("", "configmaps", &["get", "list", "watch", "create", "patch", "delete"]);
    for (module, rules) in [
        ("maps", with(std::slice::from_ref(&maps))),
        ("secrets", with(&[maps.clone(), secrets])),
        ("writer", with(&[write])),
    ] {
        let (_, home) = MODULES_AND_HOMES.iter().find(|(name, _)| *name == module).unwrap();
        stage.admin.apply(&role(module, Some(home), &rules)).await?;
        let definitions =
            json!([rule("apiextensions.k8s.io", "customresourcedefinitions", &["get"])]);
        stage.admin.apply(&role(module, None, &definitions)).await?;
    }
    let host = stage.host().await?;
    Ok((stage, host))
}

fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// What a reader says that it has seen: for each namespace the map, the Secret, and the list of
/// Secrets.
async fn seen(stage: &Stage, home: &str) -> Result<Vec<String>> {
    let reader = stage.admin.must_get(READER, home, "reader").await?;
    let seen = reader["status"]["seen"].as_array().cloned().unwrap_or_default();
    Ok(seen.iter().filter_map(|one| Some(one.as_str()?.to_owned())).collect())
}

/// In short: whether there was something, or why not.
fn short(seen: &str) -> &'static str {
    let forbidden = seen.contains("may not");
    match () {
        () if forbidden => "forbidden",
        () if seen.contains("map of") => "map",
        () if seen.contains("\"kind\":\"Secret\"") => "digests",
        () if seen.contains("does not declare") => "undeclared",
        () => "nothing",
    }
}

async fn until_seen(stage: &Stage, home: &str, within: Duration, wanted: &[&str]) -> Result<()> {
    eventually(&format!("{home} sees {wanted:?}"), within, async || {
        let seen = seen(stage, home).await?;
        let shown: Vec<_> = seen.iter().map(|one| short(one)).collect();
        Ok(if shown == wanted { Ok(()) } else { Err(format!("{shown:?}: {seen:#?}")) })
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_three_modules_sees_what_its_account_may_and_nothing_else() -> Result<()> {
    let (stage, host) = stage().await?;
    let mark = stage.plane.audit()?.mark()?;
    each_reader_sees_its_row(&stage).await?;
    only_the_writer_may_write(&stage).await?;
    digest_follows_the_value(&stage).await?;
    bytes_are_in_no_guest_without_the_right(&stage).await?;
    bytes_are_in_no_text(&stage, &host).await?;
    accounts_asked_at_home_only(&stage, mark)
}

/// A row of the matrix: what a reader sees at home, and nothing of the others.
async fn each_reader_sees_its_row(stage: &Stage) -> Result<()> {
    let elsewhere = ["undeclared"; 3];
    let at_home = |index: usize, home: [&'static str; 3]| {
        (0..3).flat_map(|one| if one == index { home } else { elsewhere }).collect::<Vec<_>>()
    };
    let rows = [
        ["map", "forbidden", "forbidden"],
        ["map", "digests", "digests"],
        ["map", "forbidden", "forbidden"],
    ];
    for (index, (_, home)) in MODULES_AND_HOMES.iter().enumerate() {
        until_seen(stage, home, SOON, &at_home(index, rows[index])).await?;
    }
    Ok(())
}

async fn only_the_writer_may_write(stage: &Stage) -> Result<()> {
    stage.says((READER, "home-of-maps", "reader"), ("Synced", "False", "Forbidden")).await?;
    stage.says((READER, "home-of-secrets", "reader"), ("Synced", "False", "Forbidden")).await?;
    stage.says((READER, "home-of-writer", "reader"), ("Synced", "True", "Applied")).await?;
    for (_, home) in MODULES_AND_HOMES {
        let made = stage.admin.get(Kind::CONFIG_MAP, home, "made").await?.is_some();
        assert_eq!(made, home == "home-of-writer", "{home}");
    }
    Ok(())
}

/// A guest without the bytes of a Secret still sees that the value changed.
async fn digest_follows_the_value(stage: &Stage) -> Result<()> {
    let before = seen(stage, "home-of-secrets").await?[4].clone();
    let other = json!({"stringData": {"treasure": format!("{TREASURE}-2")}});
    stage.admin.merge(Kind::SECRET, "home-of-secrets", "treasure", "kubectl", &other).await?;
    eventually("the digest is another one", SOON, async || {
        let now = seen(stage, "home-of-secrets").await?[4].clone();
        Ok(if now == before { Err(now) } else { Ok(()) })
    })
    .await
}

/// Each guest looks through its own memory, and finds there only what it may have.
async fn bytes_are_in_no_guest_without_the_right(stage: &Stage) -> Result<()> {
    for (_, home) in MODULES_AND_HOMES {
        let reader = stage.admin.must_get(READER, home, "reader").await?;
        assert_eq!(reader["status"]["held"], json!([false, false, true]), "{home}");
    }
    Ok(())
}

/// The bytes are not in what a guest is given, which its status repeats, nor in what the host
/// logs, counts and writes.
async fn bytes_are_in_no_text(stage: &Stage, host: &Host) -> Result<()> {
    let mut texts = host.log().join("\n");
    texts += &host.http("/metrics").await?.1;
    for (kind, namespace) in [(Kind::MODULE, ""), (Kind::EVENT, "default")] {
        texts += &json!(stage.admin.list(kind, namespace).await?).to_string();
    }
    for (_, home) in MODULES_AND_HOMES {
        for kind in [READER, Kind::EVENT, Kind::CONFIG_MAP] {
            texts += &json!(stage.admin.list(kind, home).await?).to_string();
        }
    }
    for written in [TREASURE.to_owned(), base64::engine::general_purpose::STANDARD.encode(TREASURE)]
    {
        // Base64 of the longer value begins like that of the shorter one, but for its end.
        let head = &written[..written.len() - 4];
        assert!(!texts.contains(head), "the bytes of a Secret were shown: {head}");
    }
    Ok(())
}

/// Of the others' homes no account has asked for anything but what its own reads need.
fn accounts_asked_at_home_only(stage: &Stage, mark: u64) -> Result<()> {
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new())?;
    for (module, home) in MODULES_AND_HOMES {
        let account = format!("system:serviceaccount:{MODULES}:{module}");
        for event in events.iter().filter(|one| one.impersonated.as_ref() == Some(&account)) {
            let own = event.namespace == home || event.namespace.is_empty();
            assert!(own, "{module}: {} {}", event.verb, event.uri);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_ends_the_reads_within_a_minute() -> Result<()> {
    let (stage, _host) = stage().await?;
    let home = "home-of-secrets";
    let elsewhere = ["undeclared"; 3];
    let row = |at_home: [&'static str; 3]| [elsewhere, at_home, elsewhere].concat();
    until_seen(&stage, home, SOON, &row(["map", "digests", "digests"])).await?;
    stage
        .admin
        .apply(&role("secrets", Some(home), &with(&[rule("", "configmaps", &READ)])))
        .await?;
    until_seen(&stage, home, A_MINUTE, &row(["map", "forbidden", "forbidden"])).await?;
    stage.module_says("secrets", "Authorized", "False", "Forbidden").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_a_module_grants_is_read_whole_and_no_other() -> Result<()> {
    let (stage, host) = stage().await?;
    let home = "home-of-secrets";
    let encoded = base64::engine::general_purpose::STANDARD.encode(TREASURE);
    let other = json!({"apiVersion": "v1", "kind": "Secret", "data": {"treasure": encoded},
        "metadata": {"name": "other", "namespace": home}});
    stage.admin.apply(&other.to_string()).await?;
    let spec = json!({"spec": {"reads": [
        {"namespace": home, "name": "treasure", "secret": true},
        {"namespace": home, "name": "other", "secret": true},
        {"namespace": home, "secret": true},
    ], "looksFor": [backwards(&encoded)]}});
    stage.admin.merge(READER, home, "reader", "kubectl-edit", &spec).await?;
    until_seen(&stage, home, SOON, &["digests"; 3]).await?;

    let grant = json!({"spec": {"secretNames": ["treasure"]}});
    stage.admin.merge(Kind::MODULE, "", "secrets", "kubectl-edit", &grant).await?;
    let held = |wanted: bool| move |one: &Value| one["status"]["held"] == json!([wanted]);
    stage.admin.until("it has the bytes", SOON, (READER, home, "reader"), held(true)).await?;
    let seen = seen(&stage, home).await?;
    assert!(seen[0].contains(&encoded), "the one that is granted, by its name");
    assert!(!seen[1].contains(&encoded) && !seen[2].contains(&encoded), "and no other, no list");
    assert!(!host.log().join("\n").contains(&encoded));

    // Another value reaches it like any change; without the grant there are digests again.
    let value = json!({"stringData": {"treasure": "another"}});
    stage.admin.merge(Kind::SECRET, home, "treasure", "kubectl", &value).await?;
    stage.admin.until("it has the new bytes", SOON, (READER, home, "reader"), held(false)).await?;
    let grant = json!({"spec": {"secretNames": null}});
    stage.admin.merge(Kind::MODULE, "", "secrets", "kubectl-edit", &grant).await?;
    let another = base64::engine::general_purpose::STANDARD.encode("another");
    eventually("there are digests again", SOON, async || {
        let seen = self::seen(&stage, home).await?[0].clone();
        Ok(if seen.contains(&another) { Err(seen) } else { Ok(()) })
    })
    .await?;
    Ok(())
}
