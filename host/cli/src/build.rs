//! `innkeeper build`: builds the component of a guest in Rust or Go and checks it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use innkeeper_core::counted;
use innkeeper_toolchain::{Go, Package, TARGET, Toolchain, componentize};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::time::Instant;

use crate::component::{self, Opened};
use crate::new::language::Language;
use crate::{inspect, out};

/// Arguments of `innkeeper build`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the guest: of its crate, or of its Go module.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// File for the component [default: target/components/NAME.wasm in the guest's folder].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If there is no guest or no toolchain, the guest does not build, or the component is no guest.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let builder = Builder::new(&arguments.folder)?;
    let component = arguments.out.clone().unwrap_or_else(|| builder.component());
    out::eprint(&format!("building {}", builder.title()));
    let opened = runtime.block_on(builder.build(&component))?;
    let mut page = inspect::text(&opened);
    inspect::row(&mut page, "component", [component.display().to_string()]);
    out::page(&page)
}

/// How long std takes: measured on eight idle cores and on two busy ones.
const STD_TIME: &str = "one to ten minutes";

/// The message before a build that compiles std into the target folder; `None` if std is there.
fn first_build_message(toolchain: &Toolchain, target_dir: &Path) -> Option<String> {
    toolchain.must_compile_std(target_dir).then(|| {
        format!(
            "the first build compiles Rust's standard library, which takes {STD_TIME}; it stays in {} for all your guests. With rustup, `rustup target add {TARGET}` takes seconds instead",
            target_dir.display()
        )
    })
}

/// How often the command prints the progress of the first build.
const PROGRESS_PERIOD: Duration = Duration::from_secs(20);

/// Reads what cargo prints, a line for each crate, and calls `say` with the progress if asked to.
///
/// # Errors
/// If cargo's output cannot be read.
async fn read(
    stdout: impl AsyncRead + Unpin,
    with_progress: bool,
    say: &mut impl FnMut(&str),
) -> anyhow::Result<String> {
    let mut lines = BufReader::new(stdout).lines();
    let (begun, mut crates, mut printed) = (Instant::now(), 0_u32, String::new());
    let mut ticks = tokio::time::interval_at(begun + PROGRESS_PERIOD, PROGRESS_PERIOD);
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => {
                    crates += u32::from(line.contains("\"reason\":\"compiler-artifact\""));
                    printed.push_str(&line);
                    printed.push('\n');
                }
                None => return Ok(printed),
            },
            _ = ticks.tick(), if with_progress => {
                let seconds = begun.elapsed().as_secs();
                let crates = counted(crates, "crate", "crates");
                say(&format!("still building: {crates} compiled in {seconds} s"));
            }
        }
    }
}

/// The message about a guest in a language whose own tools build it; `None` if the folder has no
/// such guest.
fn other_language(folder: &Path) -> Option<String> {
    let has = |name: &str| folder.join(name).is_file();
    if has("Cargo.toml") || has("go.mod") {
        return None;
    }
    let language = if has("package.json") {
        if has("tsconfig.json") { Language::Typescript } else { Language::Javascript }
    } else if has("pyproject.toml") || has("requirements.txt") {
        Language::Python
    } else {
        return None;
    };
    // The last command builds the component.
    let command = language.first_commands().last()?.replace("@component@", "FILE.wasm");
    Some(format!(
        "{} has a guest in {}, and this command builds guests in Rust and Go: run `{command}` there, then `innkeeper push FILE.wasm --module NAME`",
        folder.display(),
        language.name()
    ))
}

/// Builds one guest, any number of times.
pub(crate) struct Builder {
    project: Project,
}

/// The sources of a guest, and the compiler for them.
enum Project {
    Rust { package: Package, toolchain: Toolchain },
    Go { name: String, folder: PathBuf, go: Go },
}

impl Builder {
    /// Finds the guest of a folder and a toolchain for it.
    ///
    /// # Errors
    /// If the folder has no guest, or this machine has no toolchain.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        if let Some(message) = other_language(folder) {
            bail!(message);
        }
        let project = if folder.join("go.mod").is_file() {
            let folder = folder
                .canonicalize()
                .with_context(|| format!("cannot read the folder {}", folder.display()))?;
            Project::Go { name: Go::name(&folder)?, go: Go::find()?, folder }
        } else {
            let toolchain = Toolchain::find(if folder.is_dir() { folder } else { Path::new(".") })?;
            Project::Rust { package: Package::read(&toolchain, folder)?, toolchain }
        };
        Ok(Self { project })
    }

    /// The folder of the guest.
    pub(crate) fn folder(&self) -> &Path {
        match &self.project {
            Project::Rust { package, .. } => &package.folder,
            Project::Go { folder, .. } => folder,
        }
    }

    /// The default path of the component.
    pub(crate) fn component(&self) -> PathBuf {
        match &self.project {
            Project::Rust { package, .. } => package.component(),
            Project::Go { name, folder, .. } => {
                folder.join("target/components").join(format!("{name}.wasm"))
            }
        }
    }

    /// The guest and the toolchain, in a few words.
    pub(crate) fn title(&self) -> String {
        match &self.project {
            Project::Rust { package, toolchain } => {
                format!("{} with {}", package.name, toolchain.description())
            }
            Project::Go { name, go, .. } => format!("{name} with {}", go.identity()),
        }
    }

    /// Builds the guest, writes the component to a file, and checks it. The compiler prints to
    /// standard error, and ends if the caller drops the future.
    ///
    /// # Errors
    /// If the guest does not build, the file cannot be written, or the component is no guest.
    pub(crate) async fn build(&self, component: &Path) -> anyhow::Result<Opened> {
        match &self.project {
            Project::Rust { package, toolchain } => {
                build_crate(package, toolchain, component).await?;
            }
            Project::Go { name, folder, go } => build_go(name, folder, go, component).await?,
        }
        component::open(component)
    }
}

