//! `innkeeper dev`: builds a guest whenever its sources change, and swaps it into a running host.

mod sources;
mod target;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use innkeeper_modules::Digest;
use tokio::signal::unix::{SignalKind, signal};

use crate::build::Builder;
use crate::component::Opened;
use crate::kube::KubeArguments;
use crate::out::Page;
use crate::{inspect, out};
use sources::Sources;
use target::{Target, Updated};

/// The wait before the command retries a swap that failed.
const RETRY_PERIOD: Duration = Duration::from_secs(3);

/// Arguments of `innkeeper dev`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of the guest: of its crate, or of its Go module.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Module whose guest the command replaces. It must exist.
    #[arg(long, value_name = "NAME")]
    module: String,
    /// Take the Module from this folder, which a host watches (`innkeeper run --modules DIR`),
    /// instead of from the cluster. The command writes the component to its spec.source.file.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    modules: Option<PathBuf>,
    #[command(flatten)]
    kube: KubeArguments,
}

/// Runs the command until it is interrupted.
///
/// # Errors
/// If there is no crate, no toolchain or no such Module.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            biased;
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
            result = develop(arguments) => result,
        }
    });
    // A build may still wait for the lock of another build.
    runtime.shutdown_background();
    result
}

/// Builds and swaps until the caller drops it.
///
/// # Errors
/// Those that no change of the sources can fix.
async fn develop(arguments: &Arguments) -> anyhow::Result<()> {
    let builder = Builder::new(&arguments.folder)?;
    let mut target = match &arguments.modules {
        Some(folder) => Target::folder(folder, &arguments.module)?,
        None => Target::cluster(&arguments.kube, &arguments.module).await?,
    };
    let mut sources = Sources::new(builder.folder());
    let mut page = Page::default();
    page.line(format_args!("{} for {}", builder.title(), target.name()));
    page.line(format_args!("watching {} until Ctrl-C", builder.folder().display()));
    out::page(&page)?;
    let mut before = None;
    loop {
        // A file that changes from now on is for the next build.
        sources.poll();
        let begun = Instant::now();
        let built = builder.build(&builder.component()).await;
        sources.poll_ignoring_lockfile();
        match built {
            Ok(opened) => {
                print_built(&opened, begun.elapsed(), before)?;
                before = Some(opened.component.digest);
                let Some(swapped) = swap(&mut target, &opened, &sources).await else { continue };
                tokio::select! {
                    result = target.follow(&opened, &swapped) => result?,
                    () = sources.changed() => {}
                }
            }
            Err(error) => {
                out::eprint(&format!("{}; the active revision stays", out::error_chain(&error)));
                sources.changed().await;
            }
        }
    }
}

fn print_built(opened: &Opened, took: Duration, before: Option<Digest>) -> anyhow::Result<()> {
    let digest = opened.component.digest;
    let same = if before == Some(digest) { ", the same as before" } else { "" };
    out::line(format_args!(
        "built {} in {:.1} s ({}){same}",
        digest.short(),
        took.as_secs_f32(),
        inspect::sizes(opened)
    ))
}

/// Swaps the guest in; retries until that succeeds. `None` if the sources change first.
async fn swap(target: &mut Target, opened: &Opened, sources: &Sources) -> Option<Updated> {
    let mut printed = None;
    loop {
        let error = match target.swap(opened).await {
            Ok(swapped) => return Some(swapped),
            Err(error) => out::error_chain(&error),
        };
        if printed.as_ref() != Some(&error) {
            out::eprint(&format!("{error}; retrying"));
            printed = Some(error);
        }
        tokio::select! {
            () = sources.changed() => return None,
            () = tokio::time::sleep(RETRY_PERIOD) => {}
        }
    }
}
