//! Hostile guests on a real API server: what the host answers to each, and that a good module
//! keeps working at the same time.
//!
//! Each misbehaviour is a module of its own, with an account, a namespace and a primary of its
//! own; all of them go on misbehaving until the end. What a guest may do within a call is shown in
//! host/sandbox/tests, case by case.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "what the host answered, shown when a test fails")]

mod answers;
mod case;
mod cases;
mod components;
mod guests;
mod neighbour;
mod objects;
mod resources;
mod statuses;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::stage::{MODULES, SOON, message, says};
use innkeeper_cluster_tests::{AuditFilter, Host, Kind, Stage, eventually, manifests};
use serde_json::{Value, json};

use case::{Answer, Case};
use neighbour::{Reactions, kib, memory_returns};

const HOSTILE: Kind = Kind::new("hostile.example.dev/v1", "Hostile");
const ROLE: Kind = Kind::new("rbac.authorization.k8s.io/v1", "Role");
const ROLE_BINDING: Kind = Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding");
/// Where the good module's primaries are.
const GOOD: &str = "good";
/// The most memory that the host may ever have had, in KiB: a fraction of what the guests ask for.
const HOST_KIB_MAX: u64 = 512 << 10;
/// How often the good module's change is timed before the first hostile module is there.
const ALONE: usize = 9;
/// What one run may log, by default.
const LOG_BYTES: usize = 16 << 10;

/// The kind of all hostile guests' primaries; its status takes anything.
fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let conditions = json!({"type": "array", "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type"], "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"type": {"type": "string"}}}});
    let mut status = any.clone();
    status["properties"] = json!({ "conditions": conditions });
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "hostiles.hostile.example.dev"},
        "spec": {"group": "hostile.example.dev", "scope": "Namespaced",
            "names": {"kind": "Hostile", "plural": "hostiles"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": status}}}}]}})
}

/// All accounts of modules may see which definitions there are; none may write one.
fn sees_definitions() -> [Value; 2] {
    let rbac = "rbac.authorization.k8s.io";
    [
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "sees-definitions"},
            "rules": [{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "sees-definitions"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "sees-definitions"},
            "subjects": [{"kind": "Group", "name": format!("system:serviceaccounts:{MODULES}")}]}),
    ]
}

fn settings(name: &str, text: &str) -> String {
    manifests::settings(GOOD, name, &["x"], text)
}

/// Brings a hostile module to life, with everything that belongs to it.
async fn begin(stage: &Stage, case: &Case) -> Result<()> {
    for object in case.objects() {
        stage.admin.apply(&object.to_string()).await?;
    }
    stage.module_of_bytes(case.name, &case.component, &case.module_spec()).await
}

/// Waits for the host's answer.
async fn answered(stage: &Stage, case: &Case) -> Result<()> {
    let home = case.home();
    let (at, type_, (status, reason, part)) = match case.answer {
        Answer::Module(expected) => ((Kind::MODULE, "", case.name), "Loaded", expected),
        Answer::Spec(expected) => ((Kind::MODULE, "", case.name), "Ready", expected),
        Answer::Primary(expected) => ((HOSTILE, home.as_str(), case.name), "Synced", expected),
    };
    let what = format!("{}: {} says {type_}={status} {reason}", case.name, at.0);
    let object =
        stage.admin.until(&what, SOON, at, |object| says(object, type_, status, reason)).await?;
    let text = message(&object, type_);
    let shown = &text[..text.floor_char_boundary(200)];
    println!("{}: {} {type_}={status} {reason}: {shown}", case.name, at.0.kind);
    ensure!(text.contains(part), "{}: {part:?} is not in {shown:?}", case.name);
    ensure!(text.len() <= 8 << 10, "{}: the message has {} bytes", case.name, text.len());
    if let (Answer::Primary(("False", reason, _)), false) = (case.answer, is_of_objects(case)) {
        // The module reports a failure of the whole answer too.
        stage.module_says(case.name, "Healthy", "False", reason).await?;
    }
    Ok(())
}

/// Whether the guest's answer is taken, and single objects of it cannot be had.
fn is_of_objects(case: &Case) -> bool {
    let Answer::Primary((_, reason, _)) = case.answer else { return false };
    [
        "Invalid",
        "Malformed",
        "RequestEntityTooLarge",
        "Unreadable",
        "Forbidden",
        "Conflict",
        "NotConverging",
    ]
    .contains(&reason)
}

