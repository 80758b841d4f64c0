//! A cluster on which an original operator has worked, and the user who brings the guest.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::etcd::put_crd;
use innkeeper_cluster_tests::readme::{ORIGINAL, Readme};
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Host, Kind, Stage, UserFolder};
use serde_json::{Value, json};

/// The stage, a host without modules, and the commands of the READMEs.
pub(crate) struct Takeover {
    pub(crate) stage: Stage,
    _host: Host,
    user: UserFolder,
    readmes: BTreeMap<&'static str, Readme>,
}

impl Takeover {
    /// With these definitions, as they are in etcd. Each guest has the beginnings of the blocks of
    /// commands in its README.
    pub(crate) async fn new(
        guests: &[(&'static str, &[&str])],
        definitions: &[Value],
    ) -> Result<Self> {
        let readmes =
            guests.iter().map(|(guest, blocks)| Ok((*guest, Readme::of(guest, ORIGINAL, blocks)?)));
        let readmes = readmes.collect::<Result<_>>()?;
        let stage = Stage::new().await?;
        for definition in definitions {
            put_crd(&stage.plane, definition).await?;
            stage.admin.until_established(definition).await?;
        }
        let host = stage.host().await?;
        Ok(Self { stage, _host: host, user: UserFolder::new()?, readmes })
    }

    pub(crate) fn admin(&self) -> &Admin {
        &self.stage.admin
    }

    /// A namespace that has its ServiceAccount: without it no pod can be made.
    pub(crate) async fn namespace(&self, prefix: &str) -> Result<String> {
        let namespace = self.admin().namespace(prefix).await?;
        let account = (Kind::SERVICE_ACCOUNT, &*namespace, "default");
        self.admin().until("the namespace has its account", SOON, account, |_| true).await?;
        Ok(namespace)
    }

    /// Checks that the user has removed the annotation that lets a primary adopt objects.
    pub(crate) async fn has_no_consent(&self, (kind, ns, name): (Kind, &str, &str)) -> Result<()> {
        let primary = self.admin().must_get(kind, ns, name).await?;
        assert!(primary["metadata"]["annotations"]["innkeeper.dev/adopt"].is_null(), "{primary:#}");
        Ok(())
    }

    /// Runs the commands of the block in the guest's README that begins with this text.
    pub(crate) async fn run_block(&self, guest: &str, beginning: &str) -> Result<String> {
        let readme = self.readmes.get(guest).with_context(|| format!("no README of {guest}"))?;
        self.user.run(&self.stage.plane, readme.block(beginning)?).await
    }
}

/// An object as an operator creates it that calls `SetControllerReference`.
pub(crate) fn controlled_by(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    object
}

/// An object as an Ansible operator creates it: the reference names no controller.
pub(crate) fn owned_by(mut object: Value, owner: &Value) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }]);
    object
}

/// The uids of objects, to see that they are the same later.
pub(crate) async fn uids(admin: &Admin, objects: &[(Kind, &str, &str)]) -> Result<Vec<Value>> {
    let mut uids = Vec::new();
    for (kind, namespace, name) in objects {
        let object = admin.must_get(*kind, namespace, name).await?;
        uids.push(object["metadata"]["uid"].clone());
    }
    Ok(uids)
}
