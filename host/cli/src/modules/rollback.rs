//! `innkeeper modules rollback`: makes the snapshot of an earlier revision the source of a Module.
//!
//! The host treats that revision like any candidate: it previews the revision, and holds it if it
//! would delete objects or fail.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, Force};
use innkeeper_core::{Manager, ObjectKey};
use innkeeper_modules::Module;
use innkeeper_modules::machine::REJECTED;
use innkeeper_modules::module::{
    self, APPROVE_ANNOTATION, EarlierRevision, ModuleStatus, SOURCE_KEY,
};
use serde_json::json;

use super::digits::{check_digits, short};
use super::requests::{decide, until};
use super::snapshot;
use crate::out;
use crate::push::{self, Pushed};

/// Arguments of `innkeeper modules rollback`.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Name of the Module.
    name: String,
    /// Digest of the revision, or at least its first 12 digits [default: the revision that was
    /// active before the active one, without rejected ones].
    digest: Option<String>,
    /// Wait until the revision is active, held or rejected, for this time at most (60 without a
    /// value).
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "60")]
    wait: Option<u64>,
}

#[cfg(test)]
impl Arguments {
    /// The arguments of a command.
    pub(super) fn new(name: &str, digest: Option<&str>, wait: Option<u64>) -> Self {
        Self { name: name.to_owned(), digest: digest.map(str::to_owned), wait }
    }
}

/// Runs the command.
///
/// # Errors
/// If there is no such revision, a candidate is on its way, or the API server refuses a request;
/// with --wait also if the revision does not become active.
pub(super) async fn run(client: &ApiClient, arguments: &Arguments) -> anyhow::Result<()> {
    let name = &arguments.name;
    let digest = arguments.digest.as_deref();
    let module = until_approval_is_taken(client, name, digest).await?;
    let Rollback { from, to } = Rollback::plan(&module, digest)?;
    snapshot::check(client, name, &to).await?;
    let source = json!({
        "apiVersion": module::API_VERSION,
        "kind": module::KIND,
        "metadata": {"name": name},
        "spec": {"source": {"configMap": {"name": to.config_map, "key": SOURCE_KEY}}},
    });
    let (kind, key) = (module::kind(), ObjectKey::new("", name));
    // A user who may not change the source must not leave the active revision rejected.
    client.dry_run_apply(&kind, &key, &Manager::Push, &source, Force::Yes).await?;
    // Before the source changes: the host does not activate the present revision again if somebody
    // pushes it, and no earlier approval lets the other one become active without a preview.
    decide(client, name, "", &from).await?;
    let applied = match client.apply(&kind, &key, &Manager::Push, &source, Force::Yes).await {
        Ok(applied) => applied,
        // The rollback may be under way.
        Err(error @ ApiError::OutcomeUnknown { .. }) => return Err(error.into()),
        Err(error) => {
            // The approval of the active revision lifts its rejection, and has no other effect.
            decide(client, name, &from, "").await.with_context(|| {
                format!(
                    "the active revision stays rejected; run `innkeeper modules approve {name} {}`",
                    short(&from)
                )
            })?;
            return Err(error.into());
        }
    };
    out::line(format_args!(
        "module.innkeeper.dev/{name} rolls back from {} to {}; the host previews that revision first (`innkeeper modules describe {name}`)",
        short(&from),
        short(&to.digest)
    ))?;
    match arguments.wait {
        Some(seconds) => {
            let pushed = Pushed::earlier(applied.object.generation, to.digest);
            push::wait(client, name, &pushed, Duration::from_secs(seconds)).await
        }
        None => Ok(()),
    }
}

/// Reads the Module. If the user has just approved the named revision, waits for the host to take
/// the approval.
async fn until_approval_is_taken(
    client: &ApiClient,
    name: &str,
    digest: Option<&str>,
) -> anyhow::Result<Module> {
    let awaits = |module: &Module| digest.is_some_and(|digest| awaits_approval(module, digest));
    until(client, name, |module| !awaits(module)).await
}

/// Whether the annotations approve a rejected revision, and the host has not lifted its rejection.
fn awaits_approval(module: &Module, digest: &str) -> bool {
    let status = module.status.clone().unwrap_or_default();
    let digest = digest.to_ascii_lowercase();
    let approved = module.metadata.annotations.get(APPROVE_ANNOTATION);
    approved.is_some_and(|approved| {
        approved.starts_with(&digest)
            && status.used_approval.as_ref() != Some(approved)
            && status.rejected.iter().any(|one| one.digest == *approved)
    })
}

