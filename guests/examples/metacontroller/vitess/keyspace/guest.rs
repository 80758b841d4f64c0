//! A keyspace of Vitess: one `VitessShard` per shard, updated one after the other.

use innkeeper_sdk::IntoObject as _;
use innkeeper_sdk::prelude::*;
use metacontroller_examples::vitess::children;
use metacontroller_examples::vitess::keyspace::{VitessKeyspace, VitessKeyspaceStatus};
use metacontroller_examples::vitess::shard::{Shard, VitessShard, VitessShardSpec};

/// The reconcile logic.
pub struct Guest;

impl Reconciler for Guest {
    type Primary = VitessKeyspace;

    fn describe() -> Manifest {
        Describe::reconciler_of::<VitessKeyspace>("vitess-keyspace", "1.0.0")
            .owns::<VitessShard>()
            .installs(include_str!("crd.json"))
            .manifest()
    }

    fn reconcile(_context: &Context, observed: &Observed<VitessKeyspace>) -> Outcome {
        let keyspace = observed.primary();
        let (shards, ready_shards) = children::names::<VitessShard>(observed);
        let specs = &keyspace.spec.keyspace.shards;
        if specs.iter().any(|shard| shard.name().is_empty()) {
            let message = "a shard in spec.shards has no name and no keyRange; set one of them";
            return Outcome::refused("InvalidShard", message);
        }
        let unready = children::missing("shard", specs.iter().map(Shard::name), &ready_shards);
        let desired = specs.iter().map(|shard| of(keyspace, shard).in_update_group("shards"));
        Desired::new()
            .update_group(children::one_by_one("shards"))
            .objects(desired)
            .status(&VitessKeyspaceStatus { shards, ready_shards })
            .condition(children::ready_unless(&unready))
            .complete()
    }
}

/// Returns the child for a shard.
fn of(VitessKeyspace { metadata, spec }: &VitessKeyspace, shard: &Shard) -> VitessShard {
    let name = shard.object_name();
    let metadata = Metadata::named(format!("{}-{name}", metadata.name));
    let spec = VitessShardSpec {
        inherited: spec.inherited.with_label("vitess.io/shard", &name),
        shard: Shard { name: Some(shard.name()), key_range: shard.key_range.clone() },
        cell: spec.cell.clone(),
        keyspace: spec.keyspace.name.clone(),
        tablets: spec.keyspace.tablets.clone(),
    };
    let labels = spec.inherited.labels().clone();
    VitessShard { metadata, spec }.labels(&labels)
}

innkeeper_sdk::export!(Guest);
