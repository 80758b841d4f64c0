//! The identity of a module's requests: its ServiceAccount, or the host's own, where a Module of a
//! folder names none.

use innkeeper_cluster::{Account, ApiClient, Cluster, Revocation};

/// Makes a client that sends as a module's account until its revocation.
pub fn client(cluster: &Cluster, account: Option<&Account>, revocation: &Revocation) -> ApiClient {
    match account {
        Some(account) => cluster.as_account_until(account, revocation),
        None => cluster.host().for_module(),
    }
}

/// Makes the client that fills the caches of a module. Modules of one account share its caches, so
/// that the revocation of one module closes its view only.
pub fn cache_reader(cluster: &Cluster, account: Option<&Account>) -> ApiClient {
    client(cluster, account, &Revocation::default())
}
