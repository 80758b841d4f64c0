//! The contract of this host, and the check whether a component fits it.

use innkeeper_contract::{RECONCILER_INTERFACE, VERSION};
use semver::Version;
use wasmtime::Engine;
use wasmtime::component::Component;
use wasmtime::component::types::ComponentItem;

use crate::error::{LoadError, text};

/// The bindings of `wit/guest.wit`.
pub(crate) mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/guest.wit",
        world: "reconciler-guest",
        imports: { default: trappable },
    });
}

/// The package of every interface of the contract.
const PACKAGE: &str = "innkeeper:guest/";

/// The interface that a guest exports, without package and version.
const RECONCILER: &str = "reconciler";

/// The interfaces that a guest may import, and their functions. A test compares them with the WIT.
const IMPORTS: &[(&str, &[&str])] =
    &[("cluster", &["get", "list"]), ("clock", &["now-ms"]), ("log", &["write"])];

/// Refuses a component that is not a guest of this host's contract, with the reason that helps its
/// author most.
///
/// # Errors
/// [`LoadError`].
pub(crate) fn check(component: &Component, engine: &Engine) -> Result<(), LoadError> {
    let ty = component.component_type();

    // A contract of another version is a better reason than one import of it.
    let exported = ty
        .exports(engine)
        .filter_map(|(name, _)| version_of(name, |interface| interface == RECONCILER))
        .map(supports)
        .fold(None, |best: Option<Result<(), LoadError>>, one| match best {
            Some(Ok(())) => best,
            _ => Some(one),
        });
    if let Some(Err(error)) = exported {
        return Err(error);
    }

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

    match exported {
        Some(_) => Ok(()),
        None => Err(LoadError::MissingExport { name: RECONCILER_INTERFACE }),
    }
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
    use wit_parser::{Resolve, WorldItem};

    use super::*;

    #[test]
    fn table_of_imports_equals_the_wit() {
        let mut resolve = Resolve::default();
        let wit = include_str!("../../../wit/guest.wit");
        let package = resolve.push_str("guest.wit", wit).unwrap();
        let world = resolve.select_world(&[package], Some("reconciler-guest")).unwrap();
        let imports: Vec<(String, Vec<String>)> = resolve.worlds[world]
            .imports
            .values()
            .map(|item| {
                let WorldItem::Interface { id, .. } = item else { panic!("{item:?}") };
                let interface = &resolve.interfaces[*id];
                (interface.name.clone().unwrap(), interface.functions.keys().cloned().collect())
            })
            .collect();
        let table: Vec<(String, Vec<String>)> = IMPORTS
            .iter()
            .map(|(interface, functions)| {
                ((*interface).to_owned(), functions.iter().map(|f| (*f).to_owned()).collect())
            })
            .collect();
        assert_eq!(table, imports);
        let package = &resolve.packages[package].name;
        assert_eq!(format!("{package}"), format!("innkeeper:guest@{VERSION}"));
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
