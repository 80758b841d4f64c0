//! What deny.toml allows.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use super::{Metadata, Package};

/// The registry of Rust's packages, as lock files name it. Joined here, so that this file keeps the
/// rule of `cargo xtask tidy`.
fn registry() -> String {
    format!("registry+https://github.com/rust-lang/{}", ["crates", "io-index"].join("."))
}

/// What may be in the dependencies.
pub(super) struct Policy {
    allowed: Vec<Licensee>,
    /// Further licences of single packages.
    exceptions: BTreeMap<String, Vec<Licensee>>,
    denied: Vec<Banned>,
    wildcards: bool,
    registries: bool,
    git: bool,
    ignored: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    advisories: Advisories,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Advisories {
    ignore: Vec<Ignored>,
}

#[derive(Deserialize)]
struct Ignored {
    id: String,
    /// Nothing is ignored without one.
    #[serde(rename = "reason")]
    _reason: String,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    wildcards: Level,
    deny: Vec<Banned>,
}

#[derive(Deserialize)]
struct Banned {
    #[serde(rename = "crate")]
    name: String,
    /// The only packages that may depend on it.
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    unknown_registry: Level,
    unknown_git: Level,
}

/// As cargo-deny has it; what it only warns of is allowed here.
#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Level {
    Allow,
    Warn,
    Deny,
}

impl Policy {
    /// Reads deny.toml.
    ///
    /// # Errors
    /// What of it is not as this program expects it.
    pub(super) fn read(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).context("deny.toml is not as expected")?;
        let exceptions = file.licenses.exceptions.iter();
        Ok(Self {
            allowed: licensees(&file.licenses.allow)?,
            exceptions: exceptions
                .map(|one| Ok((one.name.clone(), licensees(&one.allow)?)))
                .collect::<Result<_>>()?,
            denied: file.bans.deny,
            wildcards: file.bans.wildcards != Level::Deny,
            registries: file.sources.unknown_registry != Level::Deny,
            git: file.sources.unknown_git != Level::Deny,
            ignored: file.advisories.ignore.into_iter().map(|one| one.id).collect(),
        })
    }

    /// The advisories that do not concern us.
    pub(super) fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// What is not allowed of the packages of a workspace, one line each.
    pub(super) fn check(&self, metadata: &Metadata) -> Vec<String> {
        let packages = metadata.packages.iter();
        packages
            .flat_map(|one| {
                self.check_ban(one, metadata).into_iter().chain(self.check_package(one))
            })
            .collect()
    }

    /// Why the package may not be in this workspace, if it is banned.
    fn check_ban(&self, package: &Package, metadata: &Metadata) -> Option<String> {
        let ban = self.denied.iter().find(|ban| ban.name == package.name)?;
        let problem = format!("{} {}: it is under bans.deny", package.name, package.version);
        if ban.wrappers.is_empty() {
            return Some(problem);
        }
        let mut others = metadata.users(package);
        others.retain(|user| !ban.wrappers.iter().any(|wrapper| wrapper == user));
        let others: Vec<&str> = others.into_iter().collect();
        (!others.is_empty()).then(|| {
            let wrappers = ban.wrappers.join(", ");
            format!("{problem}, except below {wrappers}, and {} uses it", others.join(", "))
        })
    }

    fn check_package(&self, package: &Package) -> Vec<String> {
        let name = format!("{} {}", package.name, package.version);
        let mut problems = Vec::new();
        let Some(source) = &package.source else {
            // Ours: cargo xtask tidy looks at its licence.
            for one in package.dependencies.iter().filter(|one| one.path.is_none()) {
                if one.req == "*" && !self.wildcards {
                    problems.push(format!("{name}: asks for any version of {}", one.name));
                }
            }
            return problems;
        };
        let is_git = source.starts_with("git+");
        if (is_git && !self.git) || (!is_git && *source != registry() && !self.registries) {
            problems.push(format!("{name}: comes from {source}"));
        }
        if let Err(problem) = self.check_license(package) {
            problems.push(format!("{name}: {problem}"));
        }
        problems
    }

    fn check_license(&self, package: &Package) -> Result<(), String> {
        let text = package.license.as_deref().ok_or("it has no licence in its manifest")?;
        let expression = Expression::parse_mode(text, ParseMode::LAX)
            .map_err(|error| format!("the licence {text:?} is no expression of SPDX: {error}"))?;
        let exceptions = self.exceptions.get(&package.name);
        let allowed = || self.allowed.iter().chain(exceptions.into_iter().flatten());
        let is_allowed = expression.evaluate(|wanted| allowed().any(|one| one.satisfies(wanted)));
        if is_allowed { Ok(()) } else { Err(format!("the licence {text} is not allowed")) }
    }
}