/// A rollback that the user may ask for.
#[derive(Debug, PartialEq, Eq)]
struct Rollback {
    /// The digest of the active revision.
    from: String,
    /// The revision to return to.
    to: EarlierRevision,
}

impl Rollback {
    /// The rollback to the previous revision, or to that of a digest.
    ///
    /// # Errors
    /// If a candidate is on its way, there is no such revision, or it is rejected.
    fn plan(module: &Module, digest: Option<&str>) -> anyhow::Result<Self> {
        let name = &module.metadata.name;
        let status = module.status.clone().unwrap_or_default();
        let Some(from) = status.digest.clone() else {
            bail!("cannot roll back {name}: no revision is active; run `innkeeper push`")
        };
        check_candidate(name, &status)?;
        let Some(digest) = digest else {
            let Some(to) = status.previous.clone() else {
                bail!(
                    "cannot roll back {name}: no revision that was active before is left to return to; {}",
                    alternatives(&status)
                )
            };
            return Ok(Self { from, to });
        };
        let digest = check_digits(digest)?;
        let mut found =
            status.earlier_revisions().iter().filter(|one| one.digest.starts_with(&digest));
        let to = match (found.next(), found.next()) {
            (Some(to), None) => to.clone(),
            (Some(one), Some(other)) => bail!(
                "several revisions of {name} begin with {digest} ({}, {}); give all 64 digits",
                one.digest,
                other.digest
            ),
            (None, _) if from.starts_with(&digest) => {
                bail!("cannot roll back {name} to {digest}: this revision is active")
            }
            (None, _) => bail!(
                "cannot roll back {name} to {digest}: the host keeps no such revision; {}",
                alternatives(&status)
            ),
        };
        check_allowed(module, &status, &to.digest)?;
        Ok(Self { from, to })
    }
}

/// Refuses a rollback while a candidate is on its way: the user decides about that one.
fn check_candidate(name: &str, status: &ModuleStatus) -> anyhow::Result<()> {
    let Some(candidate) = status.candidate.as_ref().filter(|one| one.state != REJECTED) else {
        return Ok(());
    };
    let digest = short(&candidate.digest);
    if candidate.state == "Held" {
        bail!(
            "cannot roll back {name}: revision {} is held and not active; run `innkeeper modules reject {name}` to drop it, or `innkeeper modules approve {name}` to activate it",
            titled(digest, &candidate.version)
        );
    }
    bail!(
        "cannot roll back {name}: revision {} is on its way ({}); wait until it is active, or run `innkeeper modules reject {name} {digest}` to drop it",
        titled(digest, &candidate.version),
        candidate.state
    )
}

/// Refuses a rejected revision: only an approval lifts a rejection.
fn check_allowed(module: &Module, status: &ModuleStatus, digest: &str) -> anyhow::Result<()> {
    let name = &module.metadata.name;
    let Some(rejected) = status.rejected.iter().find(|one| one.digest == digest) else {
        return Ok(());
    };
    if awaits_approval(module, digest) {
        bail!(
            "cannot roll back {name} to {}: the operator has not observed its approval; check that it runs",
            short(digest)
        );
    }
    bail!(
        "cannot roll back {name} to {}: it is rejected ({}); run `innkeeper modules approve {name} {}` first, then this command again",
        short(digest),
        rejected.message,
        short(digest)
    )
}

/// What a user can do without a previous revision: a sentence, and a line for each revision.
fn alternatives(status: &ModuleStatus) -> String {
    let rows: Vec<_> = status.earlier_revisions().iter().map(|one| row(status, one)).collect();
    if rows.is_empty() {
        return "the host keeps no earlier revision; run `innkeeper push` with another component"
            .to_owned();
    }
    let mut text = "name one of these, or run `innkeeper push` with another component:".to_owned();
    let head = ["DIGEST", "VERSION", "STATE"].map(str::to_owned);
    let table = out::table(&[vec![head], rows].concat());
    for line in table.lines() {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n  {line}");
    }
    text
}

fn row(status: &ModuleStatus, one: &EarlierRevision) -> [String; 3] {
    let rejected = status.rejected.iter().find(|rejected| rejected.digest == one.digest);
    let state = match rejected {
        Some(rejected) => format!("rejected ({}), needs an approval first", rejected.message),
        None => "was active before".to_owned(),
    };
    let version = if one.version.is_empty() { "<unknown>" } else { &one.version };
    [short(&one.digest).to_owned(), version.to_owned(), state]
}

/// A digest with its version, if that is known.
fn titled(digest: &str, version: &str) -> String {
    if version.is_empty() { digest.to_owned() } else { format!("{digest} ({version})") }
}

#[cfg(test)]
mod tests;
