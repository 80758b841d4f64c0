//! How long lives of a Podroute take, in wall time.

use std::time::{Duration, Instant};

use innkeeper_lab::Lab;

use super::podroutes::{Failed, LIMIT, all, at, deployment, lab_with, podroute, worked};

/// Lives that are measured.
const LIVES: usize = 200;
/// Lives that are lived at once.
const TOGETHER: usize = 50;

/// Prints how long lives take, one after the other and side by side.
pub(super) async fn measure() -> Result<(), Failed> {
    let (lab, namespaces) = lab_with(LIVES).await?;
    for (what, together) in [("one after the other", 1), ("side by side", TOGETHER)] {
        let mut ready = Vec::new();
        let (begun, worked_before) = (Instant::now(), worked());
        for group in namespaces.chunks(together) {
            ready.push(live(&lab, group).await?);
        }
        let took = begun.elapsed();
        let of_a_core = worked().saturating_sub(worked_before) / u32::try_from(LIVES)?;
        ready.sort();
        let each = took / u32::try_from(LIVES)?;
        println!(
            "{LIVES} lives of a Podroute {what} ({together} at once): {:.0} a second, {:.1} ms each, {:.1} ms of a core ({:.0} a second); from apply to ready {:.1} ms in the middle, {:.1} ms at most",
            1.0 / each.as_secs_f64(),
            each.as_secs_f64() * 1000.0,
            of_a_core.as_secs_f64() * 1000.0,
            1.0 / of_a_core.as_secs_f64(),
            ready[ready.len() / 2].as_secs_f64() * 1000.0,
            ready[ready.len() - 1].as_secs_f64() * 1000.0,
        );
    }
    lab.end().await;
    Ok(())
}

/// Lives of some Podroutes, each in a namespace of its own: made, ready, scaled, drift repaired,
/// deleted.
async fn live(lab: &Lab, namespaces: &[String]) -> Result<Duration, Failed> {
    let api = lab.api();
    let begun = Instant::now();
    for namespace in namespaces {
        api.apply(&podroute(2), namespace).await?;
    }
    all(lab, "ready", namespaces, 2).await?;
    let ready = begun.elapsed();
    for namespace in namespaces {
        api.apply(&podroute(3), namespace).await?;
    }
    all(lab, "scaled", namespaces, 3).await?;
    for namespace in namespaces {
        api.apply(&deployment(1), namespace).await?;
    }
    all(lab, "drift is repaired", namespaces, 3).await?;
    for namespace in namespaces {
        api.delete(&api.path_of(&podroute(3), namespace).await?).await?;
    }
    lab.until("gone", LIMIT, async |api| {
        for namespace in namespaces {
            if at(api, &deployment(3), namespace).await?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    })
    .await?;
    Ok(ready)
}
