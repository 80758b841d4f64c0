//! The name of a replica, by which its report is found.

use std::fmt;
use std::sync::Arc;

use innkeeper_core::names::is_subdomain;
use innkeeper_modules::Digest;

/// The longest name, in bytes: a Lease's name has 253, and a prefix comes before this one.
const BYTES_MAX: usize = 200;

/// How many bytes of an identity that is no name stay in the name.
const KEPT_BYTES_MAX: usize = 64;

/// How many hex digits of its digest follow them.
const DIGITS: usize = 16;

/// The name of one process of the host among all of them: a DNS subdomain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaName(Arc<str>);

impl ReplicaName {
    /// The name of the process with this identity in leader elections. Other identities get other
    /// names: a digest follows what is left of an identity that is no DNS subdomain.
    pub fn of(identity: &str) -> Self {
        if identity.len() <= BYTES_MAX && is_subdomain(identity) {
            return Self(identity.into());
        }
        let valid = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let kept: String = identity.chars().map(valid).take(KEPT_BYTES_MAX).collect();
        let digest = Digest::of(identity.as_bytes()).to_string();
        let name = format!("{}-{}", kept.trim_matches('-'), &digest[..DIGITS]);
        Self(name.trim_start_matches('-').into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReplicaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_pod_stays_and_every_other_identity_becomes_a_name_of_its_own() {
        assert_eq!(ReplicaName::of("innkeeper-7d9f-x2x4z").as_str(), "innkeeper-7d9f-x2x4z");
        let long = "a".repeat(BYTES_MAX + 1);
        let others = ["Laptop_1-0a", "laptop-1-0a.", "", "größe", "..", "a/b", &long];
        let names: Vec<ReplicaName> = others.iter().map(|one| ReplicaName::of(one)).collect();
        assert!(names[0].as_str().starts_with("laptop-1-0a-"), "{}", names[0]);
        for (at, name) in names.iter().enumerate() {
            assert!(is_subdomain(name.as_str()) && name.as_str().len() <= BYTES_MAX, "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
    }
}