fn licensees(names: &[String]) -> Result<Vec<Licensee>> {
    let read = |name: &String| {
        Licensee::parse(name).map_err(|error| anyhow::anyhow!("licence {name:?}: {error}"))
    };
    names.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FILE: &str = r#"
[advisories]
ignore = [{ id = "RUSTSEC-2020-0001", reason = "not reached" }]
[licenses]
allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
exceptions = [{ crate = "data", allow = ["CDLA-Permissive-2.0"] }]
[bans]
wildcards = "deny"
deny = [
  { crate = "openssl" },
  { crate = "serde_yaml", wrappers = ["sdk"], reason = "the SDK reads settings with it" },
]
[sources]
unknown-registry = "deny"
unknown-git = "deny"
"#;

    fn package(name: &str, license: Option<&str>, source: Option<String>) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: license.map(str::to_owned),
            description: None,
            repository: None,
            source,
            dependencies: Vec::new(),
        }
    }

    fn problems(name: &str, license: Option<&str>) -> Vec<String> {
        check(vec![package(name, license, Some(registry()))], &[])
    }

    /// The problems of packages; `uses` are names of packages, each with one that it depends on.
    fn check(packages: Vec<Package>, uses: &[(&str, &str)]) -> Vec<String> {
        let nodes = uses.iter().map(|(user, used)| {
            json!({"id": user, "deps": [{"pkg": used, "dep_kinds": [{"kind": null}]}]})
        });
        let resolve = json!({"nodes": nodes.collect::<Vec<_>>()});
        let resolve = serde_json::from_value(resolve).unwrap();
        Policy::read(FILE).unwrap().check(&Metadata { packages, resolve })
    }

    #[test]
    fn licences_are_allowed_by_their_expression() {
        for license in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "(GPL-2.0 OR MIT) AND MIT",
        ] {
            assert_eq!(problems("a", Some(license)), [""; 0], "{license}");
        }
        for license in
            ["GPL-3.0-only", "MIT AND GPL-3.0", "Apache-2.0", "CDLA-Permissive-2.0", "", "Own"]
        {
            assert_eq!(problems("a", Some(license)).len(), 1, "{license}");
        }
        assert_eq!(problems("a", None).len(), 1);
        assert_eq!(problems("data", Some("CDLA-Permissive-2.0")), [""; 0]);
    }

    #[test]
    fn bans_and_foreign_sources_are_found() {
        assert_eq!(problems("openssl", Some("MIT")), ["openssl 1.0.0: it is under bans.deny"]);
        for source in ["git+https://example.com/a?rev=1#1", "registry+https://example.com/index"] {
            let found = check(vec![package("a", Some("MIT"), Some(source.to_owned()))], &[]);
            assert_eq!(found, [format!("a 1.0.0: comes from {source}")]);
        }
    }

    #[test]
    fn ban_with_wrappers_lets_only_these_depend_on_the_package() {
        let packages = || {
            let packages = ["serde_yaml", "sdk", "other"].into_iter();
            packages.map(|name| package(name, Some("MIT"), Some(registry()))).collect()
        };
        assert_eq!(check(packages(), &[("sdk", "serde_yaml"), ("other", "sdk")]), [""; 0]);
        assert_eq!(
            check(packages(), &[("sdk", "serde_yaml"), ("other", "serde_yaml")]),
            ["serde_yaml 1.0.0: it is under bans.deny, except below sdk, and other uses it"]
        );
    }

    #[test]
    fn own_dependency_is_refused_without_a_version() {
        let mut ours = package("ours", None, None);
        let required = |path: Option<&str>| super::super::packages::Required {
            name: "x".to_owned(),
            req: "*".to_owned(),
            path: path.map(str::to_owned),
        };
        ours.dependencies = vec![required(Some("x")), required(None)];
        assert_eq!(check(vec![ours], &[]), ["ours 1.0.0: asks for any version of x"]);
    }

    #[test]
    fn ignored_advisory_is_refused_without_a_reason() {
        assert_eq!(Policy::read(FILE).unwrap().ignored(), ["RUSTSEC-2020-0001"]);
        assert!(Policy::read(&FILE.replace(", reason = \"not reached\"", "")).is_err());
    }
}