/// The good module takes up a change and a new primary. Gives how long the change took.
async fn good_goes_on(stage: &Stage, host: &Host, step: usize, during: &str) -> Result<Duration> {
    let began = Instant::now();
    stage.admin.apply(&settings("first", during)).await?;
    let mut took = Duration::ZERO;
    let new = format!("new-{step:03}");
    for name in ["first", new.as_str()] {
        let child = format!("{name}-x");
        let what = format!("the good module goes on during {during}");
        stage
            .admin
            .until(&what, SOON, (Kind::CONFIG_MAP, GOOD, &child), |one| {
                one["data"]["text"] == during
            })
            .await?;
        if took.is_zero() {
            took = began.elapsed();
            stage.admin.apply(&settings(&new, during)).await?;
        }
    }
    let (code, body) = host.http("/readyz").await?;
    ensure!(code == 200, "during {during} the host is not ready: {body}");
    Ok(took)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_misbehaviour_is_answered_and_a_good_module_goes_on() -> Result<()> {
    let mut cases = cases::all();
    let stage = Stage::new().await?;
    for object in [definition()].iter().chain(&sees_definitions()) {
        stage.admin.apply(&object.to_string()).await?;
    }
    stage.admin.until_established(&definition()).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GOOD}});
    stage.admin.apply(&namespace.to_string()).await?;
    stage
        .module("settings", "settings", &json!({"allowedCRDGroups": ["example.innkeeper.dev"]}))
        .await?;
    let host = stage.host().await?;
    stage.ready("settings").await?;
    let mut reactions = Reactions::default();
    for step in 0..ALONE {
        reactions.alone(good_goes_on(&stage, &host, 0, &format!("peace {step}")).await?);
    }
    let before_kib = kib(&host, "RssAnon")?;
    let mark = stage.plane.audit()?.mark()?;

    // It is being compiled all the while.
    let bomb = cases::bomb();
    let mut began = BTreeMap::from([(bomb.name, Instant::now())]);
    begin(&stage, &bomb).await?;
    for (index, case) in cases.iter().enumerate() {
        began.insert(case.name, Instant::now());
        begin(&stage, case).await?;
        answered(&stage, case).await?;
        let took = good_goes_on(&stage, &host, index + 1, case.name).await?;
        reactions.during(case.name, took);
    }
    answered(&stage, &bomb).await?;
    let took = good_goes_on(&stage, &host, cases.len() + 1, bomb.name).await?;
    reactions.during(bomb.name, took);
    cases.push(bomb);

    only_what_is_theirs_was_written(&stage, &cases, mark).await?;
    nothing_else_is_there(&stage, &cases).await?;
    nobody_writes_without_end(&stage, mark, &began)?;
    logs_are_bounded_and_the_hosts_own(&host).await?;
    events_are_bounded(&stage, &host).await?;
    figures_are_the_hosts_words(&host).await?;
    let peak_kib = kib(&host, "VmHWM")?;
    println!("{} cases; the host had at most {} MiB", cases.len(), peak_kib >> 10);
    println!("{}", reactions.summary());
    assert!(peak_kib < HOST_KIB_MAX, "the host had {peak_kib} KiB");
    memory_returns(&stage, &host, &cases, before_kib).await
}

/// The API server saw no successful write of a hostile account but those of its case. It logs a
/// write after it has shown it to watches, so the last ones may be missing at first.
async fn only_what_is_theirs_was_written(stage: &Stage, cases: &[Case], mark: u64) -> Result<()> {
    eventually("the audit log has all writes", SOON, async || {
        let wrote = what_they_wrote(stage, cases, mark)?;
        Ok(missing(cases, &wrote).map_or(Ok(()), Err))
    })
    .await
}

/// The resources that each hostile account wrote, by its case.
///
/// # Errors
/// If one of them is not its case's.
fn what_they_wrote<'c>(
    stage: &Stage,
    cases: &'c [Case],
    mark: u64,
) -> Result<BTreeSet<(&'c str, String)>> {
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().writes())?;
    let mut wrote = BTreeSet::new();
    for case in cases {
        let user = format!("system:serviceaccount:{MODULES}:{}", case.name);
        let home = case.home();
        for event in &events {
            if event.impersonated.as_ref() != Some(&user) || !event.succeeded() {
                continue;
            }
            let resource = match event.subresource.as_str() {
                "" => event.resource.clone(),
                subresource => format!("{}/{subresource}", event.resource),
            };
            if ["selfsubjectaccessreviews", "selfsubjectreviews"].contains(&resource.as_str()) {
                continue;
            }
            let may = match resource.as_str() {
                "events" => true,
                "hostiles/status" => has_primary(case) && event.name == case.name,
                other => case.writes.contains(&(other, event.name.as_str())),
            };
            ensure!(
                may && event.namespace == home,
                "{} wrote: {} {}",
                case.name,
                event.verb,
                event.uri
            );
            wrote.insert((case.name, resource));
        }
    }
    Ok(wrote)
}

