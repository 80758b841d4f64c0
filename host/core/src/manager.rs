//! The field managers of the host.
//!
//! An apply is the complete intent of its manager for a resource or subresource: the server removes
//! fields that the manager applied before and omits now. So each manager has one purpose.

use std::fmt;

/// Kubernetes' limit on the name of a field manager, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The longest name of a module, in bytes, so that [`Manager::Merge`] fits into [`NAME_BYTES_MAX`].
pub const MODULE_NAME_BYTES_MAX: usize = 63;

/// The manager of statuses and CustomResourceDefinitions.
pub const HOST: &str = "innkeeper";

/// The manager of ConfigMaps and sources of Modules that `innkeeper push` writes.
pub const PUSH: &str = "innkeeper/push";

/// The manager of approvals and rejections, which `innkeeper modules` writes.
pub const APPROVAL: &str = "innkeeper/word";

/// The suffix of the name of a [`Manager::Merge`].
const MERGE_SUFFIX: &str = "/merge";

/// A field manager of the host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manager {
    /// Statuses and CustomResourceDefinitions: `innkeeper`.
    Host,
    /// Objects that a module makes for one primary: `innkeeper/<module>/<uid of the primary>`.
    Primary {
        /// The module's name.
        module: String,
        /// The primary's uid.
        uid: String,
    },
    /// Fields that a module merges into objects of others for one primary: `innkeeper/<module>/<uid
    /// of the primary>/merge`. It differs from [`Manager::Primary`] so that the host never takes
    /// such an object for its own and deletes it.
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
    /// The command `innkeeper push`: `innkeeper/push`.
    Push,
    /// Approvals and rejections of a module's revisions: `innkeeper/word`.
    Approval,
}

impl Manager {
    /// Returns the manager of objects that a module makes for one primary.
    pub fn primary(module: impl Into<String>, uid: impl Into<String>) -> Self {
        Self::Primary { module: module.into(), uid: uid.into() }
    }

    /// Returns the manager of fields that a module merges for one primary.
    pub fn merge(module: impl Into<String>, uid: impl Into<String>) -> Self {
        Self::Merge { module: module.into(), uid: uid.into() }
    }

    /// The uid of the primary for which the manager writes, if it writes for one.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Primary { uid, .. } | Self::Merge { uid, .. } => Some(uid),
            Self::Host | Self::Finalizer { .. } | Self::Push | Self::Approval => None,
        }
    }

    /// Parses the name of a manager; `None` if it is not one of the host.
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

    /// Whether a name belongs to the host, also if [`Manager::parse`] does not know it.
    pub fn is_of_host(name: &str) -> bool {
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
    fn name_is_parsed_as_the_manager_that_wrote_it() {
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
    fn name_of_another_client_is_refused() {
        for name in ["kubectl", "innkeepers", "inn/keeper/x", ""] {
            assert_eq!(Manager::parse(name), None, "{name}");
            assert!(!Manager::is_of_host(name), "{name}");
        }
    }

    #[test]
    fn name_fits_with_the_longest_module_name() {
        let module = "m".repeat(MODULE_NAME_BYTES_MAX);
        let name = Manager::merge(module, "1f0c0c5e-7a4b-4d0a-9c6e-1d2f3a4b5c6d").to_string();
        assert!(name.len() <= NAME_BYTES_MAX);
    }
}
