//! Leader election: of several hosts only the leader runs an operator.

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

/// After a signal, running reconciles have this time to finish.
const GRACE: Duration = Duration::from_secs(9);

/// The requests to shut down.
#[derive(Clone)]
pub(crate) struct Shutdown {
    /// The first signal: running reconciles finish.
    pub(crate) stop: watch::Receiver<bool>,
    /// The second signal: running reconciles are dropped.
    pub(crate) force: Arc<Notify>,
}

/// Runs an operator whenever this host holds the Lease, until the shutdown. `start` makes the
/// operator for one term of leadership.
///
/// # Errors
/// If `start` fails, or an operator hangs or ends.
pub(crate) async fn lead(
    mut candidate: LeaderElector,
    state: &SharedHostState<Operator>,
    mut shutdown: Shutdown,
    start: impl AsyncFn(innkeeper_cluster::Fence) -> anyhow::Result<Operator>,
) -> anyhow::Result<()> {
    let result = loop {
        state.set(HostState::Standby);
        let fence = tokio::select! {
            biased;
            _ = shutdown.stop.wait_for(|stop| *stop) => break Ok(()),
            fence = candidate.acquire() => fence,
        };
        let operator = match start(fence).await {
            Ok(operator) => operator,
            Err(error) => break Err(error),
        };
        match run(&operator, state, shutdown.clone(), candidate.hold()).await {
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

/// Runs an operator until the shutdown, or until `lost` says that another host may be the leader.
///
/// # Errors
/// If the operator hangs or ends.
pub(crate) async fn run(
    operator: &Operator,
    state: &SharedHostState<Operator>,
    Shutdown { mut stop, force }: Shutdown,
    lost: impl Future<Output = LeaseLost>,
) -> anyhow::Result<Option<LeaseLost>> {
    let (end, ended) = watch::channel(false);
    let mut running = tokio::spawn({
        let operator = operator.clone();
        async move { operator.run(ended).await }
    });
    state.set(HostState::Leading(operator.clone()));
    let mut lost = pin!(lost);
    let drop_all = async |running: &mut tokio::task::JoinHandle<()>| {
        running.abort();
        // The error is the cancellation.
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
        // An operator that hangs may never end, and `close` may wait for it.
        what = watchdog::hangs(operator) => {
            running.abort();
            anyhow::bail!("{what}; this host releases its Lease and exits, so that another host takes over");
        }
        result = &mut running => {
            result.context("the operator panicked; please report this bug of Innkeeper")?;
            anyhow::bail!("the operator ended unexpectedly; see the log");
        }
    }
    let _ = end.send(true);
    tokio::select! {
        biased;
        result = &mut running => {
            result.context("the operator panicked while it stopped")?;
            return Ok(None);
        }
        () = force.notified() => tracing::warn!("host stopping at once: second signal, running reconciles are dropped"),
        lost = &mut lost => tracing::warn!("leadership lost ({lost}): running reconciles are dropped"),
        () = tokio::time::sleep(GRACE) => {
            tracing::warn!("running reconciles did not finish within {} s and are dropped", GRACE.as_secs());
        }
    }
    drop_all(&mut running).await;
    Ok(None)
}
