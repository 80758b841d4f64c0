//! Which crate may depend on which, and what every crate must declare.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use crate::command::root;
use crate::metadata::metadata;

/// Each of our crates with those of ours that it may use. The contract may be used by all.
/// ARCHITECTURE.md explains the arrow.
const ARROW: [(&str, &[&str]); 28] = [
    ("innkeeper-contract", &[]),
    ("innkeeper-core", &[]),
    // Neither the sandbox nor a client of the API server: it only reads, answers and derives.
    ("innkeeper-admission", &["innkeeper-core"]),
    // Its bench runs the same guest natively; its tests make guests of their own.
    ("innkeeper-sandbox", &["innkeeper-core", "bench-guest", "innkeeper-tiny-guests"]),
    ("innkeeper-cluster", &["innkeeper-core"]),
    ("innkeeper-modules", &["innkeeper-sandbox", "innkeeper-core"]),
    (
        "innkeeper-operator",
        &[
            "innkeeper-modules",
            "innkeeper-cluster",
            "innkeeper-sandbox",
            "innkeeper-core",
            // It reviews requests; the server that receives them knows no modules.
            "innkeeper-admission",
            // Its tests run it on the simulator, with guests of their own.
            "innkeeper-lab",
            "innkeeper-simulator",
            "innkeeper-tiny-guests",
        ],
    ),
    ("innkeeper-toolchain", &[]),
    // None of ours: it must not share their mistakes.
    ("innkeeper-simulator", &[]),
    ("innkeeper-simulator-server", &["innkeeper-simulator"]),
    // Its tests inject faults between a client and the simulator.
    ("innkeeper-faults", &["innkeeper-simulator"]),
    (
        "innkeeper-check",
        &[
            "innkeeper-lab",
            "innkeeper-simulator",
            "innkeeper-faults",
            "innkeeper-cluster",
            "innkeeper-core",
            // It calls guests without a host, and plans as the host does.
            "innkeeper-operator",
            "innkeeper-sandbox",
        ],
    ),
    (
        "innkeeper-lab",
        &[
            "innkeeper-simulator",
            "innkeeper-operator",
            "innkeeper-cluster",
            "innkeeper-sandbox",
            // It carries the requests of the simulator to the policies of the operator.
            "innkeeper-admission",
            "innkeeper-tiny-guests",
        ],
    ),
    ("innkeeper-differential-tests", &["innkeeper-controlplane", "innkeeper-simulator"]),
    (
        "innkeeper-kubectl-tests",
        &["innkeeper-controlplane", "innkeeper-simulator", "innkeeper-simulator-server"],
    ),
    (
        "innkeeper-conformance",
        &["innkeeper-controlplane", "innkeeper-simulator", "innkeeper-simulator-server"],
    ),
    (
        "innkeeper-cli",
        &[
            "innkeeper-simulator",
            "innkeeper-simulator-server",
            "innkeeper-toolchain",
            "innkeeper-check",
            // It serves a simulated cluster with faults.
            "innkeeper-faults",
            "innkeeper-lab",
            "innkeeper-operator",
            "innkeeper-modules",
            "innkeeper-cluster",
            "innkeeper-sandbox",
            "innkeeper-core",
            // It reviews the objects of files as the host reviews requests.
            "innkeeper-admission",
            // Its tests make manifests with it.
            "innkeeper-fuzz-tests",
            // Its tests make guests of their own.
            "innkeeper-tiny-guests",
        ],
    ),
    ("innkeeper-controlplane", &[]),
    ("innkeeper-images", &[]),
    ("innkeeper-node", &["innkeeper-controlplane", "innkeeper-images"]),
    // The tests see the host from outside, as a program; core is for recording fixtures.
    (
        "innkeeper-cluster-tests",
        &[
            "innkeeper-controlplane",
            "innkeeper-node",
            "innkeeper-images",
            "innkeeper-core",
            "innkeeper-tiny-guests",
            "innkeeper-toolchain",
            // Its controllers are compared with the real ones.
            "innkeeper-simulator",
        ],
    ),
    ("innkeeper-tiny-guests", &[]),
    // It sees the host from outside, as a program.
    ("innkeeper-admission-load", &["innkeeper-controlplane"]),
    (
        "innkeeper-loop-tests",
        &["innkeeper-lab", "innkeeper-simulator", "innkeeper-cluster", "innkeeper-core"],
    ),
    (
        "innkeeper-hostile-tests",
        &["innkeeper-lab", "innkeeper-modules", "innkeeper-simulator", "innkeeper-tiny-guests"],
    ),
    (
        "innkeeper-fuzz-tests",
        &[
            "innkeeper-admission",
            // It reads cases of laws.
            "innkeeper-check",
            "innkeeper-core",
            "innkeeper-cluster",
            "innkeeper-faults",
            // It reads the files of test cases.
            "innkeeper-lab",
            "innkeeper-modules",
            // It loads changed guests.
            "innkeeper-sandbox",
            "innkeeper-simulator",
            "innkeeper-tiny-guests",
        ],
    ),
    // Small, so that it answers soon on a fresh machine.
    (
        "xtask",
        &["innkeeper-controlplane", "innkeeper-node", "innkeeper-images", "innkeeper-toolchain"],
    ),
    // guests/
    ("innkeeper-sdk", &[]),
];

