//! Policies with accounts of their own on a real API server with RBAC: what each of them may read.
//!
//! The names of the tests are those of published vulnerabilities of other admission controllers, in
//! which a policy read with rights that its author did not have.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

use std::time::Duration;

use anyhow::Result;
use innkeeper_cluster_tests::policy_stage::policy;
use innkeeper_cluster_tests::stage::{HOST, MODULES, SOON};
use innkeeper_cluster_tests::{AuditFilter, AuditLog, Kind, PolicyStage, Replica, eventually};
use innkeeper_tiny_guests::{ALLOWED, READ_RESULT, READS, SCRATCH, Tiny, get, list};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The namespace of what the policies read: `v1` ConfigMap `ns/cm`.
const READ: &str = "ns";

/// What the ConfigMap has.
const MARK: &str = "mark-of-the-owner";

/// The namespace whose requests the policies review.
const SHOP: &str = "shop";

/// What a policy says about its read.
const SAW: &str = "the read found the object";
const FORBIDDEN: &str = "the read is forbidden";
const OTHER: &str = "the read found nothing";

/// Within this time a right that is taken away has ended the reads, and one that is given is used.
const RIGHTS: Duration = Duration::from_mins(2);

/// A policy that reads, and warns about what it has read: the same bytes for each Module.
fn reading(read: &str) -> Vec<u8> {
    let manifest = json!({"name": "reading", "policy": {"kind": "Validate", "rules": [
            {"groups": [""], "resources": ["configmaps"], "operations": ["CREATE"]}]},
        "reads": [{"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}]});
    let warned = |text: &str| json!({"allowed": true, "warnings": [text]}).to_string();
    let (saw, forbidden) = (warned(SAW), warned(FORBIDDEN));
    // Behind the texts of the read: two results of a review, and their texts.
    let (saw_at, forbidden_at, texts_at) = (SCRATCH + 100, SCRATCH + 112, SCRATCH + 124);
    let second_at = texts_at + saw.len();
    let mark_at = second_at + forbidden.len();
    let result = |at: usize, text: &str| {
        format!(
            "(i32.store offset=4 (i32.const {}) (i32.const {at}))
             (i32.store offset=8 (i32.const {}) (i32.const {}))",
            if at == texts_at { saw_at } else { forbidden_at },
            if at == texts_at { saw_at } else { forbidden_at },
            text.len()
        )
    };
    // A read gives: whether it failed, then an address and a length, or the error.
    let code = format!(
        "{read} {first} {second}
         (if (i32.load8_u (i32.const {READ_RESULT}))
             (then (if (i32.eq (i32.load8_u offset=4 (i32.const {READ_RESULT})) (i32.const 2))
                 (then (return (i32.const {forbidden_at})))))
             (else (if (call $find
                     (i32.load offset=4 (i32.const {READ_RESULT}))
                     (i32.load offset=8 (i32.const {READ_RESULT}))
                     (i32.const {mark_at}) (i32.const {}))
                 (then (return (i32.const {saw_at}))))))",
        MARK.len(),
        first = result(texts_at, &saw),
        second = result(second_at, &forbidden),
    );
    Tiny::policy(&json!({"allowed": true, "warnings": [OTHER]}).to_string())
        .manifest(&manifest.to_string())
        .importing(READS)
        .data(SCRATCH, "v1ConfigMapnscm")
        .data(texts_at, &saw)
        .data(second_at, &forbidden)
        .data(mark_at, MARK)
        // No request has this text: the case brings the function that finds texts.
        .verdict_for(&["\u{1}"], ALLOWED)
        .review_wat(&code)
        .component()
}

/// Lets the account of a module read ConfigMaps in a namespace.
async fn allow(stage: &PolicyStage, module: &str, namespace: &str) -> Result<()> {
    let metadata = json!({"name": module, "namespace": namespace});
    let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
        "metadata": metadata, "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": module},
        "subjects": [{"kind": "ServiceAccount", "name": module, "namespace": MODULES}]});
    stage.admin.apply(&role.to_string()).await?;
    stage.admin.apply(&binding.to_string()).await.map(drop)
}

/// Makes the object to read, and starts a host.
async fn begin(stage: &PolicyStage) -> Result<Replica> {
    stage.reviewed_namespace(SHOP).await?;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": READ}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": MARK},
            "metadata": {"name": "cm", "namespace": READ, "labels": {"cm": "yes"}}}),
    ] {
        stage.admin.apply(&object.to_string()).await?;
    }
    stage.replica("a").await
}

async fn module(stage: &PolicyStage, name: &str, component: &[u8]) -> Result<()> {
    let spec = json!({"policy": policy(&json!({})), "namespaces": [READ, SHOP]});
    stage.module_of_bytes(name, component, &spec).await?;
    stage.reviews_with(name, "Fail").await
}

