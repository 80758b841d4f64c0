//! A cluster on which an original operator has worked, and the user who brings the guest.

use anyhow::{Context as _, Result};
use innkeeper_cluster_tests::etcd::put_crd;
use innkeeper_cluster_tests::stage::SOON;
use innkeeper_cluster_tests::{Admin, Host, Kind, Stage, UserFolder};
use serde_json::{Value, json};

use crate::readme;

/// The stage, a host without modules, and the commands of the README.
pub(crate) struct Takeover {
    pub(crate) stage: Stage,
    _host: Host,
    user: UserFolder,
    blocks: Vec<String>,
}

impl Takeover {
    /// With these definitions, as they are in etcd.
    pub(crate) async fn new(guest: &str, definitions: &[Value]) -> Result<Self> {
        let stage = Stage::new().await?;
        for definition in definitions {
            put_crd(&stage.plane, definition).await?;
            stage.admin.until_established(definition).await?;
        }
        let host = stage.host().await?;
        let (user, blocks) = (UserFolder::new()?, readme::blocks(guest)?);
        Ok(Self { stage, _host: host, user, blocks })
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

    /// Runs the commands of a block of the README's section, counted from 0.
    pub(crate) async fn run_block(&self, number: usize) -> Result<String> {
        let block = self.blocks.get(number).context("the README has fewer blocks of commands")?;
        self.user.run(&self.stage.plane, block).await
    }

    /// How many blocks of commands there are.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
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

/// The uids of objects, to see that they are the same later.
pub(crate) async fn uids(admin: &Admin, objects: &[(Kind, &str, &str)]) -> Result<Vec<Value>> {
    let mut uids = Vec::new();
    for (kind, namespace, name) in objects {
        let object = admin.must_get(*kind, namespace, name).await?;
        uids.push(object["metadata"]["uid"].clone());
    }
    Ok(uids)
}