/// Who may use the Kubernetes client.
const KUBE: [&str; 3] = ["innkeeper-cluster", "innkeeper-cluster-tests", "innkeeper-loop-tests"];

/// Who may be async.
const ASYNC: [&str; 13] = [
    "innkeeper-admission",
    "innkeeper-admission-load",
    "innkeeper-check",
    "innkeeper-differential-tests",
    "innkeeper-simulator-server",
    "innkeeper-sandbox",
    "innkeeper-cluster",
    "innkeeper-operator",
    "innkeeper-faults",
    "innkeeper-lab",
    "innkeeper-cli",
    "innkeeper-cluster-tests",
    "innkeeper-loop-tests",
];

/// Those that may use the types of Kubernetes: the client's users, and guests who ask for them.
const TYPES: [&str; 5] = [
    "innkeeper-cluster",
    "innkeeper-cluster-tests",
    "innkeeper-loop-tests",
    "innkeeper-sdk",
    "typed",
];

/// Crates of others that have one home: prefix of the name, and who may use it. The first that fits
/// counts.
const HOMES: [(&str, &[&str]); 7] = [
    ("wasmtime", &["innkeeper-sandbox"]),
    ("cranelift", &["innkeeper-sandbox"]),
    // Functions that rules in CEL may call; it does not know the client.
    ("kube-cel", &["innkeeper-simulator"]),
    ("kube", &KUBE),
    ("k8s-openapi", &TYPES),
    ("tokio", &ASYNC),
    ("axum", &["innkeeper-cli"]),
];

/// The parts of `cargo metadata` that are looked at.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    license: Option<String>,
    description: Option<String>,
    rust_version: Option<String>,
    publish: Option<Vec<String>>,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; absent for the usual ones.
    kind: Option<String>,
    /// Where it lies, if it is ours.
    path: Option<String>,
}

/// What is wrong with any crate of either workspace.
///
/// # Errors
/// If cargo cannot list the packages.
pub(super) fn problems() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for folder in [root(), root().join("guests")] {
        for package in metadata::<Metadata>(&folder, &["--no-deps"])?.packages {
            problems.extend(check(&package, &fs::read_to_string(&package.manifest_path)?));
        }
    }
    Ok(problems)
}

