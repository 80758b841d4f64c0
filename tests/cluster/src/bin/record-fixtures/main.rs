//! Records what a real API server makes of the cases in `host/core/tests/fixtures/cases`:
//! the object with its `managedFields` after our apply, and after a change by somebody else.
//!
//! ```text
//! cargo run -p innkeeper-cluster-tests --bin record-fixtures -- --kubeconfig FILE [--only NAME]
//! ```
//!
//! The server must be one to play with: objects in the namespace `fixtures` are deleted. It
//! must serve MutatingAdmissionPolicy (Kubernetes 1.36, or 1.34 with
//! `--feature-gates=MutatingAdmissionPolicy=true
//! --runtime-config=admissionregistration.k8s.io/v1beta1=true`), which rewrites objects as a
//! mutating webhook would. No controllers are needed.
//!
//! What the server itself takes as a change is recorded next to what we expect, by
//! applying once more; `host/core/tests/in_sync.rs` holds our judgement against it.

#![expect(clippy::print_stdout, reason = "a program for people at a terminal")]

mod case;
mod fixture;
mod object;
mod server;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use innkeeper_contract::Kind;
use innkeeper_core::{Manager, in_sync, known_noops};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use crate::case::{Case, Change, Churns, read_cases};
use crate::fixture::{Changed, Fixture};
use crate::object::{entry, steady, without_managers, without_versions};
use crate::server::{Server, prepare};

#[derive(Parser)]
struct Arguments {
    /// The kubeconfig of a server to play with.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Record this case only.
    #[arg(long)]
    only: Option<String>,
    /// The folder of the cases, the recordings and what they need.
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/core/tests/fixtures"))]
    fixtures: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let kubeconfig = Kubeconfig::read_from(&arguments.kubeconfig)
        .with_context(|| format!("cannot read {}", arguments.kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let server = Server { client: Client::try_from(config)? };
    prepare(&server, &arguments.fixtures.join("prepare.yaml")).await?;

    let recorded = arguments.fixtures.join("recorded");
    std::fs::create_dir_all(&recorded)?;
    let mut surprises = 0;
    for case in read_cases(&arguments.fixtures.join("cases"))? {
        if arguments.only.as_ref().is_some_and(|only| *only != case.name) {
            continue;
        }
        let (fixture, notes) = match record(&server, &case).await {
            Ok(Some(recorded)) => recorded,
            Ok(None) => {
                println!("{}: refused, as expected", case.name);
                continue;
            }
            Err(error) => {
                surprises += 1;
                println!("{}: not recorded: {error:#}", case.name);
                continue;
            }
        };
        let path = recorded.join(format!("{}.json", case.name));
        std::fs::write(&path, serde_json::to_string_pretty(&fixture)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}: recorded, with {} changes", case.name, fixture.changes.len());
        surprises += notes.len();
        for note in notes {
            println!("    surprise: {note}");
        }
    }
    ensure!(surprises == 0, "{surprises} surprises: the server did not do what the cases say");
    Ok(())
}

/// Records one case; `None` if the server refuses it, as it should. Also gives what the server
/// did otherwise than the case says.
async fn record<'a>(server: &Server, case: &'a Case) -> Result<Option<(Fixture<'a>, Vec<String>)>> {
    let manager = Manager::primary("fixtures", "0a0a0a0a-0000-4000-8000-00000000000a");
    let name = manager.to_string();
    let kind = server.kind_of(&case.desired).await?;
    let mut notes = Vec::new();

    let desired = desired_with_digest(server, &kind, case, &manager, &mut notes).await?;
    server.make(&kind, case).await?;
    let live = match (server.apply(&kind, &desired, &name, false).await, &case.refused) {
        (Ok(live), None) => live,
        (Ok(_), Some(_)) => bail!("the server should refuse it"),
        (Err(error), Some(refused)) if format!("{error:#}").contains(refused) => return Ok(None),
        (Err(error), _) => return Err(error),
    };
    let unchanged = server.settles(&kind, &desired, &name).await?;
    if unchanged == (case.churns == Churns::Left) {
        notes.push(format!("a second apply changes {}", if unchanged { "nothing" } else { "it" }));
    }
    let again = server.get(&kind, &desired).await?.context("it is gone")?;
    if case.churns == Churns::Left && without_versions(&live) != without_versions(&again) {
        notes.push("a second apply changes more than versions".to_owned());
    }

    let mut changes = Vec::new();
    for change in &case.changes {
        let recorded = record_change(server, &kind, case, change, (&desired, &name)).await?;
        if recorded.unchanged != change.settled {
            notes.push(format!(
                "after {}, applying changes {}",
                change.name,
                if recorded.unchanged { "nothing" } else { "something" }
            ));
        }
        changes.push(recorded);
    }
    server.delete(&kind, &case.desired).await?;
    let fixture = Fixture {
        name: &case.name,
        about: &case.about,
        kind,
        manager: name,
        desired,
        live: steady(live),
        unchanged,
        churns: case.churns,
        settled: !case.miss,
        changes,
    };
    Ok(Some((fixture, notes)))
}

/// The desired object as the host sends it: without known no-ops, and with its digest.
async fn desired_with_digest(
    server: &Server,
    kind: &Kind,
    case: &Case,
    manager: &Manager,
    notes: &mut Vec<String>,
) -> Result<Value> {
    let mut desired = case.desired.clone();
    if case.churns == Churns::Dropped {
        server.make(kind, case).await?;
        if server.settles(kind, &desired, &manager.to_string()).await? {
            notes.push("it does not churn".to_owned());
        }
    }
    known_noops::drop_known_noops(&mut desired);
    let _digest = match case.made {
        None => in_sync::set_digest(&mut desired),
        Some(_) => in_sync::set_merge_digest(&mut desired, manager),
    };
    Ok(desired)
}

/// Changes the applied object of a case, and records the change and whether a further apply repairs
/// it.
async fn record_change<'a>(
    server: &Server,
    kind: &Kind,
    case: &Case,
    change: &'a Change,
    (desired, manager): (&Value, &str),
) -> Result<Changed<'a>> {
    server.make(kind, case).await?;
    server.apply(kind, desired, manager, false).await?;
    server
        .change(kind, &case.desired, change)
        .await
        .with_context(|| format!("the change {}", change.name))?;
    let live = server.get(kind, &case.desired).await?.context("it is gone")?;
    let repaired = server.apply(kind, desired, manager, true).await?;
    let unchanged = without_managers(&live) == without_managers(&repaired)
        && entry(&live, manager) == entry(&repaired, manager);
    Ok(Changed {
        name: &change.name,
        about: &change.about,
        live: steady(live),
        unchanged,
        settled: change.settled,
        lost: &change.lost,
    })
}
