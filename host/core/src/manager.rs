//! Field managers: under whose name a field is written.
//!
//! The same manager on the same (sub)resource means one complete intent: what it left out
//! is taken away. So one manager never serves two purposes.

use std::fmt;

/// Kubernetes' limit on the name of a field manager, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The longest name of a module, in bytes, so that [`Manager::Merge`] fits into [`NAME_BYTES_MAX`].
pub const MODULE_NAME_BYTES_MAX: usize = 63;

/// The manager of statuses and CustomResourceDefinitions.
pub const HOST: &str = "innkeeper";

/// The manager of what `innkeeper push` writes: ConfigMaps, and the source of a Module.
pub const PUSH: &str = "innkeeper/push";

/// The manager of a person's word on versions, which `innkeeper modules` writes.
pub const APPROVAL: &str = "innkeeper/word";

/// How the name of a [`Manager::Merge`] ends.
const MERGE_SUFFIX: &str = "/merge";

/// A field manager of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manager {
    /// Statuses and CustomResourceDefinitions: `innkeeper`.
    Host,
    /// What one primary made: `innkeeper/<module>/<uid of the primary>`.
    Primary {
        /// The module's name.
        module: String,
        /// The primary's uid.
        uid: String,
    },
    /// What one primary merged into an object that it did not make:
    /// `innkeeper/<module>/<uid of the primary>/merge`. Not the manager of what it made, so
    /// that what was only merged into can never be taken for its own, and deleted.
    Merge {
        /// The module's name.
        module: String,
        /// The primary's uid.
        uid: String,
    },
    /// A module's finalizer on its primaries: `innkeeper/<module>/finalizer`.
    Finalizer {
        /// The module's name.
        module: String,
    },
    /// What a person pushes with the command: `innkeeper/push`.
    Push,
    /// A person's word on a module's versions: `innkeeper/word`.
    Approval,
}

impl Manager {
    /// The manager of what a module makes for one primary.
    pub fn primary(module: impl Into<String>, uid: impl Into<String>) -> Self {
        Self::Primary { module: module.into(), uid: uid.into() }
    }

    /// The manager of what a module merges for one primary.
    pub fn merge(module: impl Into<String>, uid: impl Into<String>) -> Self {
        Self::Merge { module: module.into(), uid: uid.into() }
    }

    /// The uid of the primary for which this manager writes, if it is for one.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Primary { uid, .. } | Self::Merge { uid, .. } => Some(uid),
            Self::Host | Self::Finalizer { .. } | Self::Push | Self::Approval => None,
        }
    }

    /// Reads a manager's name; `None` if it is not one of ours.
    pub fn parse(name: &str) -> Option<Self> {
        if name == HOST {
            return Some(Self::Host);
        }
        if name == PUSH {
            return Some(Self::Push);
        }
        if name == APPROVAL {
            return Some(Self::Approval);
        }
        let (module, rest) = name.strip_prefix(HOST)?.strip_prefix('/')?.split_once('/')?;
        Some(match rest {
            "finalizer" => Self::Finalizer { module: module.to_owned() },
            rest => match rest.strip_suffix(MERGE_SUFFIX) {
                Some(uid) => Self::merge(module, uid),
                None => Self::primary(module, rest),
            },
        })
    }

    /// Whether a name is one of ours.
    pub fn is_ours(name: &str) -> bool {
        name == HOST || name.strip_prefix(HOST).is_some_and(|rest| rest.starts_with('/'))
    }
}

impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str(HOST),
            Self::Push => f.write_str(PUSH),
            Self::Approval => f.write_str(APPROVAL),
            Self::Primary { module, uid } => write!(f, "{HOST}/{module}/{uid}"),
            Self::Merge { module, uid } => write!(f, "{HOST}/{module}/{uid}{MERGE_SUFFIX}"),
            Self::Finalizer { module } => write!(f, "{HOST}/{module}/finalizer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_as_it_was_written() {
        for manager in [
            Manager::Host,
            Manager::Push,
            Manager::Approval,
            Manager::primary("podroute", "1f0c0c5e-7a4b-4d0a-9c6e-1d2f3a4b5c6d"),
            Manager::merge("podroute", "1f0c0c5e-7a4b-4d0a-9c6e-1d2f3a4b5c6d"),
            Manager::Finalizer { module: "podroute".into() },
        ] {
            assert_eq!(Manager::parse(&manager.to_string()), Some(manager));
        }
    }

    #[test]
    fn others_are_not_ours() {
        for name in ["kubectl", "innkeepers", "inn/keeper/x", ""] {
            assert_eq!(Manager::parse(name), None, "{name}");
            assert!(!Manager::is_ours(name), "{name}");
        }
    }

    #[test]
    fn the_longest_module_name_fits() {
        let module = "m".repeat(MODULE_NAME_BYTES_MAX);
        let name = Manager::merge(module, "1f0c0c5e-7a4b-4d0a-9c6e-1d2f3a4b5c6d").to_string();
        assert!(name.len() <= NAME_BYTES_MAX);
    }
}
