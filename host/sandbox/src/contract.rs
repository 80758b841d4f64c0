//! The contract of this host, and the check whether a component fits it.

use innkeeper_contract::VERSION;
use semver::Version;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::{self, ComponentItem};

use crate::error::{LoadError, text};

/// The bindings of `wit/guest.wit`. All worlds import the same interfaces, which the state of a
/// call implements once.
pub(crate) mod bindings {
    /// The world of a guest that exports `reconciler`.
    pub(crate) mod reconciler {
        wasmtime::component::bindgen!({
            path: "../../wit/guest.wit",
            world: "reconciler-guest",
            imports: { default: trappable },
        });
    }

    /// The world of a guest that exports `policy`.
    pub(crate) mod policy {
        wasmtime::component::bindgen!({
            path: "../../wit/guest.wit",
            world: "policy-guest",
            with: {
                "innkeeper:guest/cluster": super::reconciler::innkeeper::guest::cluster,
                "innkeeper:guest/clock": super::reconciler::innkeeper::guest::clock,
                "innkeeper:guest/log": super::reconciler::innkeeper::guest::log,
            },
        });
    }
}

/// The package of every interface of the contract.
const PACKAGE: &str = "innkeeper:guest/";

/// The interfaces that a guest may export, without package and version.
const RECONCILER: &str = "reconciler";
const POLICY: &str = "policy";

/// The exports of a guest, of which it has at least one, as a message names them.
const EITHER_INTERFACE: &str = "innkeeper:guest/reconciler@0.1.0 or innkeeper:guest/policy@0.1.0";

/// Which interfaces of the contract a component exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exported {
    pub(crate) reconciler: bool,
    pub(crate) policy: bool,
}

/// The interfaces that a guest may import, and their functions. A test compares them with the WIT.
const IMPORTS: &[(&str, &[&str])] =
    &[("cluster", &["get", "list"]), ("clock", &["now-ms"]), ("log", &["write"])];

/// Refuses a component that is not a guest of this host's contract, with the reason that helps its
/// author most. Returns which interfaces it exports: at least one.
///
/// # Errors
/// [`LoadError`].
pub(crate) fn check(component: &Component, engine: &Engine) -> Result<Exported, LoadError> {
    let ty = component.component_type();

    // A contract of another version is a better reason than one import of it.
    let exported = Exported {
        reconciler: exports(&ty, engine, RECONCILER)?,
        policy: exports(&ty, engine, POLICY)?,
    };

    for (name, item) in ty.imports(engine) {
        let unknown = || LoadError::UnknownImport { name: text(name) };
        let functions = name
            .strip_prefix(PACKAGE)
            .map(|rest| rest.split_once('@').map_or(rest, |(interface, _)| interface))
            .and_then(|interface| IMPORTS.iter().find(|(known, _)| *known == interface))
            .map(|(_, functions)| *functions)
            .ok_or_else(unknown)?;
        version_of(name, |_| true).map_or(Err(unknown()), supports)?;
        let ComponentItem::ComponentInstance(instance) = &item.ty else {
            return Err(unknown());
        };
        for (function, item) in instance.exports(engine) {
            if matches!(item.ty, ComponentItem::ComponentFunc(_)) && !functions.contains(&function)
            {
                return Err(LoadError::UnknownImport { name: text(format!("{name}#{function}")) });
            }
        }
    }

    if exported.reconciler || exported.policy { Ok(exported) } else { Err(missing_export()) }
}

/// The error of a component that exports no interface of the contract.
pub(crate) fn missing_export() -> LoadError {
    LoadError::MissingExport { name: EITHER_INTERFACE }
}

/// Whether a component exports an interface of the contract in a version that this host supports.
///
/// # Errors
/// [`LoadError::WrongContract`] if the component exports it in other versions only.
fn exports(ty: &types::Component, engine: &Engine, interface: &str) -> Result<bool, LoadError> {
    let mut found = Ok(false);
    for (name, _) in ty.exports(engine) {
        match version_of(name, |one| one == interface).map(supports) {
            Some(Ok(())) => return Ok(true),
            Some(Err(error)) => found = Err(error),
            None => {}
        }
    }
    found
}

/// The version in the name of an interface of the contract that `wanted` accepts; empty if the name
/// has none.
fn version_of(name: &str, wanted: impl Fn(&str) -> bool) -> Option<&str> {
    let (interface, version) =
        name.strip_prefix(PACKAGE).map(|rest| rest.split_once('@').unwrap_or((rest, "")))?;
    wanted(interface).then_some(version)
}

/// Checks that this host supports a version of the contract: the same one, or one that differs only
/// in compatible additions (the rule by which wasmtime links).
///
/// # Errors
/// [`LoadError::WrongContract`].
fn supports(found: &str) -> Result<(), LoadError> {
    let compatible = match (Version::parse(found), Version::parse(VERSION)) {
        (Ok(found), Ok(ours)) if found.pre.is_empty() && ours.pre.is_empty() => {
            match (ours.major, ours.minor) {
                (0, 0) => found == ours,
                (0, minor) => (found.major, found.minor) == (0, minor),
                (major, _) => found.major == major,
            }
        }
        (Ok(found), Ok(ours)) => found == ours,
        _ => false,
    };
    if compatible {
        return Ok(());
    }
    let found = if found.is_empty() { "(no version)" } else { found };
    Err(LoadError::WrongContract { found: text(found), wanted: VERSION })
}

#[cfg(test)]
mod tests {
    use innkeeper_contract::{POLICY_INTERFACE, RECONCILER_INTERFACE};
    use wit_parser::{Resolve, WorldItem};

    use super::*;

    #[test]
    fn table_of_imports_equals_every_world_of_the_wit() {
        let mut resolve = Resolve::default();
        let wit = include_str!("../../../wit/guest.wit");
        let package = resolve.push_str("guest.wit", wit).unwrap();
        let table: Vec<(String, Vec<String>)> = IMPORTS
            .iter()
            .map(|(interface, functions)| {
                ((*interface).to_owned(), functions.iter().map(|f| (*f).to_owned()).collect())
            })
            .collect();
        for world in ["reconciler-guest", "policy-guest", "reconciler-policy-guest"] {
            let id = resolve.select_world(&[package], Some(world)).unwrap();
            let imports: Vec<(String, Vec<String>)> = resolve.worlds[id]
                .imports
                .values()
                .map(|item| {
                    let WorldItem::Interface { id, .. } = item else { panic!("{item:?}") };
                    let interface = &resolve.interfaces[*id];
                    (interface.name.clone().unwrap(), interface.functions.keys().cloned().collect())
                })
                .collect();
            assert_eq!(table, imports, "{world}");
        }
        let package = &resolve.packages[package].name;
        assert_eq!(format!("{package}"), format!("innkeeper:guest@{VERSION}"));
    }

    #[test]
    fn message_of_a_missing_export_names_both_interfaces() {
        assert_eq!(EITHER_INTERFACE, format!("{RECONCILER_INTERFACE} or {POLICY_INTERFACE}"));
    }

    #[test]
    fn versions_with_compatible_additions_are_supported() {
        for found in ["0.1.0", "0.1.9"] {
            assert_eq!(supports(found), Ok(()), "{found}");
        }
        for found in ["", "0.0.1", "0.2.0", "1.0.0", "0.1.0-rc.1", "one"] {
            assert_eq!(supports(found).unwrap_err().reason(), "WrongContract", "{found}");
        }
    }
}
