//! The revisions of the template of a DaemonSet.

use serde_json::{Value, json};

use crate::controllers::client;
use crate::controllers::client::{Client, PODS, REVISIONS, Resource, owned_by};
use crate::controllers::template_hash::hash;
use crate::state::cluster::Cluster;
use crate::types::members::{number, text};
use crate::types::object::meta;

const LABEL: &str = "controller-revision-hash";

/// The hash of the revision of the current template. Creates the revision, or makes an older one
/// the newest again after a rollback.
pub(crate) fn revision_of(
    cluster: &mut Cluster,
    client: &Client,
    owner: &Value,
    resource: &Resource,
) -> String {
    let template = &owner["spec"]["template"];
    let mut kept = template.clone();
    kept["$patch"] = "replace".into();
    let revisions = client::controlled_by(cluster, owner, &REVISIONS);
    let last = revisions.iter().map(|one| number(&one["revision"])).max().unwrap_or(0);
    let known = revisions.iter().find(|one| one["data"]["spec"]["template"] == kept);
    if let Some(known) = known {
        let label = text(&known["metadata"]["labels"][LABEL]).to_owned();
        if number(&known["revision"]) < last {
            let mut revision = Value::clone(known);
            revision["revision"] = (last + 1).into();
            let _ = client::replace(cluster, client, &REVISIONS, "", revision);
        }
        return label;
    }
    let hash = hash(template, 0);
    let mut labels = template["metadata"]["labels"].clone();
    labels[LABEL] = hash.as_str().into();
    let annotations = &owner["metadata"]["annotations"];
    let revision = json!({
        "metadata": {"name": format!("{}-{hash}", meta(owner, "name")), "labels": labels,
            "annotations": annotations, "ownerReferences": owned_by(owner, resource)},
        "data": {"spec": {"template": kept}}, "revision": last + 1,
    });
    let _ = client::create(cluster, client, &REVISIONS, meta(owner, "namespace"), revision);
    hash
}

/// Deletes the oldest revisions that no Pod has, beyond the limit of the owner.
pub(crate) fn truncate(cluster: &mut Cluster, client: &Client, owner: &Value) {
    let limit = owner["spec"]["revisionHistoryLimit"].as_u64().unwrap_or(10);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let pods = client::controlled_by(cluster, owner, &PODS);
    let mut revisions = client::controlled_by(cluster, owner, &REVISIONS);
    revisions.sort_by_key(|one| number(&one["revision"]));
    revisions.pop();
    revisions.retain(|one| {
        let label = &one["metadata"]["labels"][LABEL];
        !pods.iter().any(|pod| pod["metadata"]["labels"][LABEL] == *label)
    });
    let surplus = revisions.len().saturating_sub(limit);
    for revision in revisions.into_iter().take(surplus) {
        client::delete(cluster, client, &REVISIONS, &revision, None);
    }
}
