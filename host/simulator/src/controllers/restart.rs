//! The restart of the API server and of the controllers after a backup of etcd was restored.

use std::sync::Arc;

use crate::apply::managed_object::ManagedObject;
use crate::controllers::client::DEFINITIONS;
use crate::controllers::custom_resource_definition;
use crate::state::backup::{BUMP, Backup};
use crate::state::cluster::Cluster;
use crate::state::store::Stored;

/// Goes back to a backup. With `bump` versions stay above all that clients have seen, and watches
/// that begin before now are answered by 410; without it versions go back.
pub(crate) fn restore(cluster: &mut Cluster, backup: &Backup, bump: bool) {
    let version =
        if bump { cluster.store.version().max(backup.version) + BUMP } else { backup.version };
    cluster.restore(backup, version);
    let definitions = cluster.store.collection(&DEFINITIONS.key());
    let definitions: Vec<Arc<ManagedObject>> =
        definitions.into_iter().flat_map(|all| all.objects.values()).map(Stored::object).collect();
    for definition in definitions {
        custom_resource_definition::serve(cluster, &definition);
    }
}
