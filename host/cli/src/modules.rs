//! `innkeeper modules`: what the modules of a cluster do, and a person's word on their versions.
//!
//! All of it can be done with kubectl alone: a word is an annotation, and going back is a source.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::Module;
use innkeeper_modules::machine::reason::CRD_NOT_ADDITIVE;
use innkeeper_modules::module::{
    self, APPROVE_ANNOTATION, CandidateStatus, ModuleCondition, ModuleStatus, PreviewStatus,
    REJECT_ANNOTATION, SOURCE_KEY,
};
use serde_json::{Value, json};

use crate::out::{self, Page};
use crate::run::KubeArguments;

/// Arguments of `innkeeper modules`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    kube: KubeArguments,
}

#[derive(clap::Subcommand)]
enum What {
    /// One line for each module.
    List,
    /// What serves, what is on its way, what it would do, and what was rejected.
    Describe {
        /// The Module.
        name: String,
    },
    /// Let a version serve that is held or was rejected.
    Approve {
        /// The Module.
        name: String,
        /// The version: its digest, or the first 12 digits or more. The one that is held, if left
        /// out.
        digest: Option<String>,
    },
    /// Refuse a version: it is not tried again.
    Reject {
        /// The Module.
        name: String,
        /// The version: its digest, or the first 12 digits or more. The one that is held, if left
        /// out.
        digest: Option<String>,
    },
    /// Go back to the version that served before, and refuse the one that serves.
    Rollback {
        /// The Module.
        name: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.kube.connect().await?;
        let client = cluster.host();
        match &arguments.what {
            What::List => list(&client).await,
            What::Describe { name } => {
                let module = get(&client, name).await?;
                out::page(&describe(&module))
            }
            What::Approve { name, digest } => {
                let module = get(&client, name).await?;
                let digest = resolve_digest(&module, digest.as_deref())?;
                approvable(&module, &digest)?;
                decide(&client, name, &digest, "").await?;
                out::line(format_args!("{digest} of {name} is approved"))
            }
            What::Reject { name, digest } => {
                let digest = resolve_digest(&get(&client, name).await?, digest.as_deref())?;
                decide(&client, name, "", &digest).await?;
                out::line(format_args!("{digest} of {name} is rejected"))
            }
            What::Rollback { name } => rollback(&client, name).await,
        }
    })
}

async fn get(client: &ApiClient, name: &str) -> anyhow::Result<Module> {
    let value: Value = match client.get_as(&module::kind(), &ObjectKey::new("", name)).await {
        Ok(value) => value,
        Err(ApiError::NotFound { .. }) => {
            bail!("there is no Module {name}; `innkeeper modules list` shows those that there are")
        }
        Err(error) => return Err(error.into()),
    };
    Module::from_value(&value).with_context(|| format!("Module {name} cannot be read"))
}

async fn list(client: &ApiClient) -> anyhow::Result<()> {
    let mut rows = vec![
        ["NAME", "GUEST", "VERSION", "DIGEST", "READY", "REASON", "CANDIDATE"].map(str::to_owned),
    ];
    for value in client.list_as::<Value>(&module::kind(), "").await? {
        let module = match Module::from_value(&value) {
            Ok(module) => module,
            Err(error) => {
                let name = value["metadata"]["name"].as_str().unwrap_or_default();
                out::eprint(&format!("innkeeper: Module {name} cannot be read: {error}"));
                continue;
            }
        };
        let status = module.status.unwrap_or_default();
        let ready = condition(&status, "Ready");
        let guest = status.guest.clone().unwrap_or_default();
        let candidate = status.candidate.as_ref().map_or_else(String::new, |candidate| {
            let reason = candidate.reason.as_deref().unwrap_or_default();
            format!("{} {} {reason}", short(&candidate.digest), candidate.state)
        });
        rows.push([
            module.metadata.name,
            guest.name,
            guest.version,
            short(status.digest.as_deref().unwrap_or_default()).to_owned(),
            ready.map_or_else(|| "Unknown".to_owned(), |one| one.status.clone()),
            ready.map_or_else(String::new, |one| one.reason.clone()),
            candidate,
        ]);
    }
    let mut page = Page::default();
    page.table(&rows);
    out::page(&page)
}