async fn build_crate(
    package: &Package,
    toolchain: &Toolchain,
    component: &Path,
) -> anyhow::Result<()> {
    let target_dir = &package.target_dir;
    // Held until the component is written: other processes may build in the same folder.
    let folder = target_dir.clone();
    let _lock = tokio::task::spawn_blocking(move || {
        let mut say = |line: &str| out::eprint(line);
        let lock = innkeeper_toolchain::lock(&folder, &mut say)?;
        innkeeper_toolchain::bound_builds(&folder, &mut say);
        anyhow::Ok(lock)
    })
    .await??;
    let first = first_build_message(toolchain, target_dir);
    if let Some(message) = &first {
        out::eprint(message);
    }
    package.claim()?;
    let mut cargo = tokio::process::Command::from(package.build(toolchain));
    let child = cargo.stdout(Stdio::piped()).kill_on_drop(true).spawn();
    let mut child = child.context("cannot run cargo")?;
    let printed = match child.stdout.take() {
        Some(stdout) => read(stdout, first.is_some(), &mut |line| out::eprint(line)).await?,
        None => String::new(),
    };
    if !child.wait().await?.success() {
        bail!("{} does not build: see the errors of the compiler above", package.name);
    }
    let module = package.artifact(&printed)?;
    componentize::module(&module, component)
}

async fn build_go(name: &str, folder: &Path, go: &Go, component: &Path) -> anyhow::Result<()> {
    let made = tempfile::tempdir().context("cannot create a temporary folder")?;
    let module = made.path().join("guest.wasm");
    let mut go = tokio::process::Command::from(go.build(folder, &module));
    let status = go.stdin(Stdio::null()).kill_on_drop(true).status().await;
    if !status.context("cannot run go")?.success() {
        bail!("{name} does not build: see the errors of the compiler above");
    }
    Go::componentize(&module, component)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[test]
    fn time_of_the_first_build_is_printed_only_if_std_must_be_compiled() {
        let target = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::Sources {
            version: "1.96".to_owned(),
            sources: PathBuf::new(),
            linker: PathBuf::new(),
        };
        let message = first_build_message(&toolchain, target.path()).unwrap();
        assert!(message.contains("which takes one to ten minutes; it stays in /"), "{message}");
        let installed = Toolchain::Target { version: "1.96".to_owned() };
        assert_eq!(first_build_message(&installed, target.path()), None);

        // The next build finds the std of the first one.
        let libraries = target.path().join(TARGET).join("release/deps");
        std::fs::create_dir_all(&libraries).unwrap();
        std::fs::write(libraries.join("libstd-0123.rlib"), "").unwrap();
        assert_eq!(first_build_message(&toolchain, target.path()), None);
    }

    #[test]
    fn guest_of_another_language_is_refused_with_the_command_that_builds_it() {
        let message = |files: &[&str]| {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                std::fs::write(folder.path().join(file), "").unwrap();
            }
            other_language(folder.path())
        };
        for (files, language, command) in [
            (
                &["pyproject.toml"][..],
                "Python",
                "componentize --stub-wasi guest --output FILE.wasm`",
            ),
            (&["requirements.txt"][..], "Python", "`.venv/bin/componentize-py"),
            (&["package.json"][..], "JavaScript", "`npm run build`"),
            (&["package.json", "tsconfig.json"][..], "TypeScript", "`npm run build`"),
        ] {
            let message = message(files).unwrap();
            assert!(message.contains(&format!("has a guest in {language},")), "{message}");
            assert!(message.contains(command), "{message}");
            assert!(message.contains("`innkeeper push FILE.wasm --module NAME`"), "{message}");
        }
        for files in [&["Cargo.toml", "package.json"][..], &["go.mod"][..], &[][..]] {
            assert_eq!(message(files), None, "{files:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_of_the_first_build_is_printed_every_20_seconds() {
        let (mut cargo, stdout) = tokio::io::duplex(1024);
        let artifact = "{\"reason\":\"compiler-artifact\"}\n";
        let work = async move {
            for _ in 0..3 {
                cargo.write_all(artifact.as_bytes()).await.unwrap();
                tokio::time::sleep(Duration::from_secs(25)).await;
            }
            cargo.write_all(b"{\"reason\":\"build-finished\"}\n").await.unwrap();
        };
        let mut messages = Vec::new();
        let mut say = |line: &str| messages.push(line.to_owned());
        let (printed, ()) = tokio::join!(read(stdout, true, &mut say), work);
        assert_eq!(printed.unwrap().lines().count(), 4);
        assert_eq!(
            messages,
            [
                "still building: 1 crate compiled in 20 s",
                "still building: 2 crates compiled in 40 s",
                "still building: 3 crates compiled in 60 s",
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn later_builds_print_no_progress() {
        let (mut cargo, stdout) = tokio::io::duplex(1024);
        let work = async move {
            tokio::time::sleep(Duration::from_mins(5)).await;
            cargo.write_all(b"{}").await.unwrap();
        };
        let mut messages = 0;
        let mut say = |_: &str| messages += 1;
        let (printed, ()) = tokio::join!(read(stdout, false, &mut say), work);
        assert_eq!((printed.unwrap(), messages), ("{}\n".to_owned(), 0));
    }
}
