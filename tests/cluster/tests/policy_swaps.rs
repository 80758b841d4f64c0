//! Swaps of a policy under load: each request is answered by a revision that was active while it
//! was under way.

#![allow(clippy::unwrap_used, reason = "a test may fail by it")]
#![allow(clippy::print_stdout, reason = "the figures of docs/benchmarks-admission.md")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use innkeeper_cluster_tests::numbered_policy::{guest, number, object, revision};
use innkeeper_cluster_tests::policy_stage::policy;
use innkeeper_cluster_tests::stage::{SOON, says};
use innkeeper_cluster_tests::{Kind, Load, PolicyStage, Requests, eventually, quantile};
use serde_json::{Value, json};
use tokio::sync::watch;

const MODULE: &str = "numbered";
const SHOP: &str = "shop";

/// How many requests wait for their answers at most.
const CLIENTS: usize = 16;

/// What the requests and the swaps know of each other.
struct Seen {
    /// The highest number that was pushed.
    pushed: AtomicU64,
    /// The highest number of an answer, and when it came first.
    answered: watch::Sender<(u64, Instant)>,
}

impl Seen {
    /// Takes the number of an answer. `before` was the highest one when the request began: one
    /// replica swaps at once, so no later request gets a lower one.
    fn take(&self, number: u64, before: u64) -> Result<(), String> {
        let pushed = self.pushed.load(Ordering::SeqCst);
        if number < before || number > pushed {
            return Err(format!("revision {number} answers, after {before} and before {pushed}"));
        }
        self.answered.send_if_modified(|(highest, at)| {
            let is_new = number > *highest;
            if is_new {
                (*highest, *at) = (number, Instant::now());
            }
            is_new
        });
        Ok(())
    }
}

/// Asks again and again, with an object that must be denied and one that must not in turn.
fn load(requests: Requests, rate: u32, seen: &Arc<Seen>) -> Load {
    let (objects, seen) = ([object(false), object(true)], Arc::clone(seen));
    Load::start(rate, CLIENTS, move |index| {
        let (requests, objects, seen) = (requests.clone(), objects.clone(), Arc::clone(&seen));
        async move {
            let is_forbidden = index % 2 == 1;
            let before = seen.answered.borrow().0;
            let answer = requests.create(&objects[usize::from(is_forbidden)]).await;
            let answer = answer.map_err(|error| format!("{error:#}"))?;
            seen.take(number(&answer, is_forbidden)?, before)
        }
    })
}

/// Candidates that never become active: what they are, their bytes, and what the Module says.
fn bad_candidates() -> [BadCandidate; 5] {
    // Number 0 is never pushed: its answer would be wrong.
    let spin = "(loop $l (br $l))";
    let refused = |what, bytes| BadCandidate { what, bytes, condition: ("Loaded", "False") };
    [
        refused("no WebAssembly", b"no WebAssembly".to_vec()),
        refused("a truncated component", revision(0)[..500].to_vec()),
        refused("one whose describe hangs", guest(0).on_describe(spin).component()),
        refused("one whose describe traps", guest(0).on_describe("unreachable").component()),
        // Its preview reviews recent requests of the load.
        BadCandidate {
            what: "one whose reviews trap",
            bytes: guest(0).review_wat("unreachable").component(),
            condition: ("Held", "True"),
        },
    ]
}

/// A candidate that cannot become active.
struct BadCandidate {
    what: &'static str,
    bytes: Vec<u8>,
    /// The condition of the Module by which it is known, with its status.
    condition: (&'static str, &'static str),
}

/// Pushes a candidate that cannot become active, and waits until the Module says so.
async fn push_bad(stage: &PolicyStage, candidate: &BadCandidate) -> Result<()> {
    let BadCandidate { what, bytes, condition: (type_, status) } = candidate;
    stage.push_bytes(MODULE, bytes).await?;
    let at = (Kind::MODULE, "", MODULE);
    let is_refused = |module: &Value| {
        let conditions = module["status"]["conditions"].as_array();
        let known = conditions.into_iter().flatten().find(|one| one["type"] == *type_);
        // The active revision goes on.
        known.is_some_and(|one| one["status"] == *status)
            && says(module, "Serving", "True", "PolicyActive")
    };
    stage.admin.until(&format!("{what} is refused"), SOON, at, is_refused).await.map(drop)
}