/// Waits until each of these policies says this.
async fn until_warned(
    stage: &PolicyStage,
    bound: Duration,
    expected: &[(&str, &str)],
) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any"}});
    let mut texts: Vec<_> = expected.iter().map(|(_, text)| (*text).to_owned()).collect();
    texts.sort();
    if stage.has_api_server() {
        // It gives its client equal warnings once.
        texts.dedup();
    }
    let mut asked = Vec::new();
    for (module, _) in expected {
        asked.push(stage.requests(SHOP, module).await?);
        // The API server asks all policies.
        if stage.has_api_server() {
            break;
        }
    }
    eventually(&format!("the policies warn {expected:?}"), bound, async || {
        let mut warnings = Vec::new();
        for requests in &asked {
            let answer = requests.create(&object).await?;
            if answer.code != 201 {
                return Ok(Err(format!("{answer:?}")));
            }
            warnings.extend(answer.warnings);
        }
        // Each policy on its own, where it is asked on its own.
        let is_each = asked.len() == 1
            || warnings.iter().zip(expected).all(|(warning, (_, text))| warning == text);
        warnings.sort();
        Ok(if is_each && warnings == texts { Ok(()) } else { Err(format!("{warnings:?}")) })
    })
    .await
}

/// A policy reads as its own account, and never as the host or another policy, whose rights would
/// suffice.
async fn reads_as_its_own_account(stage: &PolicyStage) -> Result<()> {
    let _replica = begin(stage).await?;
    let component = reading(&get());
    allow(stage, "owner", READ).await?;
    module(stage, "owner", &component).await?;
    until_warned(stage, SOON, &[("owner", SAW)]).await?;

    // The host may read more than any policy, and the other policy has the same component.
    let audit = stage.has_api_server().then(|| stage.plane.audit()).transpose()?;
    let mark = audit.as_ref().map(AuditLog::mark).transpose()?;
    module(stage, "guest", &component).await?;
    until_warned(stage, SOON, &[("owner", SAW), ("guest", FORBIDDEN)]).await?;

    // A right in another namespace is none for this one.
    allow(stage, "guest", SHOP).await?;
    module(stage, "third", &component).await?;
    let expected = [("owner", SAW), ("guest", FORBIDDEN), ("third", FORBIDDEN)];
    until_warned(stage, SOON, &expected).await?;

    // The API server has never let one of them read there, nor was it asked as the host.
    let (Some(audit), Some(mark)) = (audit, mark) else { return Ok(()) };
    let lists = AuditFilter::new().user(HOST).resource("configmaps").namespace(READ);
    let events = audit.since(mark, &lists)?;
    let readers = events.iter().filter(|event| event.succeeded() && !event.is_write());
    let readers: Vec<_> = readers.map(|event| event.impersonated.clone()).collect();
    let owner = Some(format!("system:serviceaccount:{MODULES}:owner"));
    assert!(readers.iter().all(|reader| *reader == owner), "{readers:?}");
    Ok(())
}

/// What the caches have for one policy answers no other one, also when both have the same component
/// and one of them loses its right or gets one.
async fn shares_no_cached_read(stage: &PolicyStage) -> Result<()> {
    let _replica = begin(stage).await?;
    let component = reading(&list());
    // The selector of the list is the name of the label.
    allow(stage, "first", READ).await?;
    module(stage, "first", &component).await?;
    module(stage, "second", &component).await?;
    until_warned(stage, SOON, &[("first", SAW), ("second", FORBIDDEN)]).await?;

    // Given the right, the second one reads, and the first one goes on.
    allow(stage, "second", READ).await?;
    until_warned(stage, RIGHTS, &[("first", SAW), ("second", SAW)]).await?;

    // Without the right, the first one reads nothing more, though the cache of the second is full.
    let binding = (Kind::new("rbac.authorization.k8s.io/v1", "RoleBinding"), READ, "first");
    stage.admin.delete(binding.0, binding.1, binding.2).await?;
    until_warned(stage, RIGHTS, &[("first", FORBIDDEN), ("second", SAW)]).await?;

    // An account that no longer allows its module reads nothing, and the policy goes on reviewing.
    let account = (Kind::SERVICE_ACCOUNT, MODULES, "second");
    let none: Value = json!({"metadata": {"annotations": {"innkeeper.dev/allowed-modules": null}}});
    stage.admin.edit(account, &none).await?;
    until_warned(stage, RIGHTS, &[("first", FORBIDDEN), ("second", FORBIDDEN)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_29773_policy_reads_with_the_rights_of_its_own_account_only() -> Result<()> {
    reads_as_its_own_account(&PolicyStage::new().await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_29773_policy_reads_as_its_own_account_on_a_simulated_cluster() -> Result<()> {
    reads_as_its_own_account(&PolicyStage::simulated().await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_42541_cached_read_of_one_policy_answers_no_other() -> Result<()> {
    shares_no_cached_read(&PolicyStage::new().await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_42541_cached_read_answers_no_other_on_a_simulated_cluster() -> Result<()> {
    shares_no_cached_read(&PolicyStage::simulated().await?).await
}