fn describe(module: &Module) -> Page {
    let mut page = Page::default();
    page.line(format_args!("Name:       {}", module.metadata.name));
    let status = module.status.clone().unwrap_or_default();
    let serving = match (&status.guest, &status.digest) {
        (Some(guest), Some(digest)) => {
            format!("{} {} ({})", guest.name, guest.version, short(digest))
        }
        _ => "nothing".to_owned(),
    };
    page.line(format_args!("Active:     {serving}"));
    if let Some(rehearsal) = &status.preview {
        describe_preview(&mut page, rehearsal);
    }
    if let Some(previous) = &status.previous {
        page.line(format_args!(
            "Previous:   {} (ConfigMap {}/{})",
            short(&previous.digest),
            module::NAMESPACE,
            previous.config_map
        ));
    }
    if let Some(candidate) = &status.candidate {
        describe_candidate(&mut page, candidate);
    }
    for rejected in &status.rejected {
        page.line(format_args!(
            "Rejected:   {} {}: {}",
            short(&rejected.digest),
            rejected.reason,
            rejected.message
        ));
    }
    page.line("Conditions:");
    for one in &status.conditions {
        page.line(format_args!("  {}={} {}: {}", one.type_, one.status, one.reason, one.message));
    }
    page
}

/// What a candidate is and would do.
pub(crate) fn describe_candidate(page: &mut Page, candidate: &CandidateStatus) {
    let why = match (&candidate.reason, &candidate.message) {
        (Some(reason), Some(message)) => format!(" {reason}: {message}"),
        _ => String::new(),
    };
    page.line(format_args!("Candidate:  {} {}{why}", short(&candidate.digest), candidate.state));
    page.line(format_args!("  digest {}", candidate.digest));
    let CandidateStatus { primaries: Some(primaries), previewed: Some(previewed), .. } = *candidate
    else {
        return;
    };
    let rehearsal = PreviewStatus {
        digest: candidate.digest.clone(),
        primaries,
        previewed,
        creates: candidate.creates.unwrap_or_default(),
        changes: candidate.changes.unwrap_or_default(),
        deletes: candidate.deletes.unwrap_or_default(),
        failures: candidate.failures.unwrap_or_default(),
        examples: candidate.examples.clone(),
    };
    describe_preview(page, &rehearsal);
}

/// What a version was found to do, indented.
pub(crate) fn describe_preview(page: &mut Page, rehearsal: &PreviewStatus) {
    let PreviewStatus {
        digest: _,
        primaries,
        previewed,
        creates,
        changes,
        deletes,
        failures,
        examples,
    } = rehearsal;
    page.line(format_args!("  run for {previewed} of {primaries} primaries: {creates} to create, {changes} to change, {deletes} to delete, {failures} failing"
    ));
    for example in examples {
        let (action, fields) = (example.action.to_lowercase(), example.fields.join(" "));
        page.line(format_args!("  {action:8} {} {fields}", example.object));
    }
}

/// The version that a person means.
fn resolve_digest(module: &Module, digest: Option<&str>) -> anyhow::Result<String> {
    let name = &module.metadata.name;
    let status = module.status.clone().unwrap_or_default();
    let held = status.candidate.as_ref().filter(|candidate| candidate.state == "Held");
    let Some(digest) = digest else {
        return match held {
            Some(held) => Ok(held.digest.clone()),
            None => bail!(
                "no version of {name} is held; name the one that you mean: `innkeeper modules describe {name}` shows them"
            ),
        };
    };
    if !(12..=64).contains(&digest.len()) || !digest.chars().all(|digit| digit.is_ascii_hexdigit())
    {
        bail!("{digest:?} is no digest: give its first 12 hex digits or more");
    }
    let digest = digest.to_ascii_lowercase();
    let candidate = status.candidate.iter().map(|candidate| &candidate.digest);
    let rejected = status.rejected.iter().map(|rejected| &rejected.digest);
    let known: BTreeSet<&String> = candidate
        .chain(rejected)
        .chain(status.digest.iter())
        .filter(|known| known.starts_with(&digest))
        .collect();
    let mut known = known.into_iter();
    match (known.next(), known.next()) {
        // Two components with the same first digits can be made on purpose.
        (Some(one), Some(other)) => bail!(
            "{digest} names several versions of {name} ({one}, {other}): give all 64 digits of the one that you mean"
        ),
        (Some(known), None) => Ok(known.clone()),
        // It may come later; then it has to be named in full.
        (None, _) if digest.len() == 64 => Ok(digest),
        (None, _) => bail!(
            "{name} knows no version {digest}; one that is still to come has to be named by all 64 digits"
        ),
    }
}