/// Whether the answer is in the status of a primary.
fn has_primary(case: &Case) -> bool {
    matches!(case.answer, Answer::Primary(_))
}

/// A write of a case that the log does not show.
fn missing(cases: &[Case], wrote: &BTreeSet<(&str, String)>) -> Option<String> {
    for case in cases {
        let status = has_primary(case).then_some("hostiles/status");
        let mut all = case.writes.iter().map(|(resource, _)| *resource).chain(status);
        if let Some(resource) = all.find(|one| !wrote.contains(&(case.name, (*one).to_owned()))) {
            return Some(format!("{} wrote no {resource}", case.name));
        }
    }
    None
}

/// Of each kind that a hostile guest wanted, there is what was there before and no more.
async fn nothing_else_is_there(stage: &Stage, cases: &[Case]) -> Result<()> {
    for case in cases.iter().filter(|case| case.namespace.is_none()) {
        home_holds_what_the_case_may_have(stage, case).await?;
    }
    objects_of_others_are_as_they_were(stage).await?;
    nothing_is_outside_of_the_homes(stage).await?;
    modules_and_their_sources_are_untouched(stage, cases).await
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    let name = |one: &Value| one["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    objects.iter().map(name).collect()
}

async fn home_holds_what_the_case_may_have(stage: &Stage, case: &Case) -> Result<()> {
    let home = case.home();
    let mut expected: BTreeSet<String> = ["kube-root-ca.crt".to_owned()].into();
    expected.extend(case.writes.iter().map(|(_, name)| (*name).to_owned()));
    for object in &case.before {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        // A Settings has its child.
        let is_settings = object["kind"] == Kind::SETTINGS.kind;
        expected.insert(if is_settings { format!("{name}-x") } else { name.to_owned() });
    }
    ensure!(
        names(&stage.admin.list(Kind::CONFIG_MAP, &home).await?).is_subset(&expected),
        "{}: ConfigMaps beyond {expected:?}",
        case.name
    );
    let role: BTreeSet<String> = [format!("guest-{}", case.name)].into();
    for kind in [ROLE, ROLE_BINDING] {
        let found = names(&stage.admin.list(kind, &home).await?);
        ensure!(found == role, "{}: a {kind}", case.name);
    }
    ensure!(stage.admin.list(Kind::SECRET, &home).await?.is_empty(), "{}: a Secret", case.name);
    Ok(())
}

async fn objects_of_others_are_as_they_were(stage: &Stage) -> Result<()> {
    for (namespace, name, data) in [
        ("hostile-child-of-another", "others-x", json!({"text": "theirs"})),
        ("hostile-object-of-nobody", "found", json!({"a": "theirs"})),
        ("hostile-key-twice", "odd", json!({"a": "last"})),
    ] {
        let found = stage.admin.must_get(Kind::CONFIG_MAP, namespace, name).await?;
        assert_eq!(found["data"], data, "{namespace}/{name}");
    }
    Ok(())
}

async fn nothing_is_outside_of_the_homes(stage: &Stage) -> Result<()> {
    for (kind, namespace, name) in [
        (Kind::NAMESPACE, "", "evil"),
        (Kind::CRD, "", "evils.evil.example.dev"),
        (Kind::CONFIG_MAP, "default", "evil"),
    ] {
        let found = stage.admin.get(kind, namespace, name).await?;
        ensure!(found.is_none(), "{kind} {namespace}/{name} is there");
    }
    Ok(())
}

/// Nobody but this test, and the host with its snapshots, has written Modules and sources.
async fn modules_and_their_sources_are_untouched(stage: &Stage, cases: &[Case]) -> Result<()> {
    let modules = stage.admin.list(Kind::MODULE, "").await?;
    ensure!(modules.len() == cases.len() + 1, "{} modules", modules.len());
    for object in modules.iter().chain(&stage.admin.list(Kind::CONFIG_MAP, MODULES).await?) {
        let entries = object["metadata"]["managedFields"].as_array().context("managedFields")?;
        for entry in entries.iter().filter(|entry| entry["subresource"] != "status") {
            let manager = entry["manager"].as_str().unwrap_or_default();
            let is_snapshot = object["metadata"]["labels"]["innkeeper.dev/copy-of"].is_string();
            ensure!(
                ["test", "kube-controller-manager"].contains(&manager)
                    || is_snapshot && manager == "innkeeper",
                "{manager} wrote {}",
                object["metadata"]["name"]
            );
        }
    }
    Ok(())
}

/// A guest whose answer is never the same is written ten times in a row, and then waits longer each
/// time; all others are written a few times.
fn nobody_writes_without_end(
    stage: &Stage,
    mark: u64,
    began: &BTreeMap<&str, Instant>,
) -> Result<()> {
    let events = stage.plane.audit()?.since(mark, &AuditFilter::new().writes())?;
    for (name, began) in began {
        let user = format!("system:serviceaccount:{MODULES}:{name}");
        let writes = events
            .iter()
            .filter(|event| event.impersonated.as_ref() == Some(&user))
            .filter(|event| !event.resource.starts_with("selfsubject"))
            .count();
        // After 1, 2, 4, ... seconds it is tried again: after 1 s twice, after 3 s three times.
        let bursts = usize::try_from((began.elapsed().as_secs() + 2).ilog2())? + 2;
        // Ten writes, a status and an Event for each.
        ensure!(writes <= 12 * bursts, "{name}: {writes} writes in {bursts} bursts");
        if *name == "object-by-the-clock" {
            ensure!(writes >= 10, "{name}: {writes} writes");
            println!("{name}: {writes} writes in {:.0} s", began.elapsed().as_secs_f32());
        }
    }
    Ok(())
}

/// A guest that has something new to tell at each run, once a second, is heard for a while.
async fn events_are_bounded(stage: &Stage, host: &Host) -> Result<()> {
    let runs = || async {
        let runs = host
            .metric("innkeeper_guest_call_duration_seconds_count", &["events-by-the-clock"])
            .await?;
        anyhow::Ok(runs.unwrap_or_default())
    };
    eventually("it ran 40 times", SOON, async || {
        let runs = runs().await?;
        Ok(if runs >= 40.0 { Ok(()) } else { Err(format!("{runs} runs")) })
    })
    .await?;
    let user = format!("system:serviceaccount:{MODULES}:events-by-the-clock");
    let filter = AuditFilter::new().writes().impersonated(&user).resource("events");
    let events = stage.plane.audit()?.events(&filter)?.len();
    println!("events-by-the-clock: {events} Events in {} runs", runs().await?);
    // The first 25, and perhaps one for five minutes that have passed.
    ensure!((25..=26).contains(&events), "{events} Events");
    Ok(())
}

/// A guest makes no figures of its own.
async fn figures_are_the_hosts_words(host: &Host) -> Result<()> {
    let (_, figures) = host.http("/metrics").await?;
    ensure!(figures.contains("GuestFailed"), "a failure is counted");
    ensure!(!figures.contains("WordOfAGuest"), "as the guest's word");
    Ok(())
}

/// Each line of the host's log is a line of the host's; what a guest says is marked as such and
/// cut.
async fn logs_are_bounded_and_the_hosts_own(host: &Host) -> Result<()> {
    host.logged("the log of this call is cut at 16384 bytes", SOON).await?;
    host.logged("forged", SOON).await?;
    let mut flood = 0;
    for line in host.log() {
        ensure!(!line.contains("panicked"), "{line}");
        let entry: Value =
            serde_json::from_str(&line).with_context(|| format!("no line of the host: {line}"))?;
        ensure!(entry["module"] != "forged", "a guest forged {line}");
        if entry["guest"] == true && entry["module"] == "log-flood" {
            flood += entry["message"].as_str().unwrap_or_default().len() + 1;
        }
    }
    // Each run may write so much, and that the rest is cut.
    let runs = host.metric("innkeeper_guest_call_duration_seconds_count", &["log-flood"]).await?;
    let runs = runs.context("log-flood ran")?;
    println!("log-flood: {flood} bytes in {runs} runs");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let most = runs * (LOG_BYTES + 100) as f64 >= flood as f64;
    ensure!(most, "log-flood: {flood} bytes in {runs} runs");
    Ok(())
}

/// What it takes to be refused without the API server's help.
const BY_THE_HOST: [&str; 7] = [
    "another-namespace",
    "sources-of-modules",
    "key-of-the-host",
    "kind-not-declared",
    "module-not-declared",
    "cluster-scoped",
    "object-of-nobody",
];

#[tokio::test(flavor = "multi_thread")]
async fn an_account_with_all_rights_does_not_let_a_guest_out_of_its_namespace() -> Result<()> {
    let mut cases = cases::all();
    cases.retain(|case| BY_THE_HOST.contains(&case.name));
    assert_eq!(cases.len(), BY_THE_HOST.len());
    let stage = Stage::new().await?;
    stage.admin.apply(&definition().to_string()).await?;
    stage.admin.until_established(&definition()).await?;
    let rbac = "rbac.authorization.k8s.io";
    let all = json!({"apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": "everything"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "name": format!("system:serviceaccounts:{MODULES}")}]});
    stage.admin.apply(&all.to_string()).await?;
    let _host = stage.host().await?;
    let mark = stage.plane.audit()?.mark()?;
    for case in &cases {
        begin(&stage, case).await?;
        answered(&stage, case).await?;
    }
    only_what_is_theirs_was_written(&stage, &cases, mark).await
}
