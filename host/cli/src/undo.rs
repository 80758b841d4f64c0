//! `innkeeper undo`: returns a primary to a stored revision, as the user of the kubeconfig.
//!
//! Others than the host can store revisions, and the command cannot tell. So it writes only if the
//! user names the revision.

mod field_managers;

use anyhow::{Context as _, bail};
use innkeeper_cluster::{ApiClient, ApiError, DryRun};
use serde_json::{Value, json};
use similar::TextDiff;

use self::field_managers::managers_of_changes;
use crate::document::Yaml;
use crate::kube::KubeArguments;
use crate::out::{self, Page};
use crate::primary_revisions::{
    Change, PrimaryArguments, PrimaryName, RevisionList, StoredRevision, of_user,
};

/// The field manager of the change. Not a manager of the host, since the user decides.
const FIELD_MANAGER: &str = "innkeeper-undo";

/// Lines of context around a difference.
const CONTEXT_LINES: usize = 3;

/// Arguments of `innkeeper undo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    primary: PrimaryArguments,
    /// Number of the revision to return to, as `innkeeper history` shows it. Without it the command
    /// changes nothing: it shows the newest revision that differs from the present primary, and the
    /// command line that returns to it.
    #[arg(long, value_name = "NUMBER")]
    to_revision: Option<i64>,
    /// Change nothing: show the difference, and have the API server check the change.
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
///
/// # Errors
/// If there is no such revision, or the API server refuses a request.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.primary.connect().await?;
        let (client, named) = (cluster.host(), arguments.primary.named(&cluster));
        out::page(&answer(&client, named, arguments).await?)
    })
}

/// Shows the difference, and sends the change if the user named the revision.
///
/// # Errors
/// If there is no such revision, or the API server refuses a request.
async fn answer(
    client: &ApiClient,
    named: PrimaryName<'_>,
    arguments: &Arguments,
) -> anyhow::Result<Page> {
    let undo = Undo::plan(client, named, arguments.to_revision).await?;
    let mut page = undo.difference()?;
    if let Some(note) = undo.all.note() {
        page.line(note);
    }
    if arguments.dry_run {
        page.line(undo.send(client, DryRun::Yes).await?);
    } else if arguments.to_revision.is_some() {
        page.line(undo.send(client, DryRun::No).await?);
    }
    if arguments.to_revision.is_none() {
        page.line("Nothing has changed: undo writes only with --to-revision. If you want this difference, run");
        page.line(format_args!("  {}", undo.command_line(named, arguments.primary.kube())?));
    }
    Ok(page)
}

/// A return to a revision.
#[derive(Debug)]
struct Undo {
    all: RevisionList,
    revision: StoredRevision,
    change: Change,
}

impl Undo {
    /// Finds the revision, and computes what changes.
    ///
    /// # Errors
    /// If there is no such revision, or the API server refuses a request.
    async fn plan(
        client: &ApiClient,
        named: PrimaryName<'_>,
        number: Option<i64>,
    ) -> anyhow::Result<Self> {
        let all = RevisionList::read(client, named).await?;
        let revision = match number {
            Some(number) => of_number(&all, number)?.clone(),
            None => newest_other(&all)?.clone(),
        };
        if let Some(version) = all.other_version(&revision) {
            bail!(
                "undo does not write revision {} ({}): it has fields of {version}, and the primary is of {}, where the same fields may mean something else; look at it with `{}`, and edit the primary",
                revision.number,
                revision.name,
                all.kind.api_version,
                shown_by(&all, &revision)?
            );
        }
        let change = revision.change_of(&all.primary);
        Ok(Self { all, revision, change })
    }

    /// What changes, and the managers of the changed fields.
    fn difference(&self) -> anyhow::Result<Page> {
        let text = |primary: &Value| -> anyhow::Result<String> {
            let mut yaml = Yaml::default();
            yaml.document(&self.revision.fields_of(primary))?;
            Ok(yaml.finish()?.text().to_owned())
        };
        let (before, after) = (text(&self.all.primary)?, text(&self.change.after)?);
        let (title, target) = (format!("{} (present)", self.all.title()), self.target());
        let difference = TextDiff::from_lines(&before, &after);
        let mut shown = difference.unified_diff();
        shown.context_radius(CONTEXT_LINES).header(&title, &target);
        let mut page = Page::default();
        page.lines(&shown.to_string());
        let managers = managers_of_changes(&self.all.primary, &self.change.after, FIELD_MANAGER);
        if !managers.is_empty() {
            page.line(format_args!("managers of the changed fields: {}", managers.join(", ")));
            page.line("If one of them applies its fields again, as a GitOps controller does, it sets them to its own values: change its source too.");
        }
        Ok(page)
    }

