//! `innkeeper modules`: shows the Modules of a cluster; approves, rejects and rolls back revisions.
//!
//! kubectl alone can do the same: an approval or rejection is an annotation, a rollback is a change
//! of the source.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::Module;
use innkeeper_modules::machine::reason::{CRD_NOT_ADDITIVE, WOULD_LOSE_DATA, WOULD_NARROW_CRD};
use innkeeper_modules::module::{
    self, APPROVE_ANNOTATION, CandidateStatus, ModuleCondition, ModuleStatus, REJECT_ANNOTATION,
    SOURCE_KEY,
};
use serde_json::{Value, json};

use crate::kube::KubeArguments;
use crate::out::{self, Page};
use crate::preview::PreviewedChanges;

/// Arguments of `innkeeper modules`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    kube: KubeArguments,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List all Modules with their active and candidate revisions.
    List,
    /// Show the active and candidate revision of a Module, the preview, and rejected revisions.
    Describe {
        /// Name of the Module.
        name: String,
    },
    /// Approve a revision that is held or was rejected, so that the host activates it.
    Approve {
        /// Name of the Module.
        name: String,
        /// Digest of the revision, or at least its first 12 digits [default: the revision that is
        /// held].
        digest: Option<String>,
    },
    /// Reject a revision, so that the host does not activate it.
    Reject {
        /// Name of the Module.
        name: String,
        /// Digest of the revision, or at least its first 12 digits [default: the revision that is
        /// held].
        digest: Option<String>,
    },
    /// Activate the previous revision again, and reject the active one.
    Rollback {
        /// Name of the Module.
        name: String,
    },
}

/// Runs the command.
///
/// # Errors
/// If the API server cannot be reached, has no such Module, or refuses the request.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.kube.connect().await?;
        let client = cluster.host();
        match &arguments.command {
            Command::List => list(&client).await,
            Command::Describe { name } => {
                let module = get(&client, name).await?;
                out::page(&describe(&module))
            }
            Command::Approve { name, digest } => {
                let module = get(&client, name).await?;
                let change = if digest.is_none() { held_change(&module)? } else { None };
                let digest = match change {
                    Some(change) => change,
                    None => resolve_digest(&module, digest.as_deref())?,
                };
                check_approvable(&module, &digest)?;
                decide(&client, name, &digest, "").await?;
                out::line(format_args!("module.innkeeper.dev/{name} approved {digest}"))
            }
            Command::Reject { name, digest } => {
                let digest = resolve_digest(&get(&client, name).await?, digest.as_deref())?;
                decide(&client, name, "", &digest).await?;
                out::line(format_args!("module.innkeeper.dev/{name} rejected {digest}"))
            }
            Command::Rollback { name } => rollback(&client, name).await,
        }
    })
}

async fn get(client: &ApiClient, name: &str) -> anyhow::Result<Module> {
    let value: Value = match client.get_as(&module::kind(), &ObjectKey::new("", name)).await {
        Ok(value) => value,
        Err(ApiError::NotFound { .. }) => {
            bail!("Module {name} not found; run `innkeeper modules list` to see all Modules")
        }
        Err(error) => return Err(error.into()),
    };
    Module::from_value(&value).with_context(|| format!("cannot read Module {name}"))
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
                out::eprint(&format!("innkeeper: cannot read Module {name}: {error}"));
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
    if rows.len() == 1 {
        // As kubectl does.
        out::eprint("No resources found");
        return Ok(());
    }
    let mut page = Page::default();
    page.table(&rows);
    out::page(&page)
}

