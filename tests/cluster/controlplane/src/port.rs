//! Ports for programs that do not choose one themselves.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;

/// Below those that Linux gives to outgoing connections, one of which could have taken the port
/// while a program is restarted, and below those of NodePorts.
const PORTS: Range<u16> = 10_000..30_000;
/// So many are tried.
const TRIES: usize = 1000;

/// A port of `ip` on which nothing listened a moment ago, by chance, so that programs that start at
/// the same time get different ones.
///
/// # Errors
/// If none is free.
pub fn free_address(ip: Ipv4Addr) -> io::Result<SocketAddr> {
    let mut last = io::Error::other("no port was tried");
    for _ in 0..TRIES {
        match TcpListener::bind((ip, fastrand::u16(PORTS))) {
            Ok(listener) => return listener.local_addr(),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_port_is_outside_the_range_of_outgoing_connections() {
        let address = free_address(Ipv4Addr::LOCALHOST).unwrap();
        assert!(PORTS.contains(&address.port()), "{address}");
        let held = TcpListener::bind(address).unwrap();
        assert_ne!(free_address(Ipv4Addr::LOCALHOST).unwrap(), held.local_addr().unwrap());
    }
}