fn check(package: &Package, manifest: &str) -> Vec<String> {
    let name = &package.name;
    let mut problems = Vec::new();
    let mut complain = |what: String| problems.push(format!("{name}: {what}"));

    if package.license.as_deref() != Some("Apache-2.0") {
        complain("Cargo.toml needs `license.workspace = true`".to_owned());
    }
    if package.description.is_none() {
        complain("Cargo.toml needs a description".to_owned());
    }
    if package.rust_version.is_none() {
        complain("Cargo.toml needs a rust-version".to_owned());
    }
    if package.publish.as_deref() != Some(&[]) {
        complain("Cargo.toml needs `publish = false`".to_owned());
    }
    if !has_workspace_lints(manifest) {
        complain("Cargo.toml needs `[lints]` with `workspace = true`".to_owned());
    }

    let known = ARROW.iter().find(|(crate_name, _)| crate_name == name);
    let is_guest = Path::new(&package.manifest_path).starts_with(root().join("guests"));
    if known.is_none() && !is_guest {
        complain("is not in the arrow of dependencies (xtask/src/tidy/arrow.rs)".to_owned());
    }
    let allowed: &[&str] = match known {
        Some((_, allowed)) => allowed,
        // A guest knows the SDK and, in tests, other guests' types; never the host.
        None => &["innkeeper-sdk"],
    };
    for dependency in &package.dependencies {
        let what = &dependency.name;
        let ours = dependency.path.is_some();
        let to_guest = dependency
            .path
            .as_ref()
            .is_some_and(|path| Path::new(path).starts_with(root().join("guests")));
        let free = what == "innkeeper-contract"
            || allowed.contains(&what.as_str())
            || (is_guest && to_guest);
        if ours && !free {
            complain(format!("must not depend on {what}: the arrow goes the other way"));
        }
        // What only tests or a build script use does not reach the artifact.
        if dependency.kind.is_none() && !ours {
            let home = HOMES.into_iter().find(|(prefix, _)| {
                what == *prefix
                    || what.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'))
            });
            if let Some((_, homes)) = home
                && !homes.contains(&name.as_str())
            {
                complain(format!("must not depend on {what}, which lives in {}", homes.join(", ")));
            }
        }
    }
    problems
}

fn has_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\n\n[lints]\nworkspace = true\n";

    fn package(name: &str, dependencies: &[(&str, Option<&str>, Option<&str>)]) -> Package {
        let dependencies = dependencies.iter().map(|(name, kind, path)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: path.map(str::to_owned),
        });
        Package {
            name: name.to_owned(),
            license: Some("Apache-2.0".to_owned()),
            description: Some("x".to_owned()),
            rust_version: Some("1.95".to_owned()),
            publish: Some(Vec::new()),
            manifest_path: "host/x/Cargo.toml".to_owned(),
            dependencies: dependencies.collect(),
        }
    }

    #[test]
    fn dependency_against_the_arrow_is_reported_also_in_tests() {
        let core = package("innkeeper-core", &[("innkeeper-cluster", Some("dev"), Some("x"))]);
        assert_eq!(
            check(&core, MANIFEST),
            ["innkeeper-core: must not depend on innkeeper-cluster: the arrow goes the other way"]
        );
        let core = package("innkeeper-core", &[("innkeeper-contract", None, Some("x"))]);
        assert!(check(&core, MANIFEST).is_empty());
    }

    #[test]
    fn crate_with_one_user_is_refused_elsewhere() {
        let cli = package("innkeeper-cli", &[("kube", None, None)]);
        assert_eq!(check(&cli, MANIFEST).len(), 1);
        let cli = package("innkeeper-cli", &[("kube-client", None, None)]);
        assert_eq!(check(&cli, MANIFEST).len(), 1);
        let cluster = package("innkeeper-cluster", &[("kube", None, None)]);
        assert!(check(&cluster, MANIFEST).is_empty());
        let operator = package("innkeeper-operator", &[("tokio", Some("dev"), None)]);
        assert!(check(&operator, MANIFEST).is_empty());
    }

    #[test]
    fn crate_is_refused_without_licence_lints_and_place_in_the_arrow() {
        let mut stranger = package("innkeeper-lodge", &[]);
        stranger.license = None;
        let problems = check(&stranger, "[package]\n");
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}