/// Says so where an approval would be in vain: what a definition would break, it would break all
/// the same.
fn approvable(module: &Module, digest: &str) -> anyhow::Result<()> {
    let candidate = module.status.as_ref().and_then(|status| status.candidate.as_ref());
    match candidate {
        Some(CandidateStatus { digest: refused, reason: Some(reason), message, .. })
            if refused == digest && reason == CRD_NOT_ADDITIVE =>
        {
            bail!(
                "{} cannot be approved ({reason}): {}",
                short(digest),
                message.as_deref().unwrap_or_default()
            )
        }
        _ => Ok(()),
    }
}

/// Writes a person's word on versions; it replaces what was said before. Empty for none: what
/// kubectl has said of the same version must not stand beside it.
async fn decide(client: &ApiClient, name: &str, approve: &str, reject: &str) -> anyhow::Result<()> {
    let body = json!({
        "apiVersion": module::API_VERSION,
        "kind": module::KIND,
        "metadata": {
            "name": name,
            "annotations": {APPROVE_ANNOTATION: approve, REJECT_ANNOTATION: reject},
        },
    });
    client
        .apply(&module::kind(), &ObjectKey::new("", name), &Manager::Approval, &body, Force::Yes)
        .await?;
    Ok(())
}

async fn rollback(client: &ApiClient, name: &str) -> anyhow::Result<()> {
    let status = get(client, name).await?.status.unwrap_or_default();
    let (Some(previous), Some(current)) = (status.previous, status.digest) else {
        bail!("no version of {name} served before the present one, so there is none to go back to")
    };
    // The word first: the version that is gone back to need not be previewed, and the other one
    // is not taken again by whoever pushes it.
    decide(client, name, &previous.digest, &current).await?;
    let source = json!({
        "apiVersion": module::API_VERSION,
        "kind": module::KIND,
        "metadata": {"name": name},
        "spec": {"source": {"configMap": {"name": previous.config_map, "key": SOURCE_KEY}}},
    });
    client
        .apply(&module::kind(), &ObjectKey::new("", name), &Manager::Push, &source, Force::Yes)
        .await?;
    out::line(format_args!("{name} goes back from {current} to {}", previous.digest))
}

fn condition<'a>(status: &'a ModuleStatus, type_: &str) -> Option<&'a ModuleCondition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

