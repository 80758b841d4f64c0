//! A tablet: a database of a shard, in a pod with a volume.

use md5::{Digest as _, Md5};

use super::shard::VitessShardSpec;
use super::tablets::{Pool, Tablets};

/// A tablet.
pub struct Tablet {
    /// Its type in Vitess.
    pub type_: &'static str,
    /// Number of the tablet, unique in the cluster.
    pub uid: u32,
    /// The number with ten digits.
    pub uid_text: String,
    /// Name of the tablet in Vitess.
    pub alias: String,
    /// Name of the Service that gives its pod a host name.
    pub subdomain: String,
    /// Name of its pod and of its claim.
    pub name: String,
    /// What its pool says, with the defaults.
    pub pool: Pool,
}

impl Tablet {
    /// Returns the tablets of a shard in the order of updates: those that can become the master
    /// last.
    pub fn all(spec: &VitessShardSpec) -> Vec<Self> {
        let Tablets { defaults, master_eligible, batch } = &spec.tablets;
        let pools = [("rdonly", batch), ("replica", master_eligible)];
        let pools = pools.into_iter().filter_map(|(type_, pool)| Some((type_, pool.as_ref()?)));
        pools
            .flat_map(|(type_, pool)| {
                let pool = pool.clone().or(defaults);
                let replicas = pool.replicas.unwrap_or(1);
                (0..replicas).map(move |index| Self::new(spec, type_, index, pool.clone()))
            })
            .collect()
    }

    fn new(spec: &VitessShardSpec, type_: &'static str, index: u32, pool: Pool) -> Self {
        let (cluster, cell) = (&spec.inherited.cluster, &spec.cell);
        let uid = uid(&[cell, &spec.keyspace, &spec.shard.name(), type_], index);
        let uid_text = format!("{uid:010}");
        let alias = format!("{cell}-{uid_text}");
        Self {
            type_,
            uid,
            subdomain: format!("{cluster}-vttablet-{cell}"),
            name: format!("{cluster}-vttablet-{alias}"),
            uid_text,
            alias,
            pool,
        }
    }
}

/// Returns the number of a tablet: a hash of where it is, and two digits of its index.
pub fn uid(place: &[&str; 4], index: u32) -> u32 {
    let digest = Md5::digest(place.join("/"));
    let hash = digest.iter().take(3).fold(0, |hash, byte| hash << 8 | u32::from(*byte));
    hash * 100 + index
}
