//! `cargo xtask sbom`: what the program `innkeeper` is made of, as CycloneDX.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::command::root;
use crate::metadata::metadata;
use crate::progress::say;
use crate::supply::{Dependency, Metadata, Package};

/// The package whose program is shipped.
const SHIPPED: &str = "innkeeper-cli";

/// What the image is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Arguments of `cargo xtask sbom`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to write it
    #[arg(long, value_name = "FILE", default_value = "target/innkeeper.cdx.json")]
    output: PathBuf,
    /// For which target the program is built
    #[arg(long, value_name = "TARGET", default_value = TARGET)]
    target: String,
}

/// The checksums of a lock file.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes the document.
///
/// # Errors
/// If cargo or the lock file cannot be read, or the file cannot be written.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let document = document(&arguments.target)?;
    let path = root().join(&arguments.output);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    let count = document["components"].as_array().map_or(0, Vec::len);
    say(&format!("{}: {count} components", path.display()));
    Ok(())
}

fn document(target: &str) -> Result<Value> {
    let path = root().join("Cargo.lock");
    let lock = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let metadata: Metadata = metadata(&root(), &["--filter-platform", target])?;
    of(&metadata, &lock)
}

/// The same bytes for the same lock file: no time and nothing random.
fn of(metadata: &Metadata, lock: &str) -> Result<Value> {
    let digest = hex::encode(Sha256::digest(lock));
    let lock: Lock = toml::from_str(lock).context("Cargo.lock is not as expected")?;
    let checksums: BTreeMap<(String, String), String> = lock
        .package
        .into_iter()
        .filter_map(|one| Some(((one.name, one.version), one.checksum?)))
        .collect();
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|one| (one.id.as_str(), one)).collect();
    let uses: BTreeMap<&str, &[Dependency]> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), &*node.deps)).collect();
    let shipped = metadata.packages.iter().find(|one| one.name == SHIPPED);
    let shipped = shipped.with_context(|| format!("there is no package {SHIPPED}"))?;

    let linked = |id: &str| -> BTreeSet<&str> {
        let uses = uses.get(id).copied().unwrap_or_default();
        uses.iter().filter(|one| one.is_linked()).map(|one| one.pkg.as_str()).collect()
    };
    let mut seen = BTreeSet::from([shipped.id.as_str()]);
    let mut next = VecDeque::from([shipped.id.as_str()]);
    while let Some(id) = next.pop_front() {
        for one in linked(id) {
            // The keys live as long as the metadata, unlike what `linked` borrows from.
            let Some((id, _)) = packages.get_key_value(one) else { continue };
            if seen.insert(id) {
                next.push_back(id);
            }
        }
    }
    let reference = |id: &str| packages.get(id).map(|package| purl(package));
    let all: Vec<&Package> = seen.iter().filter_map(|id| packages.get(id).copied()).collect();
    let components = all.iter().filter(|one| one.id != shipped.id);
    let mut dependencies: Vec<Value> = all
        .iter()
        .map(|one| {
            let mut uses: Vec<String> = linked(&one.id).into_iter().filter_map(reference).collect();
            uses.sort();
            json!({ "ref": purl(one), "dependsOn": uses })
        })
        .collect();
    dependencies.sort_by_key(|one| one["ref"].to_string());
    let mut components: Vec<Value> =
        components.map(|one| component(one, "library", &checksums)).collect();
    components.sort_by_key(|one| one["bom-ref"].to_string());
    let mut program = component(shipped, "application", &checksums);
    program["name"] = json!("innkeeper");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": serial(&digest),
        "version": 1,
        "metadata": {
            "component": program,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask sbom" }] },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// A UUID (version 8, RFC 9562) made of a digest, so that the same lock file has the same one.
fn serial(digest: &str) -> String {
    let part = |from, to| digest.get(from..to).unwrap_or_default();
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

fn component(
    package: &Package,
    kind: &str,
    checksums: &BTreeMap<(String, String), String>,
) -> Value {
    let mut component = json!({
        "type": kind,
        "bom-ref": purl(package),
        "name": package.name,
        "version": package.version,
        "purl": purl(package),
        "scope": "required",
    });
    if let Some(license) = &package.license {
        // The old way to write `OR`.
        let expression = license.replace(" / ", " OR ").replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(description) = &package.description {
        component["description"] =
            json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    let key = (package.name.clone(), package.version.clone());
    if let Some(checksum) = checksums.get(&key) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if let Some(repository) =
        package.repository.as_deref().filter(|one| one.starts_with("https://"))
    {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn purl(package: &Package) -> String {
    // `+` of build metadata has a meaning in a URL.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_is_cyclonedx_and_lists_the_shipped_crates() {
        let document = document(TARGET).unwrap();
        assert_eq!(document["bomFormat"], "CycloneDX");
        assert_eq!(document["specVersion"], "1.5");
        assert_eq!(document["version"], 1);
        let serial = document["serialNumber"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap();
        let lengths: Vec<usize> = serial.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(serial.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));

        let program = &document["metadata"]["component"];
        assert_eq!(program["name"], "innkeeper");
        assert_eq!(program["type"], "application");
        let components = document["components"].as_array().unwrap();
        let mut references = BTreeSet::from([program["bom-ref"].as_str().unwrap()]);
        for component in components {
            assert_eq!(component["type"], "library");
            for member in ["bom-ref", "name", "version", "purl"] {
                assert!(component[member].as_str().is_some_and(|one| !one.is_empty()));
            }
            let reference = component["bom-ref"].as_str().unwrap();
            assert!(references.insert(reference), "{reference} is there twice");
            let expression = component["licenses"][0]["expression"].as_str().unwrap();
            let read = spdx::Expression::parse_mode(expression, spdx::ParseMode::STRICT);
            assert!(read.is_ok(), "{reference}: {expression}");
            let ours = component["name"].as_str().unwrap().starts_with("innkeeper-");
            let content = component["hashes"][0]["content"].as_str();
            assert!(ours || content.is_some_and(|one| one.len() == 64), "{reference}");
        }
        // Every component is reached, and every reference leads to one.
        let dependencies = document["dependencies"].as_array().unwrap();
        let from: BTreeSet<&str> =
            dependencies.iter().map(|one| one["ref"].as_str().unwrap()).collect();
        assert_eq!(from, references);
        for one in dependencies {
            for to in one["dependsOn"].as_array().unwrap() {
                assert!(references.contains(to.as_str().unwrap()), "{to}");
            }
        }
        let names: BTreeSet<&str> =
            components.iter().map(|one| one["name"].as_str().unwrap()).collect();
        for linked in ["wasmtime", "kube", "innkeeper-core", "rustls"] {
            assert!(names.contains(linked), "{linked} is missing");
        }
        // What only tests use is not shipped.
        for test in ["expect-test", "criterion", "vt100", "innkeeper-fuzz-tests"] {
            assert!(!names.contains(test), "{test} is not shipped");
        }
    }

    #[test]
    fn document_is_the_same_for_the_same_lock_file() {
        assert_eq!(document(TARGET).unwrap().to_string(), document(TARGET).unwrap().to_string());
    }
}
