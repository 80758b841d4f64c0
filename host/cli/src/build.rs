//! `innkeeper build`: builds the component of a crate and checks it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use innkeeper_toolchain::{Package, Toolchain, componentize};

use crate::component::{self, Opened};
use crate::{inspect, out};

/// Arguments of `innkeeper build`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the guest's crate.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// File for the component [default: target/components/NAME.wasm in the crate's folder].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// If there is no crate or no toolchain, the crate does not build, or the component is no guest.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let builder = Builder::new(&arguments.folder)?;
    let component = arguments.out.clone().unwrap_or_else(|| builder.package.component());
    out::eprint(&format!("building {}", builder.title()));
    let opened = runtime.block_on(builder.build(&component))?;
    let mut page = inspect::text(&opened);
    inspect::row(&mut page, "component", [component.display().to_string()]);
    out::page(&page)
}

/// Builds one crate, any number of times.
pub(crate) struct Builder {
    /// The crate.
    pub(crate) package: Package,
    toolchain: Toolchain,
}

impl Builder {
    /// Finds the crate of a folder and a toolchain for it.
    ///
    /// # Errors
    /// If the folder has no crate of a guest, or this machine has no toolchain.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        let toolchain = Toolchain::find(if folder.is_dir() { folder } else { Path::new(".") })?;
        let package = Package::read(&toolchain, folder)?;
        Ok(Self { package, toolchain })
    }

    /// The crate and the toolchain, in a few words.
    pub(crate) fn title(&self) -> String {
        format!("{} with {}", self.package.name, self.toolchain.description())
    }

    /// Builds the crate, writes the component to a file, and checks it. The compiler prints to
    /// standard error, and ends if the caller drops the future.
    ///
    /// # Errors
    /// If the crate does not build, the file cannot be written, or the component is no guest.
    pub(crate) async fn build(&self, component: &Path) -> anyhow::Result<Opened> {
        let target_dir = self.package.target_dir.clone();
        // Held until the component is written: other processes may build in the same folder.
        let _lock = tokio::task::spawn_blocking(move || {
            innkeeper_toolchain::lock(&target_dir, &mut |line| out::eprint(line))
        })
        .await??;
        let mut cargo = tokio::process::Command::from(self.package.build(&self.toolchain));
        let child = cargo.stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let output = child.context("cannot run cargo")?.wait_with_output().await?;
        if !output.status.success() {
            bail!("{} does not build: see the errors of the compiler above", self.package.name);
        }
        let module = self.package.artifact(&String::from_utf8_lossy(&output.stdout))?;
        componentize::module(&module, component)?;
        component::open(component)
    }
}
