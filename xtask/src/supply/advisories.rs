//! The RustSec advisory database: fetched once a day; without the network the last copy is used.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use semver::{Version, VersionReq};
use serde::Deserialize;

/// The repository of the database.
const URL: &str = "https://github.com/rustsec/advisory-db";

/// The variable with a folder of a database, for machines without the network.
const FOLDER_VARIABLE: &str = "INNKEEPER_ADVISORY_DB";

/// The age at which the database is fetched again.
const FRESH: Duration = Duration::from_hours(24);

/// Maximum time of a fetch.
const FETCH_TIME: Duration = Duration::from_mins(1);

/// The file whose modification time is the time of the fetch.
const STAMP: &str = "innkeeper-fetched";

/// The database, if there is one.
pub(super) struct Database {
    folder: Option<PathBuf>,
    age: Option<Duration>,
    /// Why there is no newer one.
    problem: Option<String>,
}

/// The head of an advisory, in TOML.
#[derive(Deserialize)]
struct Advisory {
    advisory: Head,
    #[serde(default)]
    versions: Versions,
}

#[derive(Deserialize)]
struct Head {
    id: String,
    package: String,
    /// Absent for a vulnerability; `unmaintained`, `notice` and `unsound` otherwise.
    informational: Option<String>,
    withdrawn: Option<toml::Value>,
}

#[derive(Default, Deserialize)]
struct Versions {
    #[serde(default)]
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

impl Database {
    /// Fetches the database if it is older than a day. If that fails, uses the existing one, if
    /// any.
    pub(super) fn open() -> Self {
        if let Some(folder) = std::env::var_os(FOLDER_VARIABLE).filter(|value| !value.is_empty()) {
            let folder = PathBuf::from(folder);
            let age = age(&folder);
            return Self { folder: Some(folder), age, problem: None };
        }
        let Some(folder) = cache() else {
            let problem =
                Some("no cache folder: neither XDG_CACHE_HOME nor HOME is set".to_owned());
            return Self { folder: None, age: None, problem };
        };
        let mut problem = None;
        if age(&folder).is_none_or(|age| age > FRESH) {
            problem = fetch(&folder).err().map(|error| format!("{error:#}"));
        }
        let age = age(&folder);
        Self { folder: folder.is_dir().then_some(folder), age, problem }
    }

    /// The age of the database and the problems, for the output.
    pub(super) fn description(&self) -> String {
        let problem =
            self.problem.as_ref().map_or_else(String::new, |why| format!(" (no newer one: {why})"));
        match (&self.folder, self.age) {
            (None, _) => format!(
                "NOT COMPARED, no database found{problem}; set {FOLDER_VARIABLE} to a copy of {URL}"
            ),
            (Some(_), None) => format!("compared with a database of unknown age{problem}"),
            (Some(_), Some(age)) => {
                let hours = age.as_secs() / 3_600;
                format!(
                    "compared with a database that is {} d {} h old{problem}",
                    hours / 24,
                    hours % 24
                )
            }
        }
    }

    /// The advisories that affect these packages, one line each. Leaves out those that only inform,
    /// for example about unmaintained packages.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn problems(
        &self,
        packages: &BTreeSet<(String, String)>,
        ignored: &[String],
    ) -> Result<Vec<String>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        ensure!(
            folder.join("crates").is_dir(),
            "{} is no copy of {URL}: it has no folder `crates`",
            folder.display()
        );
        let mut problems = Vec::new();
        for (name, version) in packages {
            let folder = folder.join("crates").join(name);
            let entries = match fs::read_dir(&folder) {
                // The package has no advisories.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.with_context(|| folder.display().to_string())?,
            };
            let version = Version::parse(version).with_context(|| format!("{name} {version}"))?;
            for entry in entries {
                let path = entry?.path();
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let advisory = read(&text).with_context(|| path.display().to_string())?;
                if advisory.affects(name, &version) && !ignored.contains(&advisory.advisory.id) {
                    problems.push(format!("{name} {version}: {}", advisory.advisory.id));
                }
            }
        }
        Ok(problems)
    }
}

impl Advisory {
    fn affects(&self, name: &str, version: &Version) -> bool {
        let Head { package, informational, withdrawn, .. } = &self.advisory;
        let is_safe = |all: &[VersionReq]| all.iter().any(|one| one.matches(version));
        package == name
            && withdrawn.is_none()
            && informational.as_deref().is_none_or(|kind| kind == "unsound")
            && !is_safe(&self.versions.patched)
            && !is_safe(&self.versions.unaffected)
    }
}

