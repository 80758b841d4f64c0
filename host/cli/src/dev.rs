//! `innkeeper dev`: a guest is built whenever its sources are saved, and swapped into a running
//! host.

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

/// What could not be swapped in is tried again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(3);

/// Arguments of `innkeeper dev`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder of the guest's crate.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// The Module to swap it into. It must exist.
    #[arg(long, value_name = "NAME")]
    module: String,
    /// The Module lies in this folder, which a host watches (`innkeeper run --modules DIR`),
    /// instead of in the cluster: the component is put where its spec.source.file says.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    modules: Option<PathBuf>,
    #[command(flatten)]
    kube: KubeArguments,
}

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
    // A build that waits for another one is not waited for.
    runtime.shutdown_background();
    result
}

/// Builds and swaps until it is dropped; an error is one that no change of the sources mends.
async fn develop(arguments: &Arguments) -> anyhow::Result<()> {
    let builder = Builder::new(&arguments.folder)?;
    let mut target = match &arguments.modules {
        Some(folder) => Target::folder(folder, &arguments.module)?,
        None => Target::cluster(&arguments.kube, &arguments.module).await?,
    };
    let mut sources = Sources::new(&builder.package.folder);
    let mut page = Page::default();
    page.line(format_args!("{}, into {}", builder.title(), target.name()));
    page.line(format_args!("watching {}; Ctrl-C ends it", builder.package.folder.display()));
    out::page(&page)?;
    let mut before = None;
    loop {
        // What is saved from now on is for the next build.
        sources.poll();
        let begun = Instant::now();
        let built = builder.build(&builder.package.component()).await;
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
                out::eprint(&format!("{}; the version before goes on", out::error_chain(&error)));
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

/// Swaps it in. What hinders that may pass, so it is tried again until it works; `None` if the
/// sources change first.
async fn swap(target: &mut Target, opened: &Opened, sources: &Sources) -> Option<Updated> {
    let mut told = None;
    loop {
        let error = match target.swap(opened).await {
            Ok(swapped) => return Some(swapped),
            Err(error) => out::error_chain(&error),
        };
        if told.as_ref() != Some(&error) {
            out::eprint(&format!("{error}; trying again"));
            told = Some(error);
        }
        tokio::select! {
            () = sources.changed() => return None,
            () = tokio::time::sleep(AGAIN_AFTER) => {}
        }
    }
}
