//! The controller of default accounts: each namespace has the ServiceAccount `default`.

use serde_json::json;

use crate::controllers::client;
use crate::controllers::client::{ACCOUNTS, Client, NAMESPACES};
use crate::state::cluster::Cluster;
use crate::types::object::is_terminating;
use crate::types::object_key::Key;

const CLIENT: Client =
    Client::controller("system:serviceaccount:kube-system:service-account-controller");

/// Reconciles one namespace.
pub(crate) fn sync(cluster: &mut Cluster, key: &Key) {
    let Some(namespace) = client::get(cluster, &NAMESPACES, key) else { return };
    let account = (key.1.clone(), "default".to_owned());
    if is_terminating(&namespace) || client::get(cluster, &ACCOUNTS, &account).is_some() {
        return;
    }
    let object = json!({"metadata": {"name": account.1}});
    let _ = client::create(cluster, &CLIENT, &ACCOUNTS, &account.0, object);
}
