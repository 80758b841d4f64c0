//! Two replicas behind a Service, under a steady load: whatever is done to them as users and
//! Kubernetes do it, no request fails.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "the figures of docs/benchmarks-admission.md")]

use std::time::Duration;

use anyhow::{Result, ensure};
use innkeeper_cluster_tests::numbered_policy::{number, object, revision};
use innkeeper_cluster_tests::policy_stage::policy;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Load, PolicyStage, Replica, eventually};
use serde_json::{Value, json};

const MODULE: &str = "numbered";
const SHOP: &str = "shop";

/// How many requests wait for their answers at most.
const CLIENTS: usize = 8;

/// The times for which the leader waits between the steps of a change of the authority are its own:
/// 30 s and 60 s, and it looks every 10 s.
const ROTATED: Duration = Duration::from_mins(5);

/// The policy reviews each request, and each answer is the one of its revision.
async fn load(stage: &PolicyStage, rate: u32) -> Result<Load> {
    stage.reviewed_namespace(SHOP).await?;
    // A busy machine must not be taken for a host that does not answer.
    let spec = json!({"policy": policy(&json!({"failurePolicy": "Fail"})),
        "limits": {"timeout": "10s"}});
    stage.module_of_bytes(MODULE, &revision(1), &spec).await?;
    stage.reviews_with(MODULE, "Fail").await?;
    let requests = stage.requests(SHOP, MODULE).await?;
    eventually("the API server asks the policy", SOON, async || {
        let answer = requests.create(&object(true)).await?;
        Ok(number(&answer, true).map(drop))
    })
    .await?;
    let objects = [object(false), object(true)];
    Ok(Load::start(rate, CLIENTS, move |index| {
        let (requests, objects) = (requests.clone(), objects.clone());
        async move {
            let is_forbidden = index % 2 == 1;
            let answer = requests.create(&objects[usize::from(is_forbidden)]).await;
            let answer = answer.map_err(|error| format!("{error:#}"))?;
            number(&answer, is_forbidden).map(drop)
        }
    }))
}

/// Fails as soon as a request has failed, with what was done to the replicas.
fn check(load: &Load, what: &str) -> Result<()> {
    let (failed, failures) = load.failed();
    ensure!(failed == 0, "{what}: {failed} requests failed: {failures:#?}");
    Ok(())
}

/// The dates of the certificates, as the Secret has them.
async fn state(stage: &PolicyStage) -> Result<Value> {
    Ok(serde_json::from_str(&stage.certificates("state").await?)?)
}

async fn until_phase(stage: &PolicyStage, phase: &str) -> Result<()> {
    eventually(&format!("the certificates are {phase}"), ROTATED, async || {
        let present = state(stage).await?;
        Ok(if present["phase"] == phase { Ok(()) } else { Err(present.to_string()) })
    })
    .await
}

/// Waits until all replicas show one certificate, and not this one; gives it.
async fn until_shown(stage: &PolicyStage, replicas: usize, before: &Value) -> Result<Value> {
    eventually("all replicas show the new certificate", ROTATED, async || {
        let reports = stage.reports().await?;
        let shown: Vec<&Value> = reports.iter().map(|report| &report["certificate"]).collect();
        let is_new = shown.iter().all(|one| one.is_string() && *one != before && *one == shown[0]);
        let is_so = shown.len() == replicas && is_new;
        Ok(if is_so { Ok(shown[0].clone()) } else { Err(format!("{shown:?}, before: {before}")) })
    })
    .await
}

/// Makes the leader change the certificate that replicas show, and then the authority, as if time
/// had passed.
async fn begin_rotation(stage: &PolicyStage) -> Result<()> {
    let mut old = state(stage).await?;
    // The authority of another name signs for the present one, and most of its time is over.
    old["names"] = json!(["innkeeper-before.innkeeper-system.svc"]);
    stage.set_certificate_state(&old).await?;
    eventually("the leader renews the certificate", ROTATED, async || {
        let present = state(stage).await?;
        let is_renewed = present["names"] != old["names"];
        Ok(if is_renewed { Ok(()) } else { Err(present.to_string()) })
    })
    .await?;
    let mut old = state(stage).await?;
    old["authority"]["made"] = json!(0);
    stage.set_certificate_state(&old).await
}

/// Stops a replica, as its Deployment does, and starts another one.
async fn restart(stage: &PolicyStage, replica: Replica, name: &str) -> Result<Replica> {
    replica.stop().await?;
    stage.replica(name).await
}

/// Rotates all certificates, restarts a standby, changes the leader, and replaces all replicas one
/// by one.
async fn disturb(stage: PolicyStage, rate: u32, waits_for_the_end: bool) -> Result<()> {
    let leader = stage.replica("a").await?;
    leader.host.leads(SOON).await?;
    let standby = stage.replica("b").await?;
    let load = load(&stage, rate).await?;
    check(&load, "nothing was done yet")?;

    let reports = stage.reports().await?;
    let before = reports[0]["certificate"].clone();
    begin_rotation(&stage).await?;
    let before = until_shown(&stage, 2, &before).await?;
    check(&load, "the certificate of the replicas was renewed")?;

    // The new authority is announced and waits for the API server meanwhile.
    until_phase(&stage, "Announced").await?;
    let standby = restart(&stage, standby, "b2").await?;
    check(&load, "the standby was restarted")?;

    until_phase(&stage, "Switched").await?;
    until_shown(&stage, 2, &before).await?;
    check(&load, "the authority of the certificates was changed")?;

    // A rolling update: a new replica first, then an old one ends; the leader last.
    let first = stage.replica("c").await?;
    standby.stop().await?;
    check(&load, "the standby was replaced")?;
    let second = stage.replica("d").await?;
    leader.stop().await?;
    eventually("another replica leads", SOON, async || {
        let name = "innkeeper_leader_election_master_status";
        let (first, second) =
            (first.host.metric(name, &[]).await?, second.host.metric(name, &[]).await?);
        let leads = [first, second].contains(&Some(1.0));
        Ok(if leads { Ok(()) } else { Err(format!("{first:?} {second:?}")) })
    })
    .await?;
    check(&load, "the leader was replaced")?;
    if waits_for_the_end {
        until_phase(&stage, "Stable").await?;
        check(&load, "the previous authority was dropped")?;
    }
    let figures = load.end().await;
    println!(
        "{} reviews, {:.0}/s for {:.0} s, {} failed; p50 {:?}, p99 {:?}, longest {:?}",
        figures.requests,
        figures.rate(),
        figures.time.as_secs_f64(),
        figures.failed,
        figures.quantile(0.5),
        figures.quantile(0.99),
        figures.quantile(1.0)
    );
    ensure!(figures.failed == 0, "{:#?}", figures.failures);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn request_never_fails_while_replicas_and_certificates_change() -> Result<()> {
    disturb(PolicyStage::new().await?, 50, false).await
}

/// The whole change of the authority, at 200 reviews a second.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes of a whole machine; docs/benchmarks-admission.md has its figures"]
async fn request_never_fails_at_200_reviews_a_second() -> Result<()> {
    disturb(PolicyStage::new().await?, 200, true).await
}

/// The same without an API server between the load and the replicas.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; docs/benchmarks-admission.md has its figures"]
async fn review_never_fails_at_200_a_second_on_a_simulated_cluster() -> Result<()> {
    disturb(PolicyStage::simulated().await?, 200, true).await
}
