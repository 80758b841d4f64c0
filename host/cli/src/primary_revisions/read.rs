//! Reads a primary and its stored revisions from a cluster.

use std::cmp::Reverse;
use std::time::Duration;

use anyhow::bail;
use innkeeper_cluster::{ApiClient, FoundKind};
use innkeeper_contract::{Kind, KindName};
use innkeeper_core::ObjectKey;
use serde_json::Value;

use super::{PrimaryName, RevisionList, StoredRevision, Unreadable, of_user};

/// How many ControllerRevisions the command reads at once, and their most bytes.
const PAGE_OBJECTS: u32 = 250;
const PAGE_BYTES_MAX: usize = 64 << 20;

impl RevisionList {
    /// Reads a primary and its revisions.
    ///
    /// # Errors
    /// If the primary has no stored revisions, several primaries have the name, or the API server
    /// refuses a request. A ControllerRevision that cannot be read is no error.
    pub(crate) async fn read(client: &ApiClient, named: PrimaryName<'_>) -> anyhow::Result<Self> {
        let (mut stored, unreadable) = stored_in(client, named.namespace).await?;
        stored.retain(|revision| revision.controller.name == named.name);
        stored.sort_by(|a, b| (Reverse(a.number), &a.name).cmp(&(Reverse(b.number), &b.name)));
        let kind = match kind_of(client, named, &stored).await {
            Err(error) => match unreadable.note(named.namespace) {
                Some(note) => bail!("{error:#} ({note})"),
                None => return Err(error),
            },
            Ok(kind) => kind,
        };
        let key = ObjectKey::new(named.namespace, named.name);
        let primary: Value = client.get_as(&kind, &key).await.map_err(of_user)?;
        stored.retain(|revision| is_of(&revision.controller.api_version, kind.group()));
        stored.retain(|revision| revision.controller.kind == kind.kind);
        let uid = primary["metadata"]["uid"].as_str().unwrap_or_default();
        let (revisions, foreign) =
            stored.into_iter().partition(|revision| revision.controller.uid == uid);
        Ok(Self { kind, key, primary, revisions, foreign, unreadable })
    }
}

/// The revisions that the host stored in a namespace, and what cannot be read there: every user who
/// may write ControllerRevisions writes into the same list.
async fn stored_in(
    client: &ApiClient,
    namespace: &str,
) -> anyhow::Result<(Vec<StoredRevision>, Unreadable)> {
    let kind = Kind::namespaced("apps/v1", "ControllerRevision", "controllerrevisions");
    let (mut stored, mut unreadable) = (Vec::new(), Unreadable::default());
    let mut next = String::new();
    loop {
        let page = client
            .list_raw_page(&kind, namespace, PAGE_OBJECTS, PAGE_BYTES_MAX, &next)
            .await
            .map_err(of_user)?;
        for item in page.items {
            match serde_json::from_str(item.get()) {
                Ok(value) => stored.extend(StoredRevision::read(&value)),
                Err(error) => unreadable.add(&item, &error),
            }
        }
        next = page.next;
        if next.is_empty() {
            return Ok((stored, unreadable));
        }
    }
}

/// The kind that the user means: the one of the controllers of these revisions, newest first.
async fn kind_of(
    client: &ApiClient,
    named: PrimaryName<'_>,
    stored: &[StoredRevision],
) -> anyhow::Result<Kind> {
    let PrimaryName { kind: given, namespace, name } = named;
    // Neither a kind nor a plural has a dot.
    let (word, group) =
        given.split_once('.').map_or((given, None), |(word, group)| (word, Some(group)));
    let mut found: Vec<Kind> = Vec::new();
    for revision in stored {
        let controller = &revision.controller;
        let is_known = |kind: &Kind| {
            kind.kind == controller.kind && is_of(&controller.api_version, kind.group())
        };
        if group.is_some_and(|group| !is_of(&controller.api_version, group))
            || found.iter().any(is_known)
        {
            continue;
        }
        let kind_name =
            KindName { api_version: controller.api_version.clone(), kind: controller.kind.clone() };
        let served = client.discovery().find(&kind_name, Duration::MAX).await;
        if let FoundKind::Served(kind) = served.map_err(of_user)?
            && [&kind.kind, &kind.plural].into_iter().any(|one| one.eq_ignore_ascii_case(word))
        {
            found.push(kind);
        }
    }
    match found.as_slice() {
        [kind] => Ok(kind.clone()),
        [] => bail!(
            "{given} {name} has no stored revisions in namespace {namespace}: check the kind, the name and --namespace; the host stores revisions if the guest's desired state has revisionHistory"
        ),
        several => {
            let mut kinds: Vec<_> = several.iter().map(Kind::resource).collect();
            kinds.sort();
            bail!("several kinds match {given}: give one of {}", kinds.join(", "))
        }
    }
}

/// Whether an API version is of a group.
fn is_of(api_version: &str, group: &str) -> bool {
    api_version.rsplit_once('/').map_or("", |(group, _)| group) == group
}
