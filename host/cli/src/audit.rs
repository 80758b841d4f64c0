//! `innkeeper audit`: what policies say of existing objects, of a cluster or of files.
//!
//! Of a cluster it reads the Reports and `ClusterReports` that the host writes, and the status of
//! the Modules. Of files it reviews the objects itself, by the functions of the host.

mod cluster;
mod files;
mod filter;
mod findings;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use self::files::FileArguments;
use self::filter::Filter;
use self::findings::Findings;
use crate::document::Document;
use crate::kube::KubeArguments;
use crate::{out, review};

/// Arguments of `innkeeper audit`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Guests' components, plain or gzip, whose policies review the objects of files. Without them
    /// the command shows what the host of a cluster has found.
    #[arg(value_name = "COMPONENT")]
    components: Vec<PathBuf>,
    #[command(flatten)]
    files: FileArguments,
    /// Show only the policy of this Module.
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Show only the objects in this namespace.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: OutputFormat,
    #[command(flatten)]
    kube: KubeArguments,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OutputFormat {
    /// A row for each object that does not pass.
    Table,
    /// For programs.
    Json,
}

/// Runs the command, and returns its exit status: 0 if nothing is denied, 1 if something is, 2 for
/// options and files that cannot be used, 3 if a review failed or the audit cannot be read.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let filter =
        Filter { module: arguments.module.as_deref(), namespace: arguments.namespace.as_deref() };
    let is_offline = !arguments.components.is_empty() || arguments.files.are_given();
    let (findings, status) = if is_offline {
        (offline(arguments, filter), review::UNUSABLE)
    } else {
        (of_cluster(arguments, filter), review::FAILED)
    };
    match findings.and_then(|findings| print(arguments, &findings).map(|()| findings.status())) {
        Ok(status) => status.into(),
        // The reader closed the pipe.
        Err(error) if out::is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            review::eprint_error(&error);
            status.into()
        }
    }
}

fn offline(arguments: &Arguments, filter: Filter<'_>) -> anyhow::Result<Findings> {
    if arguments.components.is_empty() {
        bail!("give the components of the policies that are to review the files");
    }
    if !arguments.files.are_given() {
        bail!("give the objects to review with -f");
    }
    files::audit(&arguments.components, &arguments.files, filter)
}

fn of_cluster(arguments: &Arguments, filter: Filter<'_>) -> anyhow::Result<Findings> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let cluster = arguments.kube.connect().await?;
        cluster::read(&cluster.host(), filter).await
    })
}

fn print(arguments: &Arguments, findings: &Findings) -> anyhow::Result<()> {
    match arguments.output {
        OutputFormat::Table => out::page(&findings.page())?,
        OutputFormat::Json => out::document(&Document::json(&findings.json())?)?,
    }
    for note in findings.notes() {
        out::eprint(&format!("innkeeper: note: {note}"));
    }
    out::eprint(&findings.summary());
    Ok(())
}
