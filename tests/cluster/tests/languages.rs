//! Guests in Python, JavaScript and TypeScript on a real API server: pushed in parts, run,
//! corrected, replaced.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{MANY, SOON, root, says};
use innkeeper_cluster_tests::{Host, Kind, Stage, condition};
use serde_json::{Value, json};

const PAGE: Kind = Kind::new("example.innkeeper.dev/v1", "Page");
const BUDGET: Kind = Kind::new("example.innkeeper.dev/v1", "Budget");
const RESOURCE_QUOTA: Kind = Kind::new("v1", "ResourceQuota");
const LIMIT_RANGE: Kind = Kind::new("v1", "LimitRange");

/// Waits until what was pushed last serves. Longer than for others: it is compiled first.
async fn until_serving(stage: &Stage, module: &str) -> Result<Value> {
    let at = (Kind::MODULE, "", module);
    let serves = |object: &Value| {
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && condition(object, "Ready") == Some("True")
    };
    stage.admin.until(&format!("module {module} serves"), MANY, at, serves).await
}

async fn until_labelled(stage: &Stage, namespace: &str, team: &str) -> Result<()> {
    let at = (Kind::NAMESPACE, "", namespace);
    let is_labelled = |one: &Value| one["metadata"]["labels"]["team"] == team;
    stage.admin.until(&format!("{namespace} is of team {team}"), SOON, at, is_labelled).await?;
    Ok(())
}

async fn until_pods(stage: &Stage, namespace: &str, pods: &str) -> Result<Value> {
    let at = (RESOURCE_QUOTA, namespace, "team");
    let has = |one: &Value| one["spec"]["hard"]["pods"] == pods;
    stage.admin.until(&format!("there is a quota of {pods} pods"), SOON, at, has).await
}

fn budget(namespace: &str, spec: &Value) -> String {
    json!({"apiVersion": BUDGET.api_version, "kind": BUDGET.kind,
        "metadata": {"name": "team", "namespace": namespace}, "spec": spec})
    .to_string()
}

/// Both modules, as their folders have them, pushed and serving. The host shares compiled code with
/// the hosts of other tests: compiling these two takes minutes.
async fn both(stage: &Stage) -> Result<Host> {
    for name in ["quota-py", "labels-js"] {
        let file = format!("guests/examples/{name}/module.yaml");
        stage.admin.apply(&std::fs::read_to_string(root().join(file))?).await?;
    }
    tokio::try_join!(
        stage.push_as_author("quota", "quota-py"),
        stage.push_as_author("labels-js", "labels-js")
    )?;
    let host = stage.host().await?;
    tokio::try_join!(until_serving(stage, "quota"), until_serving(stage, "labels-js"))?;
    Ok(host)
}

#[tokio::test(flavor = "multi_thread")]
async fn guests_in_python_and_javascript_work_together_and_are_replaced_by_one_in_rust()
-> Result<()> {
    let stage = Stage::new().await?;
    let host = both(&stage).await?;
    let team = stage.admin.namespace("team").await?;
    let at = (BUDGET, &*team, "team");

    // JavaScript labels the namespace, Python gives it a quota and defaults.
    until_labelled(&stage, &team, "a").await?;
    stage.admin.apply(&budget(&team, &json!({"size": "small"}))).await?;
    let quota = until_pods(&stage, &team, "10").await?;
    assert_eq!(quota["metadata"]["ownerReferences"][0]["kind"], "Budget");
    let range = (LIMIT_RANGE, &*team, "team");
    let range = stage.admin.until("there are defaults", SOON, range, |_| true).await?;
    assert_eq!(range["spec"]["limits"][0]["defaultRequest"]["cpu"], "100m");
    stage.says(at, ("Synced", "True", "Applied")).await?;
    stage.says(at, ("Exhausted", "False", "Enough")).await?;
    let seen = stage.admin.must_get(BUDGET, &team, "team").await?;
    assert_eq!(seen["status"]["used"]["pods"], "0", "as the cluster counts: {}", seen["status"]);

    // What somebody changes is corrected.
    let drift = json!({"spec": {"hard": {"pods": "1000"}}});
    stage.admin.merge(RESOURCE_QUOTA, &team, "team", "kubectl-edit", &drift).await?;
    until_pods(&stage, &team, "10").await?;
    let drift = json!({"metadata": {"labels": {"team": null}}});
    stage.admin.merge(Kind::NAMESPACE, "", &team, "kubectl-edit", &drift).await?;
    until_labelled(&stage, &team, "a").await?;

    // A size without defaults of containers has no LimitRange any more.
    stage.admin.apply(&budget(&team, &json!({"size": "large"}))).await?;
    until_pods(&stage, &team, "100").await?;
    stage.admin.until_gone(SOON, (LIMIT_RANGE, &team, "team")).await?;

    bad_input(&stage, &team).await?;
    swapped(&stage, &team, &host).await?;

    // The modules go, what they made stays.
    stage.admin.delete(Kind::MODULE, "", "quota").await?;
    stage.admin.until_gone(SOON, (Kind::MODULE, "", "quota")).await?;
    until_pods(&stage, &team, "100").await?;
    Ok(())
}

/// Bad input is a condition that says what would be right, and nothing is half made.
async fn bad_input(stage: &Stage, team: &str) -> Result<()> {
    let at = (BUDGET, team, "team");
    stage.admin.apply(&budget(team, &json!({"size": "huge"}))).await?;
    let message = stage.says(at, ("Synced", "False", "UnknownSize")).await?;
    assert!(message.contains("there is no size 'huge'; there are: large, small"), "{message}");
    let overrides = json!({"size": "large", "overrides": {"pods": "lots"}});
    stage.admin.apply(&budget(team, &overrides)).await?;
    let message = stage.says(at, ("Synced", "False", "BadQuantity")).await?;
    assert!(message.contains("spec.overrides: pods: 'lots' is not a quantity"), "{message}");
    until_pods(stage, team, "100").await?;
    // What the schema can refuse never reaches the guest.
    let refused = stage.admin.apply(&budget(team, &json!({"size": 3}))).await.unwrap_err();
    assert!(format!("{refused:#}").contains("spec.size"), "{refused:#}");

    stage.admin.apply(&budget(team, &json!({"size": "large"}))).await?;
    stage.says(at, ("Synced", "True", "Applied")).await?;
    Ok(())
}

