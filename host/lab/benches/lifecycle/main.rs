//! What the real operator and guest cost on a simulated cluster, on one core: lives of Podroutes,
//! and many Podroutes that change now and then.

#![allow(clippy::print_stdout, reason = "it is the result")]

mod churn;
mod lives;
mod podroutes;

use self::podroutes::Failed;

fn main() -> Result<(), Failed> {
    // Only `cargo bench` says so.
    if std::env::args().all(|argument| argument != "--bench") {
        return Ok(());
    }
    innkeeper_lab::block_on(async {
        lives::measure().await?;
        churn::measure().await
    })?
}
