//! Guests: from Rust (and a few other languages) to WebAssembly components.
//!
//! What is built is what the workspace `guests` says: every package with a `cdylib` library
//! is a component of the package's name, every example that is a `cdylib` one of the
//! example's name, and every `guests/testing/*.wat` one of the file's name; and every folder of
//! `guests/examples` that is of another language (see [`languages`]). Policies of Kubewarden, the
//! examples of the workspace `guests/kubewarden`, stay core modules.

mod componentize;
mod inputs;
mod install;
mod kept;
mod languages;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use innkeeper_toolchain::{TARGET, Toolchain, lock};

pub(crate) use self::inputs::digest_of;
use self::kept::Kept;
use crate::command;
use crate::metadata::metadata;
use crate::progress::say;

/// What a ConfigMap can hold (1 MiB, its keys and metadata included).
const CONFIG_MAP_BYTES: u64 = 1024 * 1024;

/// The SDKs of other languages, of which no component of Rust has anything.
const OTHER_SDKS: [&str; 3] = ["sdk-go", "sdk-py", "sdk-ts"];

/// The workspace of Kubewarden policies, below that of the guests.
const KUBEWARDEN: &str = "kubewarden";

/// The lints of the guests in Rust.
const LINTS: [&str; 6] = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];

/// What [`rust_checks`] compiles, as calls of cargo in the workspace of the guests.
pub(crate) const RUST_BUILDS: [&[&str]; 2] = [&LINTS, &["test", "--workspace", "--no-run"]];

/// A guest that has been built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Component {
    /// Its name: the package's, the example's or the WAT file's.
    pub(crate) name: String,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its size when compressed, as `innkeeper push` sends it.
    pub(crate) gzip_bytes: u64,
}

/// Builds the guests of the repository at `root` into `guests/target/components/<name>.wasm`:
/// all of them, or those with these names.
///
/// Needs a Rust that compiles for wasm, and looks for one (see [`install`]); for guests in other
/// languages what [`languages`] says. Does nothing for components whose inputs have not changed,
/// and takes those that an earlier build of this user made, also in another clone. Says what it
/// does, and the sizes.
///
/// # Errors
/// If a name is unknown, or a guest does not build.
pub(crate) fn build(root: &Path, names: Option<&[&str]>) -> Result<Vec<Component>> {
    let components = build_with(root, names, None)?;
    for line in table(&components) {
        say(&line);
    }
    Ok(components)
}

/// The same without the sizes, next to another cargo: runs at most `jobs` compilers at once.
///
/// # Errors
/// If a name is unknown, or a guest does not build.
pub(crate) fn build_with(
    root: &Path,
    names: Option<&[&str]>,
    jobs: Option<usize>,
) -> Result<Vec<Component>> {
    let guests = root.join("guests");
    let all = discover(&guests)?;
    let sdks = OTHER_SDKS.map(|sdk| guests.join(sdk));
    let scripts = all.iter().filter_map(Source::other_folder);
    let others: Vec<&Path> = scripts.chain(sdks.iter().map(PathBuf::as_path)).collect();
    let wanted = select(&all, names)?;
    let out = guests.join("target/components");
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;

    let is_script = |source: &Source| matches!(source, Source::Script(_));
    let mut rust = None;
    if !wanted.iter().all(is_script) {
        let toolchain = install::toolchain(root)?;
        let digest = inputs::digest(root, &toolchain, &others)?;
        rust = Some((toolchain, digest));
    }
    let digests = wanted.iter().map(|source| match (source, &rust) {
        (Source::Script(script), _) => script.digest(root),
        (_, Some((_, digest))) => Ok(digest.clone()),
        (_, None) => bail!("{} is of Rust, and no toolchain was looked for", source.name()),
    });
    let digests = digests.collect::<Result<Vec<String>>>()?;

    let is_stale = |(source, digest): &(&Source, &String)| {
        inputs::current(&out, source.name(), digest).is_none()
    };
    let stale = wanted.iter().zip(&digests).filter(is_stale).collect();
    let kept = Kept::of_user();
    let stale = not_restored(&kept, &out, stale)?;
    let of_rust: Vec<&Source> =
        stale.iter().map(|(source, _)| *source).filter(|source| !is_script(source)).collect();
    if let (Some((toolchain, _)), false) = (&rust, of_rust.is_empty()) {
        compile(&guests, &out, toolchain, &of_rust, jobs)?;
    }
    for (source, digest) in stale {
        if let Source::Script(script) = source {
            say(&format!("guests: building {}", script.name));
            script.build(root, &componentize::path(&out, &script.name))?;
        }
        kept.record(&out, source.name(), digest)?;
    }

    wanted
        .iter()
        .zip(&digests)
        .map(|(source, digest)| measure(&out, source.name(), digest))
        .collect()
}

