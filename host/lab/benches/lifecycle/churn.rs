//! How fast time passes for a cluster with many Podroutes of which one changes now and then.

use std::time::{Duration, Instant};

use super::podroutes::{Failed, all, deployment, lab_with, podroute, worked};

/// The Podroutes.
const PRIMARIES: usize = 100;
/// Changes that are measured with each time between them.
const CHANGES: usize = 600;
/// Times between two changes, in the cluster's time.
const PERIODS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(10), Duration::from_mins(1)];

/// Prints the cluster's time by wall time. Every second change is one of a Podroute's spec by a
/// user, which leads to other Pods; the others are drift of its Deployment, which the host repairs.
pub(super) async fn measure() -> Result<(), Failed> {
    let (lab, namespaces) = lab_with(PRIMARIES).await?;
    for namespace in &namespaces {
        lab.api().apply(&podroute(2), namespace).await?;
    }
    all(&lab, "ready", &namespaces, 2).await?;
    let mut numbers = 0_usize..;
    for period in PERIODS {
        let (begun, worked_before) = (Instant::now(), worked());
        let mut replicas = 0;
        for number in numbers.by_ref().take(CHANGES) {
            let namespace = &namespaces[number / 2 % PRIMARIES];
            // Each round changes all Podroutes, from 2 replicas to 3 or back.
            replicas = if (number / 2 / PRIMARIES).is_multiple_of(2) { 3 } else { 2 };
            let changed = if number.is_multiple_of(2) { podroute(replicas) } else { deployment(1) };
            lab.api().apply(&changed, namespace).await?;
            lab.pass(period).await;
        }
        let took = begun.elapsed();
        let of_a_core = worked().saturating_sub(worked_before);
        let passed = period * u32::try_from(CHANGES)?;
        println!(
            "{PRIMARIES} Podroutes, a change each {} s: {:.0} times as fast as real time, {:.0} times for a core; {:.2} ms of a core each change",
            period.as_secs(),
            passed.as_secs_f64() / took.as_secs_f64(),
            passed.as_secs_f64() / of_a_core.as_secs_f64(),
            of_a_core.as_secs_f64() * 1000.0 / f64::from(u32::try_from(CHANGES)?),
        );
        all(&lab, "as the last changes say", &namespaces, replicas).await?;
    }
    lab.end().await;
    Ok(())
}
