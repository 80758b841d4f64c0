//! Guests in Python and in JavaScript on a real API server: pushed in parts, run, corrected,
//! replaced.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use anyhow::Result;
use innkeeper_cluster_tests::stage::{MANY, SOON, component_path, output_with, root, says};
use innkeeper_cluster_tests::{Host, Kind, Stage, condition};
use serde_json::{Value, json};

const BUDGET: Kind = Kind::new("example.innkeeper.dev/v1", "Budget");
const RESOURCE_QUOTA: Kind = Kind::new("v1", "ResourceQuota");
const LIMIT_RANGE: Kind = Kind::new("v1", "LimitRange");

/// Pushes a component as its author does.
async fn push(stage: &Stage, module: &str, component: &str) -> Result<()> {
    let path = component_path(component)?;
    output_with(stage.plane.kubeconfig(), &["push", &path.to_string_lossy(), "--module", module])
        .await?;
    Ok(())
}

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
    tokio::try_join!(push(stage, "quota", "quota-py"), push(stage, "labels-js", "labels-js"))?;
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
    push(stage, "labels-js", "labels").await?;
    let at = (Kind::MODULE, "", "labels-js");
    let serves = |object: &Value| {
        digest(object) != javascript && says(object, "Ready", "True", "RevisionActive")
    };
    // Nobody is asked: it would delete nothing.
    stage.admin.until("the guest in Rust serves", MANY, at, serves).await?;
    let parameters = json!({"spec": {"parameters": {"labels": {"team": "b"}}}});
    stage.admin.merge(Kind::MODULE, "", "labels-js", "kubectl-edit", &parameters).await?;
    until_labelled(stage, team, "b").await?;

    let hits = host.metric("innkeeper_code_cache_total", &["result=\"hit\""]).await?;
    push(stage, "labels-js", "labels-js").await?;
    let serves = |object: &Value| {
        digest(object) == javascript && says(object, "Ready", "True", "RevisionActive")
    };
    stage.admin.until("the guest in JavaScript serves again", MANY, at, serves).await?;
    let parameters = json!({"spec": {"parameters": {"labels": {"team": "c"}}}});
    stage.admin.merge(Kind::MODULE, "", "labels-js", "kubectl-edit", &parameters).await?;
    until_labelled(stage, team, "c").await?;
    let now = host.metric("innkeeper_code_cache_total", &["result=\"hit\""]).await?;
    assert!(now > hits, "it was compiled a second time: {hits:?}, {now:?}");
    Ok(())
}