/// Restores the components that an earlier build of this user made of the same inputs; gives the
/// others.
///
/// # Errors
/// If a component cannot be written.
fn not_restored<'a>(
    kept: &Kept,
    out: &Path,
    mut stale: Vec<(&'a Source, &'a String)>,
) -> Result<Vec<(&'a Source, &'a String)>> {
    let all = stale.len();
    let mut restored = Vec::new();
    for (source, digest) in &stale {
        restored.push(kept.restore(out, source.name(), digest)?);
    }
    let mut restored = restored.into_iter();
    stale.retain(|_| !restored.next().unwrap_or_default());
    if stale.len() < all {
        let count = all - stale.len();
        say(&format!("guests: {count} components of earlier builds have the same inputs"));
    }
    Ok(stale)
}

/// The checks of the guests in Rust that need no wasm: format, lints and tests of the workspace.
pub(crate) fn rust_checks(root: &Path) -> Vec<Command> {
    // Without --all, fmt would reach through the contract's crate into the host's workspace.
    let checks = [&["fmt", "--check"], &LINTS[..], &["test", "--workspace", "--no-fail-fast"]];
    let check = |arguments: &[&str]| {
        let mut command = command::cargo(arguments);
        command.current_dir(root.join("guests"));
        command
    };
    checks.into_iter().map(check).collect()
}

/// The types and tests of the SDKs and guests in other languages. They work in the folders in which
/// [`build`] builds these guests, so they must not run at the same time as it.
///
/// # Errors
/// If the tools of a language are missing, or the guests cannot be listed.
pub(crate) fn other_checks(root: &Path) -> Result<Vec<Command>> {
    let mut checks = languages::sdk_checks(root)?;
    for script in languages::discover(&root.join("guests"))? {
        checks.extend(script.checks(root)?);
    }
    Ok(checks)
}

/// Runs the guests' tests so that they write what they would otherwise compare: CRDs and
/// golden files. Look at the difference before committing it.
///
/// # Errors
/// If a guest does not build, or a file cannot be written.
pub(crate) fn update(root: &Path) -> Result<()> {
    command::run(
        command::cargo(&["test", "--workspace"])
            .current_dir(root.join("guests"))
            .env("UPDATE_EXPECT", "1"),
    )
}

/// The guests that deploy/guests installs: its kustomization names them too.
const DEPLOYED: [&str; 6] = ["imo", "kabocha", "kuri", "maintpage", "podroute", "postgres"];

/// Builds them, and puts the components where kustomize finds them.
///
/// # Errors
/// If a guest does not build, or a file cannot be written.
pub(crate) fn deploy(root: &Path) -> Result<()> {
    let folder = root.join("deploy/guests/components");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    for component in build(root, Some(&DEPLOYED))? {
        let to = folder.join(format!("{}.wasm", component.name));
        std::fs::copy(&component.path, &to).with_context(|| {
            format!("cannot copy {} to {}", component.path.display(), to.display())
        })?;
    }
    say("They lie in deploy/guests/components: kubectl apply --server-side -k deploy/guests");
    Ok(())
}

/// Where a component comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A package's `cdylib` library, whose name has underscores.
    Library { package: String, library: String },
    /// A `cdylib` example of a package.
    Example { package: String, example: String },
    /// A component written as text.
    Text { name: String, file: PathBuf },
    /// A `cdylib` example of the workspace of Kubewarden policies, which stays a core module.
    Policy { example: String },
    /// A guest in another language.
    Script(languages::Script),
}

impl Source {
    fn name(&self) -> &str {
        match self {
            Self::Library { package, .. } => package,
            Self::Example { example, .. } | Self::Policy { example } => example,
            Self::Text { name, .. } => name,
            Self::Script(script) => &script.name,
        }
    }

    /// The folder of a guest in another language.
    fn other_folder(&self) -> Option<&Path> {
        let Self::Script(script) = self else { return None };
        Some(&script.folder)
    }
}

/// The packages and their `cdylib` targets of a workspace.
fn libraries(workspace: &Path) -> Result<Vec<(String, PackageTarget)>> {
    let metadata: Metadata = metadata(workspace, &["--no-deps"])?;
    let targets = metadata.packages.into_iter().flat_map(|package| {
        let name = package.name;
        package.targets.into_iter().map(move |target| (name.clone(), target))
    });
    let is_library =
        |(_, target): &(_, PackageTarget)| target.crate_types.iter().any(|one| one == "cdylib");
    Ok(targets.filter(is_library).collect())
}