    /// Sends the change, and returns the message about it.
    ///
    /// # Errors
    /// If somebody has changed the primary since, or the API server refuses the request.
    async fn send(&self, client: &ApiClient, dry_run: DryRun) -> anyhow::Result<String> {
        let (title, target) = (self.all.title(), self.target());
        if self.change.operations.is_empty() {
            return Ok(format!("{title} is as in {target} already"));
        }
        // The server answers 409 if this is not the present version.
        let version = &self.all.primary["metadata"]["resourceVersion"];
        let mut operations =
            vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})];
        operations.extend(self.change.operations.iter().cloned());
        let (kind, key) = (&self.all.kind, &self.all.key);
        let sent = client.json_patch(kind, key, FIELD_MANAGER, &operations, dry_run).await;
        match sent {
            Ok(()) if dry_run == DryRun::Yes => {
                Ok(format!("{title} would return to {target} (dry run)"))
            }
            Ok(()) => Ok(format!("{title} returned to {target}")),
            Err(error @ ApiError::Conflict { .. }) => Err(error).with_context(|| {
                format!("somebody changed {title} meanwhile; run the command again")
            }),
            Err(error) => Err(of_user(error)),
        }
    }

    /// The command line that returns the primary to the revision.
    ///
    /// # Errors
    /// If an argument has a NUL character.
    fn command_line(&self, named: PrimaryName<'_>, kube: &KubeArguments) -> anyhow::Result<String> {
        let (flags, number) = (kube.flags(), self.revision.number.to_string());
        let primary = [named.kind, named.name, "--namespace", named.namespace];
        let words = ["innkeeper", "undo"]
            .into_iter()
            .chain(primary)
            .chain(flags.iter().map(String::as_str))
            .chain(["--to-revision", &number]);
        Ok(shlex::try_join(words)?)
    }

    fn target(&self) -> String {
        format!("revision {} ({})", self.revision.number, self.revision.name)
    }
}

/// The command line that shows a revision.
///
/// # Errors
/// If an argument has a NUL character.
fn shown_by(all: &RevisionList, revision: &StoredRevision) -> anyhow::Result<String> {
    let namespace = all.key.namespace();
    let kubectl = ["kubectl", "get", "controllerrevision", &revision.name];
    Ok(shlex::try_join(kubectl.into_iter().chain(["-n", namespace, "-o", "yaml"]))?)
}

/// The revision with a number.
fn of_number(all: &RevisionList, number: i64) -> anyhow::Result<&StoredRevision> {
    let has_number = |revision: &&StoredRevision| revision.number == number;
    let found: Vec<_> = all.revisions.iter().filter(has_number).collect();
    if let [one, other, ..] = found.as_slice() {
        // The host gives a number once.
        bail!(
            "several ControllerRevisions of {} have the number {number} ({}, {}): the host has not written all of them; look at both, and delete the wrong one",
            all.title(),
            one.name,
            other.name
        );
    }
    if let Some(found) = found.first() {
        return Ok(found);
    }
    if let Some(foreign) = all.foreign.iter().find(has_number) {
        bail!(
            "revision {number} ({}) is of another object: the uid of its controller is not that of {}; give a revision of `innkeeper history`",
            foreign.name,
            all.title()
        );
    }
    let numbers: Vec<_> = all.revisions.iter().map(|one| one.number.to_string()).collect();
    let stored = if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") };
    bail!("{} has no revision {number}; stored revisions: {stored}", all.title())
}

/// The newest revision that differs from the present primary, and that undo can write.
fn newest_other(all: &RevisionList) -> anyhow::Result<&StoredRevision> {
    let is_other = |revision: &&StoredRevision| {
        all.other_version(revision).is_none()
            && !revision.change_of(&all.primary).operations.is_empty()
    };
    all.revisions.iter().find(is_other).with_context(|| {
        let of_other_version = all.revisions.iter().any(|one| all.other_version(one).is_some());
        let version = if of_other_version { &*format!(" of {}", all.kind.api_version) } else { "" };
        format!(
            "{} has no stored revision{version} that differs from its present state",
            all.title()
        )
    })
}

#[cfg(test)]
mod tests;