/// A guest is replaced by one in another language, and serves again; compiled once.
async fn swapped(stage: &Stage, team: &str, host: &Host) -> Result<()> {
    let digest = |module: &Value| module["status"]["digest"].as_str().unwrap_or("").to_owned();
    let javascript = digest(&until_serving(stage, "labels-js").await?);
    stage.push_as_author("labels-js", "labels").await?;
    let at = (Kind::MODULE, "", "labels-js");
    let serves = |object: &Value| {
        digest(object) != javascript && says(object, "Ready", "True", "RevisionActive")
    };
    // Nobody is asked: it would delete nothing.
    stage.admin.until("the guest in Rust serves", MANY, at, serves).await?;
    let parameters = json!({"spec": {"parameters": {"labels": {"team": "b"}}}});
    stage.admin.merge(Kind::MODULE, "", "labels-js", "kubectl-edit", &parameters).await?;
    until_labelled(stage, team, "b").await?;

    let compiled = host.metric("innkeeper_code_cache_total", &["result=\"miss\""]).await?;
    stage.push_as_author("labels-js", "labels-js").await?;
    let serves = |object: &Value| {
        digest(object) == javascript && says(object, "Ready", "True", "RevisionActive")
    };
    stage.admin.until("the guest in JavaScript serves again", MANY, at, serves).await?;
    let parameters = json!({"spec": {"parameters": {"labels": {"team": "c"}}}});
    stage.admin.merge(Kind::MODULE, "", "labels-js", "kubectl-edit", &parameters).await?;
    until_labelled(stage, team, "c").await?;
    // The host has the guest in memory still, or takes its code from the cache.
    let now = host.metric("innkeeper_code_cache_total", &["result=\"miss\""]).await?;
    assert!(compiled.is_some() && now == compiled, "compiled again: {compiled:?}, {now:?}");
    Ok(())
}

fn page(namespace: &str, spec: &Value) -> String {
    json!({"apiVersion": PAGE.api_version, "kind": PAGE.kind,
        "metadata": {"name": "hello", "namespace": namespace}, "spec": spec})
    .to_string()
}

/// Waits until a ConfigMap has this text.
async fn until_page(stage: &Stage, namespace: &str, name: &str, text: &str) -> Result<Value> {
    let at = (Kind::CONFIG_MAP, namespace, name);
    let has = |one: &Value| one["data"]["page.md"] == text;
    stage.admin.until(&format!("{name} has the text {text:?}"), SOON, at, has).await
}

#[tokio::test(flavor = "multi_thread")]
async fn guest_in_typescript_follows_its_primary_and_the_parameters_of_its_module() -> Result<()> {
    let stage = Stage::new().await?;
    let module = std::fs::read_to_string(root().join("guests/examples/pages-ts/module.yaml"))?;
    stage.admin.apply(&module).await?;
    stage.push_as_author("pages", "pages-ts").await?;
    let _host = stage.host().await?;
    until_serving(&stage, "pages").await?;
    let web = stage.admin.namespace("web").await?;
    let at = (PAGE, &*web, "hello");

    let spec = json!({"title": "Hello", "body": "Good day", "copies": ["mirror"]});
    stage.admin.apply(&page(&web, &spec)).await?;
    let text = "# Hello\n\nGood day\n\nWritten by Innkeeper\n";
    let made = until_page(&stage, &web, "hello", text).await?;
    assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "Page");
    until_page(&stage, &web, "hello-mirror", text).await?;
    stage.says(at, ("Published", "True", "AllWritten")).await?;
    let status = stage.admin.must_get(PAGE, &web, "hello").await?["status"].clone();
    assert_eq!((&status["written"], &status["bytes"]), (&json!(2), &json!(text.len())));

    // What somebody changes is corrected.
    let drift = json!({"data": {"page.md": "mine"}});
    stage.admin.merge(Kind::CONFIG_MAP, &web, "hello", "kubectl-edit", &drift).await?;
    until_page(&stage, &web, "hello", text).await?;

    // A title that the guest refuses changes nothing, not even the copies.
    let spec = json!({"title": "Hello\nthere", "body": "Good day", "copies": []});
    stage.admin.apply(&page(&web, &spec)).await?;
    let message = stage.says(at, ("Synced", "False", "BadTitle")).await?;
    assert!(message.contains("a title has one line"), "{message}");
    until_page(&stage, &web, "hello-mirror", text).await?;

    // Fewer copies, and another footer.
    let spec = json!({"title": "Hello", "body": "Good day", "copies": []});
    stage.admin.apply(&page(&web, &spec)).await?;
    stage.admin.until_gone(SOON, (Kind::CONFIG_MAP, &web, "hello-mirror")).await?;
    let footer = json!({"spec": {"parameters": {"footer": "The end"}}});
    stage.admin.merge(Kind::MODULE, "", "pages", "kubectl-edit", &footer).await?;
    until_page(&stage, &web, "hello", "# Hello\n\nGood day\n\nThe end\n").await?;

    stage.admin.delete(PAGE, &web, "hello").await?;
    stage.admin.until_gone(SOON, (Kind::CONFIG_MAP, &web, "hello")).await?;
    Ok(())
}
