//! No file of a crate imports another one that imports it, also over others.

mod graph;
mod module;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Deserialize;

use self::graph::Graph;
use self::module::Modules;
use super::exceptions::{Found, Rule, Violations};
use crate::command::root;
use crate::metadata::metadata;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

/// A library, program, test or bench of a package.
#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

/// Adds the circles of all packages of both workspaces, by the package's folder.
///
/// # Errors
/// If a file cannot be read or parsed.
pub(super) fn add_to(found: &mut Found) -> Result<()> {
    for workspace in [root(), root().join("guests")] {
        for package in metadata::<Metadata>(&workspace, &["--no-deps"])?.packages {
            let folder = package.manifest_path.parent().unwrap_or(Path::new(""));
            let mut violations = Violations::default();
            for target in &package.targets {
                let graph = Modules::read(&target.src_path, folder)?.graph();
                let here = in_circles(&graph);
                violations.count += here.count;
                violations.details.extend(here.details);
            }
            let folder = folder.strip_prefix(root()).unwrap_or(folder);
            found.add(Rule::Circles, &folder.display().to_string(), violations);
        }
    }
    Ok(())
}

/// How many files are in a circle, and the shortest circle of each.
fn in_circles(graph: &Graph) -> Violations {
    let mut circles = BTreeSet::new();
    let mut count = 0;
    for file in graph.files() {
        if let Some(mut circle) = graph.circle(file) {
            count += 1;
            // The same circle from another of its files is the same.
            let least = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or_default();
            circle.rotate_left(least);
            circles.insert(circle);
        }
    }
    let shown = |circle: &Vec<&str>| {
        let first = circle.first().copied().unwrap_or_default();
        format!("{} -> {first}", circle.join(" -> "))
    };
    Violations { count, details: circles.iter().map(shown).collect() }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The circles of a crate of these files.
    fn circles(files: &[(&str, &str)]) -> Violations {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let modules = Modules::read(&folder.path().join("lib.rs"), folder.path()).unwrap();
        in_circles(&modules.graph())
    }

    fn details(files: &[(&str, &str)]) -> Vec<String> {
        circles(files).details
    }

    #[test]
    fn circle_over_three_files_is_found_and_shown_once() {
        let found = circles(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use super::c::C; pub struct B;"),
            ("c.rs", "fn c() { let _ = crate::a::A; } pub struct C;"),
        ]);
        assert_eq!(found.count, 3);
        assert_eq!(found.details, ["a.rs -> b.rs -> c.rs -> a.rs"]);
    }

    #[test]
    fn imports_in_one_direction_and_re_exports_are_no_circle() {
        let lib = "mod a; mod b; pub use a::A; pub(crate) use self::b::B;";
        let a = "use super::b::B; use crate::B as Other; pub struct A;";
        assert_eq!(details(&[("lib.rs", lib), ("a.rs", a), ("b.rs", "pub struct B;")]), [""; 0]);
    }

    #[test]
    fn circle_over_a_re_export_is_found() {
        let lib = "mod a; mod b; pub use a::*; pub use b::B;";
        let a = "use crate::B; pub struct A;";
        let b = "use crate::A; pub struct B;";
        let found = details(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(found, ["a.rs -> b.rs -> a.rs"]);
    }

    #[test]
    fn module_and_its_child_that_use_each_other_are_a_circle() {
        let lib = "mod a; use a::A; pub struct B;";
        let found = details(&[("lib.rs", lib), ("a.rs", "use super::B; pub struct A;")]);
        assert_eq!(found, ["a.rs -> lib.rs -> a.rs"]);
    }

    #[test]
    fn imports_of_tests_do_not_count() {
        let a = "#[cfg(test)] mod tests { use crate::b::B; } pub struct A;";
        let b = "use crate::a::A; #[cfg(test)] use crate::a; pub struct B;";
        assert_eq!(details(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]), [""; 0]);
    }

    #[test]
    fn modules_in_folders_and_blocks_are_followed() {
        let found = details(&[
            ("lib.rs", "mod a { pub mod inner; } mod b;"),
            ("a/inner.rs", "use super::super::b::deep::B; pub struct A;"),
            ("b/mod.rs", "pub mod deep;"),
            ("b/deep.rs", "use crate::a::inner::{self, A}; pub struct B;"),
        ]);
        assert_eq!(found, ["a/inner.rs -> b/deep.rs -> a/inner.rs"]);
    }
}
