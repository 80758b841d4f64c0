//! Tablets: databases of a shard, each in a pod with a volume.

use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flags::Flags;
use super::shard::VitessShardSpec;

/// The tablets of a shard.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Tablets {
    /// What the other pools leave out.
    #[serde(default)]
    pub defaults: Pool,
    /// Tablets that can become the master.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master_eligible: Option<Pool>,
    /// Tablets for queries that only read and may take long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Pool>,
}

/// Tablets of one type.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Pool {
    /// Number of tablets; 1 if left out here and in the defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(not(target_arch = "wasm32"), schemars(range(max = 100)))]
    pub replicas: Option<u32>,
    /// Image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Spec of the claims, as Kubernetes documents it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim: Option<Value>,
    /// The container of Vitess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vttablet: Option<Process>,
    /// The container of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mysql: Option<Process>,
}

/// A container of a tablet.
#[derive(Clone, Default, Deserialize, Serialize)]
#[cfg_attr(not(target_arch = "wasm32"), derive(schemars::JsonSchema))]
pub struct Process {
    /// Compute resources, as of a container.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub resources: Value,
    /// Further flags.
    #[serde(default)]
    pub flags: Flags,
}

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

impl Tablets {
    /// Returns the tablets of a shard in the order of updates: those that can become the master
    /// last.
    pub fn of(spec: &VitessShardSpec) -> Vec<Tablet> {
        let Self { defaults, master_eligible, batch } = &spec.tablets;
        let pools = [("rdonly", batch), ("replica", master_eligible)];
        let pools = pools.into_iter().filter_map(|(type_, pool)| Some((type_, pool.as_ref()?)));
        pools
            .flat_map(|(type_, pool)| {
                let pool = pool.clone().or(defaults);
                let replicas = pool.replicas.unwrap_or(1);
                (0..replicas).map(move |index| Tablet::new(spec, type_, index, pool.clone()))
            })
            .collect()
    }
}

impl Pool {
    fn or(self, defaults: &Self) -> Self {
        let defaults = defaults.clone();
        Self {
            replicas: self.replicas.or(defaults.replicas),
            image: self.image.or(defaults.image),
            volume_claim: self.volume_claim.or(defaults.volume_claim),
            vttablet: self.vttablet.or(defaults.vttablet),
            mysql: self.mysql.or(defaults.mysql),
        }
    }
}

impl Tablet {
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
