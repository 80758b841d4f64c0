//! Of several hosts one works, by a Lease; the others stand by.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use innkeeper_cluster::{LeaderElector, LeaseLost};
use innkeeper_operator::Operator;
use tokio::sync::{Notify, watch};

use crate::serve::{HostState, SharedHostState};
use crate::watchdog;

/// After a signal, work in flight has this long to finish.
const GRACE: Duration = Duration::from_secs(9);

/// What may end the work.
#[derive(Clone)]
pub(crate) struct Shutdown {
    /// A signal came: what is in flight finishes.
    pub(crate) stop: watch::Receiver<bool>,
    /// Another one: it is dropped.
    pub(crate) force: Arc<Notify>,
}

/// Works whenever this host holds the Lease, until it is told to stop. `work` makes the operator
/// for one such time.
pub(crate) async fn lead(
    mut candidate: LeaderElector,
    present: &SharedHostState<Operator>,
    mut ending: Shutdown,
    work: impl AsyncFn(innkeeper_cluster::Fence) -> anyhow::Result<Operator>,
) -> anyhow::Result<()> {
    let result = loop {
        present.set(HostState::Standby);
        let fence = tokio::select! {
            biased;
            _ = ending.stop.wait_for(|stop| *stop) => break Ok(()),
            fence = candidate.acquire() => fence,
        };
        let operator = match work(fence).await {
            Ok(operator) => operator,
            Err(error) => break Err(error),
        };
        match run(&operator, present, ending.clone(), candidate.hold()).await {
            Ok(None) => break Ok(()),
            Ok(Some(lost)) => {
                tracing::warn!("leadership lost: {lost}");
            }
            Err(error) => break Err(error),
        }
    };
    candidate.release().await;
    result
}

/// Runs an operator until it is told to stop, or `lost` says that another host may work now.
pub(crate) async fn run(
    operator: &Operator,
    present: &SharedHostState<Operator>,
    Shutdown { mut stop, force: hurry }: Shutdown,
    lost: impl Future<Output = LeaseLost>,
) -> anyhow::Result<Option<LeaseLost>> {
    let (end, ended) = watch::channel(false);
    let mut running = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(ended).await }
    });
    present.set(HostState::Leading(operator.clone()));
    let mut lost = pin!(lost);
    let drop_all = async |running: &mut tokio::task::JoinHandle<()>| {
        running.abort();
        // Cancelled, which is what was asked for.
        let _ = running.await;
        operator.close();
    };
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => {}
        lost = &mut lost => {
            drop_all(&mut running).await;
            return Ok(Some(lost));
        }
        // What hangs may never end, and may hold whatever closing would wait for: nothing is waited
        // for.
        what = watchdog::hangs(operator) => {
            running.abort();
            anyhow::bail!("{what}; this host gives up its Lease and ends, so that another one works");
        }
        result = &mut running => {
            result.context("the operator broke; this is a bug of Innkeeper")?;
            anyhow::bail!("the operator ended although nobody asked it to; the log says why");
        }
    }
    let _ = end.send(true);
    tokio::select! {
        biased;
        result = &mut running => {
            result.context("the operator broke while it stopped")?;
            return Ok(None);
        }
        () = hurry.notified() => tracing::warn!("second signal: running reconciles are dropped"),
        lost = &mut lost => tracing::warn!("leadership lost ({lost}): running reconciles are dropped"),
        () = tokio::time::sleep(GRACE) => {
            tracing::warn!("running reconciles did not finish within {} s and are dropped", GRACE.as_secs());
        }
    }
    drop_all(&mut running).await;
    Ok(None)
}
