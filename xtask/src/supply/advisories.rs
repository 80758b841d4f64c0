//! The RustSec database of advisories: fetched once a day, used as old as it is where it cannot be
//! fetched.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use semver::{Version, VersionReq};
use serde::Deserialize;

/// Where the database is.
const URL: &str = "https://github.com/rustsec/advisory-db";

/// A folder with a database, instead of the one in the user's cache: for machines without the
/// network.
const FOLDER_VARIABLE: &str = "INNKEEPER_ADVISORY_DB";

/// How long a database is used without asking for a newer one.
const FRESH: Duration = Duration::from_hours(24);

/// How long fetching may take.
const FETCH_TIME: Duration = Duration::from_mins(1);

/// The file whose time says when the database was fetched.
const STAMP: &str = "innkeeper-fetched";

/// A database, or none.
pub(super) struct Database {
    folder: Option<PathBuf>,
    age: Option<Duration>,
    /// Why it is not a newer one.
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
    /// Fetches the database if it is older than a day; otherwise, or if that fails, takes what is
    /// there. That there is no database is no error.
    pub(super) fn open() -> Self {
        if let Some(folder) = std::env::var_os(FOLDER_VARIABLE).filter(|value| !value.is_empty()) {
            let folder = PathBuf::from(folder);
            let age = age(&folder);
            return Self { folder: Some(folder), age, problem: None };
        }
        let Some(folder) = cache() else {
            let problem = Some("there is no home to keep one in".to_owned());
            return Self { folder: None, age: None, problem };
        };
        let mut problem = None;
        if age(&folder).is_none_or(|age| age > FRESH) {
            problem = fetch(&folder).err().map(|error| format!("{error:#}"));
        }
        let age = age(&folder);
        Self { folder: folder.is_dir().then_some(folder), age, problem }
    }

    /// Which database this is, for people.
    pub(super) fn told(&self) -> String {
        let problem =
            self.problem.as_ref().map_or_else(String::new, |why| format!(" (no newer one: {why})"));
        match (&self.folder, self.age) {
            (None, _) => format!(
                "NOT COMPARED, there is no database{problem}; set {FOLDER_VARIABLE} to a copy of {URL}"
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

    /// The advisories that concern these packages, one line each. Those that only inform (that a
    /// package is not maintained, say) are no problem.
    ///
    /// # Errors
    /// A database that cannot be read.
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
                // Nothing is known against the package.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                other => other.with_context(|| folder.display().to_string())?,
            };
            let version = Version::parse(version).with_context(|| format!("{name} {version}"))?;
            for entry in entries {
                let path = entry?.path();
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let advisory = read(&text).with_context(|| path.display().to_string())?;
                if advisory.concerns(name, &version) && !ignored.contains(&advisory.advisory.id) {
                    problems.push(format!("{name} {version}: {}", advisory.advisory.id));
                }
            }
        }
        Ok(problems)
    }
}

impl Advisory {
    fn concerns(&self, name: &str, version: &Version) -> bool {
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

/// Fetches into a folder beside it, which takes its place when it is whole.
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
    fn an_advisory_concerns_versions_that_are_neither_patched_nor_unaffected() {
        let text = advisory("", "patched = [\">= 1.2.3\"]\nunaffected = [\"< 1.1.0\"]");
        for (version, concerned) in
            [("1.0.9", false), ("1.1.0", true), ("1.2.2", true), ("1.2.3", false)]
        {
            assert_eq!(!found(&text, version, &[]).is_empty(), concerned, "{version}");
        }
        let ignored = ["RUSTSEC-2024-0001".to_owned()];
        assert_eq!(found(&text, "1.1.0", &ignored), [""; 0]);
        assert_eq!(found(&text, "1.1.0", &[]), ["a 1.1.0: RUSTSEC-2024-0001"]);
    }

    #[test]
    fn what_only_informs_and_what_is_withdrawn_is_no_problem() {
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
    fn the_age_of_the_database_is_told() {
        let database = |folder, age| Database { folder, age, problem: Some("why".to_owned()) };
        let folder = || Some(PathBuf::from("x"));
        let told = database(None, None).told();
        assert!(told.starts_with("NOT COMPARED") && told.contains("(no newer one: why)"), "{told}");
        let told = database(folder(), Some(Duration::from_hours(50))).told();
        assert!(told.contains("that is 2 d 2 h old (no newer one: why)"), "{told}");
    }
}