fn describe(module: &Module) -> Page {
    let mut page = Page::default();
    page.line(format_args!("Name:       {}", module.metadata.name));
    let status = module.status.clone().unwrap_or_default();
    let active = match (&status.guest, &status.digest) {
        (Some(guest), Some(digest)) => {
            format!("{} {} ({})", guest.name, guest.version, short(digest))
        }
        _ => "<none>".to_owned(),
    };
    page.line(format_args!("Active:     {active}"));
    if let Some(preview) = PreviewedChanges::of_active(&status, None) {
        preview.add_to(&mut page);
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

/// Adds a candidate revision and its preview to a page.
pub(crate) fn describe_candidate(page: &mut Page, candidate: &CandidateStatus) {
    let reason = match (&candidate.reason, &candidate.message) {
        (Some(reason), Some(message)) => format!(" {reason}: {message}"),
        _ => String::new(),
    };
    page.line(format_args!("Candidate:  {} {}{reason}", short(&candidate.digest), candidate.state));
    page.line(format_args!("  digest {}", candidate.digest));
    if let Some(preview) = PreviewedChanges::of_candidate(candidate) {
        preview.add_to(page);
    }
}

/// The change of definitions that is held, unless a candidate is held for another reason.
fn held_change(module: &Module) -> anyhow::Result<Option<String>> {
    let Some(status) = &module.status else { return Ok(None) };
    let is_other = |candidate: &&CandidateStatus| {
        candidate.state == "Held" && candidate.reason.as_deref() != Some(WOULD_NARROW_CRD)
    };
    match (&status.held_crd_change, status.candidate.as_ref().filter(is_other)) {
        (Some(change), Some(candidate)) => bail!(
            "a revision and a change of definitions of {} are held; give all 64 digits of the one that you approve, {} or {change}",
            module.metadata.name,
            candidate.digest
        ),
        (change, _) => Ok(change.clone()),
    }
}

/// The revision that the user means.
fn resolve_digest(module: &Module, digest: Option<&str>) -> anyhow::Result<String> {
    let name = &module.metadata.name;
    let status = module.status.clone().unwrap_or_default();
    let held = status.candidate.as_ref().filter(|candidate| candidate.state == "Held");
    let Some(digest) = digest else {
        return match held {
            Some(held) => Ok(held.digest.clone()),
            None => bail!(
                "no revision of {name} is held; give the digest of the revision (`innkeeper modules describe {name}` shows the digests)"
            ),
        };
    };
    if !(12..=64).contains(&digest.len()) || !digest.chars().all(|digit| digit.is_ascii_hexdigit())
    {
        bail!("{digest:?} is no digest; give at least its first 12 hex digits");
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
            "several revisions of {name} begin with {digest} ({one}, {other}); give all 64 digits"
        ),
        (Some(known), None) => Ok(known.clone()),
        // The user may approve a revision in advance, by its whole digest.
        (None, _) if digest.len() == 64 => Ok(digest),
        (None, _) => bail!(
            "{name} has no revision {digest}; give all 64 digits to name a revision in advance"
        ),
    }
}

/// Refuses an approval that would have no effect: an approval cannot make a definition compatible
/// with the stored objects.
fn check_approvable(module: &Module, digest: &str) -> anyhow::Result<()> {
    let candidate = module.status.as_ref().and_then(|status| status.candidate.as_ref());
    match candidate {
        Some(CandidateStatus { digest: refused, reason: Some(reason), message, .. })
            if refused == digest && [CRD_NOT_ADDITIVE, WOULD_LOSE_DATA].contains(&&**reason) =>
        {
            bail!(
                "cannot approve {} ({reason}): {}",
                short(digest),
                message.as_deref().unwrap_or_default()
            )
        }
        _ => Ok(()),
    }
}

/// Writes the user's approval and rejection, each empty for none. An empty text also replaces an
/// annotation that kubectl wrote.
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
        bail!(
            "cannot roll back {name}: it has no previous revision; run `innkeeper push` with another component"
        )
    };
    // Before the source changes: the host then activates the previous revision without a preview,
    // and does not activate the other one again if somebody pushes it.
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
    out::line(format_args!(
        "module.innkeeper.dev/{name} rolled back from {current} to {}",
        previous.digest
    ))
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
    fn describe_shows_revisions_previews_and_conditions() {
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
    fn revision_is_found_by_its_first_digits_or_when_it_is_held() {
        let resolve = |digest: Option<&str>| {
            resolve_digest(&held(), digest).map_err(|error| error.to_string())
        };
        assert_eq!(resolve(None), Ok("c".repeat(64)));
        assert_eq!(resolve(Some("dddddddddddd")), Ok("d".repeat(64)));
        assert_eq!(resolve(Some(&"e".repeat(64))), Ok("e".repeat(64)));
        assert!(resolve(Some("eeeeeeeeeeee")).unwrap_err().contains("all 64 digits"));
        assert!(resolve(Some("d")).unwrap_err().contains("first 12 hex digits"));
        assert!(resolve(Some(&"d".repeat(65))).unwrap_err().contains("first 12 hex digits"));
        assert_eq!(resolve(Some("DDDDDDDDDDDD")), Ok("d".repeat(64)));
        let nothing = resolve_digest(&module(&json!({})), None).unwrap_err();
        assert!(nothing.to_string().contains("no revision of web is held"));
    }

    #[test]
    fn held_change_of_definitions_is_what_is_approved_unless_a_revision_is_held_too() {
        let change = "f".repeat(64);
        let of = |reason: &str| {
            held_change(&module(&json!({"heldCRDChange": change,
                "candidate": {"digest": "c".repeat(64), "state": "Held", "reason": reason}})))
        };
        assert_eq!(of("WouldNarrowCRD").unwrap(), Some(change.clone()));
        let error = of("WouldDelete").unwrap_err().to_string();
        assert!(error.contains(&change) && error.contains(&"c".repeat(64)), "{error}");
        assert_eq!(held_change(&held()).unwrap(), None);
    }

    #[test]
    fn first_digits_are_refused_when_several_revisions_have_them() {
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
    fn status_is_shown_as_text_when_it_has_commands_for_terminals() {
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
    fn approval_is_refused_when_the_definition_is_incompatible() {
        let refused = module(&json!({"candidate": {"digest": "c".repeat(64), "state": "Rejected",
            "reason": "CRDIncompatible", "message": ".spec.color is gone"}}));
        assert_eq!(
            check_approvable(&refused, &"c".repeat(64)).unwrap_err().to_string(),
            "cannot approve cccccccccccc (CRDIncompatible): .spec.color is gone"
        );
        assert!(check_approvable(&refused, &"d".repeat(64)).is_ok());
        assert!(check_approvable(&held(), &"c".repeat(64)).is_ok());
    }
}