/// Reads an advisory: Markdown that begins with TOML between fences.
fn read(text: &str) -> Result<Advisory> {
    let head = text.trim_start().strip_prefix("```toml").context("it does not begin with TOML")?;
    let (head, _) = head.split_once("```").context("its TOML does not end")?;
    toml::from_str(head).context("its TOML is not as expected")
}

/// The folder in the user's cache.
fn cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("innkeeper/advisory-db"))
}

fn age(folder: &Path) -> Option<Duration> {
    let stamp = fs::metadata(folder.join(STAMP)).or_else(|_| fs::metadata(folder.join("crates")));
    SystemTime::now().duration_since(stamp.ok()?.modified().ok()?).ok()
}

/// Fetches into a temporary folder in the same parent, and renames that when it is complete.
fn fetch(folder: &Path) -> Result<()> {
    let parent = folder.parent().context("the cache has no folder")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    let fresh = tempfile::Builder::new().prefix("advisory-db-").tempdir_in(parent)?;
    let mut git = Command::new("git");
    git.args(["clone", "--quiet", "--depth", "1", URL]).arg(fresh.path());
    git.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = git.spawn().context("cannot run git")?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > FETCH_TIME {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("git did not fetch it within {} s", FETCH_TIME.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    anyhow::ensure!(status.success(), "git cannot fetch it");
    fs::write(fresh.path().join(STAMP), "")?;
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::rename(fresh.keep(), folder).with_context(|| folder.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advisory(more: &str, versions: &str) -> String {
        format!(
            "```toml\n[advisory]\nid = \"RUSTSEC-2024-0001\"\npackage = \"a\"\ndate = \"2024-01-01\"\n{more}\n[versions]\n{versions}\n```\n\n# It breaks\n"
        )
    }

    fn found(text: &str, version: &str, ignored: &[String]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let of_a = folder.path().join("crates/a");
        fs::create_dir_all(&of_a).unwrap();
        fs::write(of_a.join("RUSTSEC-2024-0001.md"), text).unwrap();
        let database =
            Database { folder: Some(folder.path().to_owned()), age: None, problem: None };
        let packages = [("a", version), ("b", "1.0.0")];
        let packages =
            packages.iter().map(|(name, version)| ((*name).into(), (*version).into())).collect();
        database.problems(&packages, ignored).unwrap()
    }

    #[test]
    fn advisory_affects_versions_that_are_neither_patched_nor_unaffected() {
        let text = advisory("", "patched = [\">= 1.2.3\"]\nunaffected = [\"< 1.1.0\"]");
        for (version, is_affected) in
            [("1.0.9", false), ("1.1.0", true), ("1.2.2", true), ("1.2.3", false)]
        {
            assert_eq!(!found(&text, version, &[]).is_empty(), is_affected, "{version}");
        }
        let ignored = ["RUSTSEC-2024-0001".to_owned()];
        assert_eq!(found(&text, "1.1.0", &ignored), [""; 0]);
        assert_eq!(found(&text, "1.1.0", &[]), ["a 1.1.0: RUSTSEC-2024-0001"]);
    }

    #[test]
    fn advisory_is_no_problem_when_it_only_informs_or_is_withdrawn() {
        let none = "patched = []";
        assert_eq!(
            found(&advisory("informational = \"unmaintained\"", none), "1.0.0", &[]),
            [""; 0]
        );
        assert_eq!(found(&advisory("informational = \"unsound\"", none), "1.0.0", &[]).len(), 1);
        assert_eq!(found(&advisory("withdrawn = \"2024-02-01\"", none), "1.0.0", &[]), [""; 0]);
        assert_eq!(found(&advisory("", none), "1.0.0", &[]).len(), 1);
    }

    #[test]
    fn description_has_the_age_of_the_database() {
        let database = |folder, age| Database { folder, age, problem: Some("why".to_owned()) };
        let folder = || Some(PathBuf::from("x"));
        let text = database(None, None).description();
        assert!(text.starts_with("NOT COMPARED") && text.contains("(no newer one: why)"), "{text}");
        let text = database(folder(), Some(Duration::from_hours(50))).description();
        assert!(text.contains("that is 2 d 2 h old (no newer one: why)"), "{text}");
    }
}
