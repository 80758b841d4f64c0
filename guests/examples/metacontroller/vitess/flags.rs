//! Command lines of the programs of Vitess.

use std::collections::BTreeMap;

/// Flags of a program, by name.
pub type Flags = BTreeMap<String, String>;

/// Port on which every server shows its state.
pub const WEB_PORT: u16 = 15000;

/// Port of every server for gRPC.
pub const GRPC_PORT: u16 = 15999;

/// Returns flags from pairs of name and value.
pub fn flags<const N: usize>(pairs: [(&str, &str); N]) -> Flags {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Returns the flags of all servers of a cluster: ports, log, and the address of its topology.
pub fn of_server(cluster: &str) -> Flags {
    flags([
        ("logtostderr", "true"),
        ("port", &WEB_PORT.to_string()),
        ("grpc_port", &GRPC_PORT.to_string()),
        ("topo_implementation", "etcd2"),
        ("topo_global_root", "/vitess/global"),
        ("topo_global_server_address", &topology_address(cluster)),
    ])
}

/// Returns the address of the etcd that holds the topology of a cluster.
pub fn topology_address(cluster: &str) -> String {
    format!("http://{cluster}-global-etcd-client:2379")
}

/// Returns flags as one text, ordered by name.
pub fn format(flags: &Flags) -> String {
    let flags: Vec<_> = flags.iter().map(|(name, value)| format!("-{name}=\"{value}\"")).collect();
    flags.join(" ")
}

/// Returns the command that runs a program of Vitess.
pub fn command(program: &str, flags: &Flags) -> [String; 3] {
    let line = format!("exec /vt/bin/{program} {}", format(flags));
    ["bash".to_owned(), "-c".to_owned(), line]
}
