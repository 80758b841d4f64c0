//! `innkeeper history`: lists the stored revisions of a primary.

use innkeeper_cluster::ApiClient;
use innkeeper_core::diff;
use jiff::Timestamp;

use crate::out::{self, Page};
use crate::primary_revisions::{PrimaryArguments, PrimaryName, RevisionList, StoredRevision};

/// How many fields a line names.
const FIELDS_MAX: usize = 3;

/// Arguments of `innkeeper history`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    primary: PrimaryArguments,
}

/// Runs the command.
///
/// # Errors
/// If the primary has no stored revisions, or the API server refuses a request.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.primary.connect().await?;
        let named = arguments.primary.named(&cluster);
        out::page(&history(&cluster.host(), named, cluster.env().now()).await?)
    })
}

async fn history(
    client: &ApiClient,
    named: PrimaryName<'_>,
    now: Timestamp,
) -> anyhow::Result<Page> {
    let all = RevisionList::read(client, named).await?;
    let mut rows = vec![["REVISION", "AGE", "NAME", "DIFFERS FROM PRESENT IN"].map(str::to_owned)];
    rows.extend(all.revisions.iter().map(|revision| {
        [
            revision.number.to_string(),
            revision.created.map_or_else(|| "<unknown>".to_owned(), |created| age(created, now)),
            revision.name.clone(),
            differences(&all, revision),
        ]
    }));
    let mut page = Page::default();
    if rows.len() == 1 {
        // All revisions are of an earlier primary.
        page.line(format_args!("{} has no stored revisions", all.title()));
    } else {
        page.table(&rows);
    }
    if let Some(note) = all.note() {
        page.line(note);
    }
    Ok(page)
}

/// The fields in which a revision differs from the present primary, or its other API version.
fn differences(all: &RevisionList, revision: &StoredRevision) -> String {
    if let Some(version) = all.other_version(revision) {
        return format!("<fields of {version}>");
    }
    let after = revision.change_of(&all.primary).after;
    let mut fields = diff::changed_fields(&all.primary, &after, FIELDS_MAX + 1);
    if fields.is_empty() {
        return "<present>".to_owned();
    }
    if fields.len() > FIELDS_MAX {
        fields.truncate(FIELDS_MAX);
        fields.push("...".to_owned());
    }
    fields.join(" ")
}

/// The time since `created` in its largest unit, as kubectl shows it.
fn age(created: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(created).as_secs().max(0);
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