/// All components that there are, in the order of their names.
fn discover(guests: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for (package, target) in libraries(guests)? {
        sources.push(if target.kind.iter().any(|kind| kind == "example") {
            Source::Example { package, example: target.name }
        } else {
            Source::Library { package, library: target.name }
        });
    }
    for (_, target) in libraries(&guests.join(KUBEWARDEN))? {
        sources.push(Source::Policy { example: target.name });
    }
    let texts = guests.join("testing");
    if texts.is_dir() {
        for entry in texts.read_dir().with_context(|| format!("cannot list {}", texts.display()))? {
            let file = entry?.path();
            if let (Some("wat"), Some(name)) = (
                file.extension().and_then(|extension| extension.to_str()),
                file.file_stem().and_then(|stem| stem.to_str()),
            ) {
                sources.push(Source::Text { name: name.to_owned(), file: file.clone() });
            }
        }
    }
    sources.extend(languages::discover(guests)?.into_iter().map(Source::Script));
    sources.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(sources)
}

/// The parts of `cargo metadata` that are used here.
#[derive(serde::Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(serde::Deserialize)]
struct Package {
    name: String,
    targets: Vec<PackageTarget>,
}

#[derive(serde::Deserialize)]
struct PackageTarget {
    name: String,
    kind: Vec<String>,
    crate_types: Vec<String>,
}

fn select(all: &[Source], names: Option<&[&str]>) -> Result<Vec<Source>> {
    let Some(names) = names else { return Ok(all.to_vec()) };
    names
        .iter()
        .map(|name| {
            all.iter().find(|source| source.name() == *name).cloned().with_context(|| {
                let known: Vec<&str> = all.iter().map(Source::name).collect();
                format!("there is no guest `{name}`; there are: {}", known.join(", "))
            })
        })
        .collect()
}

fn compile(
    guests: &Path,
    out: &Path,
    toolchain: &Toolchain,
    stale: &[&Source],
    jobs: Option<usize>,
) -> Result<()> {
    let names: Vec<&str> = stale.iter().map(|source| source.name()).collect();
    say(&format!("guests: building {} with {}", names.join(", "), toolchain.description()));
    let target_dir = toolchain.shared_target_dir(guests)?;
    // Held until the components are written: another clone may share the folder.
    let _lock = lock(&target_dir, &mut |line| say(&format!("guests: {line}")))?;
    let release = target_dir.join(TARGET).join("release");

    // A cargo call each: one for all would unite their features, and with them what each
    // of two guests exports (see the feature `component` of podroute).
    let mut examples_built = Vec::new();
    let build_in =
        |folder: &Path, what: &[&str]| cargo_build(folder, toolchain, &target_dir, what, jobs);
    let build = |what: &[&str]| build_in(guests, what);
    let mut policies_built = false;
    // As for every library, the file has underscores.
    let example_file = |example: &str| {
        release.join("examples").join(format!("{}.wasm", example.replace('-', "_")))
    };
    for (index, source) in stale.iter().enumerate() {
        if jobs.is_some() {
            // Its cargo is quiet.
            let (name, number, count) = (source.name(), index + 1, stale.len());
            say(&format!("guests: compiling {name} ({number} of {count})"));
        }
        let module = match source {
            Source::Library { package, library } => {
                build(&["--package", package, "--lib"])?;
                release.join(format!("{library}.wasm"))
            }
            Source::Example { package, example } => {
                if !examples_built.contains(package) {
                    build(&["--package", package, "--examples"])?;
                    examples_built.push(package.clone());
                }
                example_file(example)
            }
            Source::Policy { example } => {
                if !std::mem::replace(&mut policies_built, true) {
                    build_in(&guests.join(KUBEWARDEN), &["--examples"])?;
                }
                componentize::copy(&example_file(example), &componentize::path(out, example))?;
                continue;
            }
            Source::Text { name, file } => {
                componentize::text(file, &componentize::path(out, name))?;
                continue;
            }
            // Not of Rust.
            Source::Script(_) => continue,
        };
        innkeeper_toolchain::componentize::module(
            &module,
            &componentize::path(out, source.name()),
        )?;
    }
    Ok(())
}

