//! `innkeeper modules`: shows the Modules of a cluster; approves, rejects and rolls back revisions.
//!
//! kubectl alone can do the same: an approval or rejection is an annotation, a rollback is a change
//! of the source.

pub(crate) mod digits;
mod policy_lines;
mod requests;
mod rollback;
mod snapshot;

use std::collections::BTreeSet;

use anyhow::bail;
use innkeeper_cluster::ApiClient;
use innkeeper_modules::Module;
use innkeeper_modules::machine::REJECTED;
use innkeeper_modules::machine::reason::{CRD_NOT_ADDITIVE, WOULD_LOSE_DATA, WOULD_NARROW_CRD};
use innkeeper_modules::module::{
    self, CandidateStatus, ModuleCondition, ModuleStatus, RejectedVersion,
};
use serde_json::Value;

use digits::{check_digits, short};
use requests::{decide, get, renew_approval, used_approval};

use crate::kube::KubeArguments;
use crate::out::{self, Page};
use crate::preview::{PreviewedChanges, add_policy};

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
    /// Return to an earlier revision, and reject the active one.
    ///
    /// The host previews the earlier revision like any candidate, and holds it if it would delete
    /// objects or fail. `approve` then activates it, `reject` drops it.
    Rollback(rollback::Arguments),
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
            Command::Approve { name, digest } => approve(&client, name, digest.as_deref()).await,
            Command::Reject { name, digest } => {
                let module = get(&client, name).await?;
                let digest = resolve_digest(&module, digest.as_deref())?;
                check_rejectable(&module, &digest)?;
                decide(&client, name, "", &digest).await?;
                out::line(format_args!("module.innkeeper.dev/{name} rejected {}", short(&digest)))
            }
            Command::Rollback(arguments) => rollback::run(&client, arguments).await,
        }
    })
}

async fn approve(client: &ApiClient, name: &str, digest: Option<&str>) -> anyhow::Result<()> {
    let module = get(client, name).await?;
    let change = if digest.is_none() { held_change(&module)? } else { None };
    let digest = match change {
        Some(change) => change,
        None => resolve_digest(&module, digest)?,
    };
    check_approvable(&module, &digest)?;
    if used_approval(&module) == Some(&digest) {
        renew_approval(client, name, &digest).await?;
    } else {
        decide(client, name, &digest, "").await?;
    }
    out::line(format_args!("module.innkeeper.dev/{name} approved {}", short(&digest)))
}

/// Refuses the rejection of the active revision: it would stay active.
fn check_rejectable(module: &Module, digest: &str) -> anyhow::Result<()> {
    let name = &module.metadata.name;
    let active = module.status.as_ref().and_then(|status| status.digest.as_deref());
    if active == Some(digest) {
        bail!(
            "cannot reject {}: it is the active revision of {name}; run `innkeeper modules rollback {name}`, which rejects it too, or push another component",
            short(digest)
        );
    }
    Ok(())
}

async fn list(client: &ApiClient) -> anyhow::Result<()> {
    let mut modules = Vec::new();
    for value in client.list_as::<Value>(&module::kind(), "").await? {
        match Module::from_value(&value) {
            Ok(module) => modules.push(module),
            Err(error) => {
                let name = value["metadata"]["name"].as_str().unwrap_or_default();
                out::eprint(&format!("innkeeper: cannot read Module {name}: {error}"));
            }
        }
    }
    if modules.is_empty() {
        // As kubectl does.
        out::eprint("No resources found");
        return Ok(());
    }
    out::page(&table(modules))
}