/// The first 12 digits.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use innkeeper_core::foreign;

    use super::*;

    fn module(status: &Value) -> Module {
        Module::from_value(&json!({
            "apiVersion": "innkeeper.dev/v1alpha1", "kind": "Module",
            "metadata": {"name": "web"},
            "spec": {"source": {"configMap": {"name": "web"}}, "serviceAccountName": "web"},
            "status": status,
        }))
        .unwrap()
    }

    fn held() -> Module {
        module(&json!({
            "digest": "a".repeat(64),
            "guest": {"name": "podroute", "version": "0.1.0"},
            "preview": {"digest": "a".repeat(64), "primaries": 6, "previewed": 6, "creates": 0,
                "changes": 2, "deletes": 0, "failures": 0, "examples": [
                {"action": "Change", "object": "Deployment web/b", "fields": [".spec.replicas"]}]},
            "previous": {"digest": "b".repeat(64), "configMap": "web-copy-bbbbbbbbbbbb"},
            "candidate": {"digest": "c".repeat(64), "state": "Held", "reason": "WouldDelete",
                "message": "it would delete 1 object", "primaries": 7, "previewed": 7,
                "creates": 0, "changes": 7, "deletes": 1, "failures": 0, "examples": [
                {"action": "Delete", "object": "Service web/a"},
                {"action": "Change", "object": "Deployment web/a", "fields": [".spec.replicas"]}]},
            "rejected": [{"digest": "d".repeat(64), "reason": "RolledBack", "message": "it failed"}],
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "Held", "message": "it is held"}],
        }))
    }

    #[test]
    fn all_that_a_person_needs_to_decide_is_described() {
        expect![[r#"
            Name:       web
            Active:     podroute 0.1.0 (aaaaaaaaaaaa)
              run for 6 of 6 primaries: 0 to create, 2 to change, 0 to delete, 0 failing
              change   Deployment web/b .spec.replicas
            Previous:   bbbbbbbbbbbb (ConfigMap innkeeper-modules/web-copy-bbbbbbbbbbbb)
            Candidate:  cccccccccccc Held WouldDelete: it would delete 1 object
              digest cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc
              run for 7 of 7 primaries: 0 to create, 7 to change, 1 to delete, 0 failing
              delete   Service web/a
              change   Deployment web/a .spec.replicas
            Rejected:   dddddddddddd RolledBack: it failed
            Conditions:
              Ready=False Held: it is held
        "#]]
        .assert_eq(describe(&held()).text());
    }

    #[test]
    fn a_version_is_named_by_its_first_digits_or_by_being_held() {
        let told = |digest: Option<&str>| {
            resolve_digest(&held(), digest).map_err(|error| error.to_string())
        };
        assert_eq!(told(None), Ok("c".repeat(64)));
        assert_eq!(told(Some("dddddddddddd")), Ok("d".repeat(64)));
        assert_eq!(told(Some(&"e".repeat(64))), Ok("e".repeat(64)));
        assert!(told(Some("eeeeeeeeeeee")).unwrap_err().contains("all 64 digits"));
        assert!(told(Some("d")).unwrap_err().contains("first 12 hex digits"));
        assert!(told(Some(&"d".repeat(65))).unwrap_err().contains("first 12 hex digits"));
        assert_eq!(told(Some("DDDDDDDDDDDD")), Ok("d".repeat(64)));
        let nothing = resolve_digest(&module(&json!({})), None).unwrap_err();
        assert!(nothing.to_string().contains("no version of web is held"));
    }

    #[test]
    fn first_digits_that_several_versions_have_are_refused() {
        let (one, other) = (format!("{}1", "c".repeat(63)), format!("{}2", "c".repeat(63)));
        let module = module(&json!({
            "candidate": {"digest": one, "state": "Held"},
            "rejected": [{"digest": other, "reason": "Rejected", "message": "no"}]}));
        for digits in [12, 63] {
            let error = resolve_digest(&module, Some(&one[..digits])).unwrap_err().to_string();
            assert!(error.contains(&one) && error.contains(&other), "{error}");
        }
        assert_eq!(resolve_digest(&module, Some(&one)).unwrap(), one);
        assert_eq!(resolve_digest(&module, Some(&other)).unwrap(), other);
    }

    #[test]
    fn statuses_that_hold_commands_for_terminals_are_shown_as_text() {
        let text = "a\nName:       other\u{1b}[2J\u{9b}1A\u{202e}";
        let hostile = module(&json!({
            "digest": "a".repeat(64),
            "guest": {"name": text, "version": text},
            "previous": {"digest": "b".repeat(64), "configMap": text},
            "candidate": {"digest": "c".repeat(64), "state": text, "reason": text, "message": text,
                "primaries": 1, "previewed": 1, "examples": [
                {"action": text, "object": text, "fields": [text]}]},
            "rejected": [{"digest": text, "reason": text, "message": text}],
            "conditions": [{"type": text, "status": text, "reason": text, "message": text,
                "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }));
        let page = describe(&hostile);
        let lines: Vec<&str> = page.text().lines().collect();
        assert_eq!(lines.len(), 10, "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("Name:")).count(), 1);
        assert!(page.text().chars().all(|c| c == '\n' || foreign::is_visible(c)), "{lines:#?}");
    }

    #[test]
    fn an_approval_in_vain_is_refused_with_the_reason() {
        let refused = module(&json!({"candidate": {"digest": "c".repeat(64), "state": "Rejected",
            "reason": "CRDIncompatible", "message": ".spec.color is gone"}}));
        assert_eq!(
            approvable(&refused, &"c".repeat(64)).unwrap_err().to_string(),
            "cccccccccccc cannot be approved (CRDIncompatible): .spec.color is gone"
        );
        assert!(approvable(&refused, &"d".repeat(64)).is_ok());
        assert!(approvable(&held(), &"c".repeat(64)).is_ok());
    }
}
