//! The cable between the host and a node: a pair of network interfaces.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::control_group::PREFIX;
use crate::packages::run;

/// So many nodes on one machine.
const MOST: u8 = 250;
/// The name of the node's end.
const INSIDE: &str = "uplink";
/// The name of both ends of a cable between two nodes.
const PEER: &str = "peer";

/// A cable; its number is no other's on this machine. It goes with the node's network namespace, at
/// a later time that the kernel chooses, or with [`cut`](Self::cut).
#[derive(Clone, Debug)]
pub(crate) struct Link {
    number: u8,
}

impl Link {
    /// Lays one to the network namespace of the process `pid`.
    pub(crate) fn lay(pid: u32) -> Result<Self> {
        for number in 0..MOST {
            let link = Self { number };
            let name = link.name();
            let output = Command::new("ip")
                .args(["link", "add", &name, "type", "veth", "peer", "name", INSIDE, "netns"])
                .arg(pid.to_string())
                .output()
                .context("running ip: install iproute2")?;
            if output.status.success() {
                link.raise(pid)?;
                return Ok(link);
            }
            let stderr = String::from_utf8_lossy(&output.stderr);
            // Making an interface is atomic: the name is the claim to the number.
            if !stderr.contains("File exists") {
                bail!("the network interface {name} cannot be made: {}", stderr.trim());
            }
        }
        bail!("{MOST} nodes run on this machine: end one with `cargo xtask cluster down`")
    }

    /// Removes it, if the kernel has not done so with the node's network namespace.
    pub(crate) fn cut(&self) -> Result<()> {
        let name = self.name();
        let removed = run(Command::new("ip").args(["link", "delete", &name]));
        if Path::new("/sys/class/net").join(&name).exists() { removed } else { Ok(()) }
    }

    fn raise(&self, pid: u32) -> Result<()> {
        let (host, node) = (format!("{}/30", self.host()), format!("{}/30", self.node()));
        let name = self.name();
        run(Command::new("ip").args(["addr", "add", &host, "dev", &name]))?;
        run(Command::new("ip").args(["link", "set", &name, "up"]))?;
        for arguments in [
            &["link", "set", "lo", "up"][..],
            &["addr", "add", &node, "dev", INSIDE],
            &["link", "set", INSIDE, "up"],
            &["route", "add", "default", "via", &self.host().to_string()],
        ] {
            run_inside(pid, arguments)?;
        }
        Ok(())
    }

    /// Lays one between two nodes, each given by a process in its network namespace, its cable to
    /// the host, and the addresses of its pods. The host forwards nothing.
    pub(crate) fn between(one: (u32, &Self, &str), other: (u32, &Self, &str)) -> Result<()> {
        let mut make = Command::new("ip");
        make.args(["link", "add", PEER, "netns", &one.0.to_string(), "type", "veth"]);
        run(make.args(["peer", "name", PEER, "netns", &other.0.to_string()]))?;
        for ((pid, own, _), (_, others, pods)) in [(one, other), (other, one)] {
            let (own, others) = (format!("{}/32", own.node()), others.node().to_string());
            run_inside(pid, &["addr", "add", &own, "dev", PEER])?;
            run_inside(pid, &["link", "set", PEER, "up"])?;
            run_inside(pid, &["route", "add", &others, "dev", PEER])?;
            run_inside(pid, &["route", "add", pods, "via", &others, "dev", PEER])?;
        }
        Ok(())
    }

    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(Self { number: name.strip_prefix(PREFIX)?.parse().ok()? })
    }

    /// The name of the host's end, and of the node's control groups.
    pub(crate) fn name(&self) -> String {
        format!("{PREFIX}{}", self.number)
    }

    /// The address of the host's end. The range is that of benchmarks of networks (RFC 2544), which
    /// nobody uses otherwise.
    pub(crate) fn host(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.number, 1)
    }

    /// The address of the node.
    pub(crate) fn node(&self) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.number, 2)
    }

    /// What the node must do in addition: pods reach the host by the node's address.
    pub(crate) fn firewall() -> String {
        format!(
            "table ip innkeeper {{\n  chain out {{\n    type nat hook postrouting priority 100;\n    \
             oifname \"{INSIDE}\" masquerade;\n  }}\n}}\n"
        )
    }
}

/// Runs ip in the network namespace of the process `pid`.
fn run_inside(pid: u32, arguments: &[&str]) -> Result<()> {
    let mut inside = Command::new("nsenter");
    inside.args(["-n", "-t", &pid.to_string(), "ip"]).args(arguments);
    run(&mut inside)
}