fn cargo_build(
    guests: &Path,
    toolchain: &Toolchain,
    target_dir: &Path,
    what: &[&str],
    jobs: Option<usize>,
) -> Result<()> {
    let mut cargo = toolchain.build();
    cargo.current_dir(guests).arg("--locked").args(what).env("CARGO_TARGET_DIR", target_dir);
    if let Some(jobs) = jobs {
        // The other cargo has the progress bar.
        cargo.args(["--quiet", "--jobs", &jobs.to_string()]);
    }
    command::run(&mut cargo)
}

fn measure(out: &Path, name: &str, digest: &str) -> Result<Component> {
    let path = componentize::path(out, name);
    let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    let gzip_bytes = inputs::current(out, name, digest)
        .with_context(|| format!("{} has been changed by somebody else", path.display()))?;
    Ok(Component { name: name.to_owned(), path, bytes, gzip_bytes })
}

/// The sizes, for people.
fn table(components: &[Component]) -> Vec<String> {
    let width = components.iter().map(|one| one.name.len()).max().unwrap_or_default().max(5);
    let mut lines =
        vec![format!("{:width$}  {:>9}  {:>9}  fits in a ConfigMap", "guest", "bytes", "gzip")];
    for one in components {
        let fits = if one.bytes < CONFIG_MAP_BYTES {
            "yes"
        } else if one.gzip_bytes < CONFIG_MAP_BYTES {
            "compressed"
        } else {
            "in parts"
        };
        lines.push(format!("{:width$}  {:>9}  {:>9}  {fits}", one.name, one.bytes, one.gzip_bytes));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str) -> Source {
        Source::Library { package: name.to_owned(), library: name.replace('-', "_") }
    }

    #[test]
    fn unknown_guest_is_refused_with_the_list_of_guests() {
        let error = select(&[library("one"), library("two")], Some(&["three"])).unwrap_err();
        assert_eq!(error.to_string(), "there is no guest `three`; there are: one, two");
    }

    #[test]
    fn names_select_guests_in_the_order_of_the_names() {
        let selected = select(&[library("one"), library("two")], Some(&["two", "one"])).unwrap();
        assert_eq!(selected, [library("two"), library("one")]);
    }

    #[test]
    fn guests_are_found_in_all_languages() {
        let sources = discover(&command::root().join("guests")).unwrap();
        assert!(sources.contains(&library("podroute")), "{sources:?}");
        let policy = Source::Policy { example: "kubewarden-labels".to_owned() };
        assert!(sources.contains(&policy), "{sources:?}");
        let others: Vec<_> = sources.iter().filter_map(Source::other_folder).collect();
        assert!(others.iter().any(|folder| folder.ends_with("guests/examples/cron-go")));
        assert!(others.iter().any(|folder| folder.ends_with("guests/examples/labels-js")));
        assert!(others.iter().any(|folder| folder.ends_with("guests/examples/quota-py")));
        assert!(others.iter().any(|folder| folder.ends_with("guests/examples/pages-ts")));
    }

    #[test]
    fn readme_of_the_guests_has_a_row_for_each_folder_with_a_package() {
        let guests = command::root().join("guests");
        let readme = std::fs::read_to_string(guests.join("README.md")).unwrap();
        let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| ")).collect();
        let mut packages = 0;
        for prefix in ["", "examples/"] {
            for entry in guests.join(prefix).read_dir().unwrap() {
                let folder = entry.unwrap();
                let marks = ["Cargo.toml", "go.mod", "package.json", "requirements.txt"];
                if !marks.iter().any(|mark| folder.path().join(mark).is_file()) {
                    continue;
                }
                let name = format!("`{prefix}{}`", folder.file_name().to_str().unwrap());
                let has_row = |row: &&str| row.split(" | ").next().unwrap().contains(&name);
                assert!(rows.iter().any(has_row), "guests/README.md has no row for {name}");
                packages += 1;
            }
        }
        assert!(packages > 20, "{packages} packages");
    }

    #[test]
    fn table_shows_which_guests_fit_in_a_config_map() {
        let component = |name: &str, bytes, gzip_bytes| Component {
            name: name.to_owned(),
            path: PathBuf::new(),
            bytes,
            gzip_bytes,
        };
        let lines = table(&[
            component("small", 1_000, 500),
            component("middle", 2_000_000, 700_000),
            component("large", 9_000_000, 4_000_000),
        ]);
        assert!(lines[1].ends_with("yes"), "{lines:?}");
        assert!(lines[2].ends_with("compressed"), "{lines:?}");
        assert!(lines[3].ends_with("in parts"), "{lines:?}");
    }
}