/// A row for each Module.
fn table(modules: Vec<Module>) -> Page {
    let head = ["NAME", "GUEST", "VERSION", "DIGEST", "READY", "REASON", "CANDIDATE"];
    let mut rows = vec![head.map(str::to_owned)];
    for module in modules {
        let status = module.status.unwrap_or_default();
        let ready = condition(&status, "Ready");
        let guest = status.guest.clone().unwrap_or_default();
        let candidate = status.candidate.as_ref().map_or_else(String::new, |candidate| {
            join([short(&candidate.digest), &candidate.version, &state_and_reason(candidate)])
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
    page
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
    if let Some(policy) = &status.policy {
        policy_lines::add(&mut page, policy);
    }
    if let Some(preview) = PreviewedChanges::of_active(&status, None) {
        preview.add_to(&mut page, true);
    }
    describe_history(&mut page, &status);
    if let Some(candidate) = &status.candidate {
        describe_candidate(&mut page, candidate);
    }
    if let Some(held) = status.policy.as_ref().and_then(|policy| policy.held_settings.as_ref()) {
        page.line(format_args!("Settings:   Held {}: {}", held.reason, held.message));
        page.line(format_args!("  digest {}", held.digest));
        add_policy(&mut page, &held.preview, "");
    }
    for RejectedVersion { digest, reason, message, version } in &status.rejected {
        // The heading says already that it is rejected.
        let reason = if reason == REJECTED { "" } else { reason };
        let title = join([short(digest), version, reason]);
        page.line(format_args!("Rejected:   {title}: {message}"));
    }
    page.line("Conditions:");
    for one in &status.conditions {
        page.line(format_args!("  {}={} {}: {}", one.type_, one.status, one.reason, one.message));
    }
    page
}

/// Adds the revisions of which the host keeps a snapshot.
fn describe_history(page: &mut Page, status: &ModuleStatus) {
    let previous = status.previous.as_ref();
    for earlier in status.earlier_revisions() {
        let is_previous = previous.is_some_and(|previous| previous.digest == earlier.digest);
        page.line(format_args!(
            "{:<11} {} (ConfigMap {}/{})",
            if is_previous { "Previous:" } else { "Earlier:" },
            join([short(&earlier.digest), &earlier.version]),
            module::NAMESPACE,
            earlier.config_map
        ));
    }
}

/// Words with a space between them, without empty ones.
fn join<const N: usize>(words: [&str; N]) -> String {
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The state of a candidate, and the reason if it says more.
fn state_and_reason(candidate: &CandidateStatus) -> String {
    let reason = candidate.reason.as_deref().filter(|reason| *reason != candidate.state);
    join([&candidate.state, reason.unwrap_or_default()])
}

/// Adds a candidate revision and its preview to a page.
pub(crate) fn describe_candidate(page: &mut Page, candidate: &CandidateStatus) {
    let state = state_and_reason(candidate);
    let title = join([short(&candidate.digest), &candidate.version, &state]);
    let message = candidate.message.as_ref().map(|message| format!(": {message}"));
    page.line(format_args!("Candidate:  {title}{}", message.unwrap_or_default()));
    page.line(format_args!("  digest {}", candidate.digest));
    if let Some(preview) = PreviewedChanges::of_candidate(candidate) {
        preview.add_to(page, false);
    }
}

/// The change of definitions, or the settings of a policy, that are held; `None` if a candidate is,
/// or nothing.
///
/// # Errors
/// If several are held.
fn held_change(module: &Module) -> anyhow::Result<Option<String>> {
    let Some(status) = &module.status else { return Ok(None) };
    let is_other = |candidate: &&CandidateStatus| {
        candidate.state == "Held" && candidate.reason.as_deref() != Some(WOULD_NARROW_CRD)
    };
    let settings = status.policy.as_ref().and_then(|policy| policy.held_settings.as_ref());
    let changes: Vec<&String> =
        status.held_crd_change.iter().chain(settings.map(|held| &held.digest)).collect();
    let candidate = status.candidate.as_ref().filter(is_other).map(|candidate| &candidate.digest);
    match (&*changes, candidate) {
        ([], _) => Ok(None),
        ([change], None) => Ok(Some((*change).clone())),
        (changes, candidate) => {
            let all = candidate.into_iter().chain(changes.iter().copied());
            bail!(
                "several changes of {} are held (a revision, a change of definitions, or settings of the policy); give all 64 digits of the one that you approve: {}",
                module.metadata.name,
                all.cloned().collect::<Vec<_>>().join(", ")
            )
        }
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
    let digest = check_digits(digest)?;
    let candidate = status.candidate.iter().map(|candidate| &candidate.digest);
    let rejected = status.rejected.iter().map(|rejected| &rejected.digest);
    let known: BTreeSet<&String> = candidate
        .chain(rejected)
        .chain(status.digest.iter())
        .chain(status.earlier_revisions().iter().map(|earlier| &earlier.digest))
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

fn condition<'a>(status: &'a ModuleStatus, type_: &str) -> Option<&'a ModuleCondition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