/// Swaps a policy so often, with a candidate that cannot become active before each tenth swap,
/// under a load of so many reviews a second.
async fn swap(stage: PolicyStage, swaps: u64, rate: u32) -> Result<()> {
    stage.reviewed_namespace(SHOP).await?;
    let _replica = stage.replica("a").await?;
    let spec = json!({"policy": policy(&json!({"failurePolicy": "Fail"})),
        "limits": {"timeout": "5s"}});
    stage.module_of_bytes(MODULE, &revision(1), &spec).await?;
    stage.reviews_with(MODULE, "Fail").await?;
    let requests = stage.requests(SHOP, MODULE).await?;
    eventually("the API server asks the policy", SOON, async || {
        let answer = requests.create(&object(true)).await?;
        Ok(number(&answer, true).map(drop))
    })
    .await?;

    let seen = Arc::new(Seen {
        pushed: AtomicU64::new(1),
        answered: watch::Sender::new((1, Instant::now())),
    });
    let load = load(requests, rate, &seen);
    let (bad, mut times) = (bad_candidates(), Vec::new());
    for turn in 0..swaps {
        if turn % 10 == 9 {
            push_bad(&stage, &bad[usize::try_from(turn / 10)? % bad.len()]).await?;
        }
        let next = turn + 2;
        let component = tokio::task::spawn_blocking(move || revision(next)).await?;
        seen.pushed.store(next, Ordering::SeqCst);
        let mut answered = seen.answered.subscribe();
        let pushed = Instant::now();
        stage.push_bytes(MODULE, &component).await?;
        let first = tokio::time::timeout(SOON, answered.wait_for(|(number, _)| *number >= next));
        let (_, at) = *first.await.with_context(|| format!("revision {next} never answers"))??;
        times.push(at.saturating_duration_since(pushed));
        let (failed, failures) = load.failed();
        ensure!(failed == 0, "{failed} requests failed: {failures:#?}");
    }
    let figures = load.end().await;
    times.sort();
    println!(
        "{} swaps, {} reviews, {:.0}/s, {} failed; a review p50 {:?}, p99 {:?}, longest {:?}; \
         from the ConfigMap to the first answer p50 {:?}, p99 {:?}, longest {:?}",
        times.len(),
        figures.requests,
        figures.rate(),
        figures.failed,
        figures.quantile(0.5),
        figures.quantile(0.99),
        figures.quantile(1.0),
        quantile(&times, 0.5),
        quantile(&times, 0.99),
        quantile(&times, 1.0)
    );
    ensure!(figures.failed == 0, "{:#?}", figures.failures);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn swap_under_load_fails_no_request_and_answers_each_rightly() -> Result<()> {
    swap(PolicyStage::new().await?, 50, 100).await
}

/// The same without an API server between the load and the host.
#[tokio::test(flavor = "multi_thread")]
async fn swap_under_load_fails_no_review_on_a_simulated_cluster() -> Result<()> {
    swap(PolicyStage::simulated().await?, 50, 100).await
}

/// So many swaps at so many reviews a second as the environment says.
async fn swap_as_asked(stage: PolicyStage) -> Result<()> {
    let variable = |name: &str, default: u32| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let swaps = variable("INNKEEPER_BENCH_SWAPS", 1_000);
    swap(stage, swaps.into(), variable("INNKEEPER_BENCH_RATE", 500)).await
}

/// A thousand swaps at 500 reviews a second.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes of a whole machine; docs/benchmarks-admission.md has its figures"]
async fn thousand_swaps_under_fire_fail_no_request() -> Result<()> {
    swap_as_asked(PolicyStage::new().await?).await
}

/// The same without an API server between the load and the host.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes of a whole machine; docs/benchmarks-admission.md has its figures"]
async fn thousand_swaps_under_fire_fail_no_review_on_a_simulated_cluster() -> Result<()> {
    swap_as_asked(PolicyStage::simulated().await?).await
}
