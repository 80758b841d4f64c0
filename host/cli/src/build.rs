//! `innkeeper build`: the crate of a guest becomes a component that is checked.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use innkeeper_toolchain::{Package, Toolchain, componentize};

use crate::component::{self, Opened};
use crate::{inspect, out};

/// Arguments of `innkeeper build`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of the guest's crate.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Where to put the component; target/components/NAME.wasm in the crate's folder if left out.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

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

/// Builds one crate, again and again.
pub(crate) struct Builder {
    /// The crate.
    pub(crate) package: Package,
    toolchain: Toolchain,
}

impl Builder {
    /// For the crate of a folder, with a toolchain that is here.
    pub(crate) fn new(folder: &Path) -> anyhow::Result<Self> {
        let toolchain = Toolchain::find(if folder.is_dir() { folder } else { Path::new(".") })?;
        let package = Package::read(&toolchain, folder)?;
        Ok(Self { package, toolchain })
    }

    /// What is built, and with what.
    pub(crate) fn title(&self) -> String {
        format!("{} with {}", self.package.name, self.toolchain.description())
    }

    /// Builds it, puts the component into a file, and checks it. What the compiler says goes to
    /// standard error. If it is dropped meanwhile, the compiler ends.
    pub(crate) async fn build(&self, component: &Path) -> anyhow::Result<Opened> {
        let target_dir = self.package.target_dir.clone();
        // Until the component is written: others may build in the same folder.
        let _lock = tokio::task::spawn_blocking(move || {
            innkeeper_toolchain::lock(&target_dir, &mut |line| out::eprint(line))
        })
        .await??;
        let mut cargo = tokio::process::Command::from(self.package.build(&self.toolchain));
        let child = cargo.stdout(Stdio::piped()).kill_on_drop(true).spawn();
        let output = child.context("cargo cannot be run")?.wait_with_output().await?;
        if !output.status.success() {
            bail!("{} does not build; what the compiler said stands above", self.package.name);
        }
        let module = self.package.artifact(&String::from_utf8_lossy(&output.stdout))?;
        componentize::module(&module, component)?;
        component::open(component)
    }
}
