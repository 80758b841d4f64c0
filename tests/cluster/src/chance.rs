//! Chance from a printed seed, so that what it did can be done again.

use anyhow::{Context as _, Result};

/// A source of numbers: SplitMix64.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// From this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From the seed in `INNKEEPER_TEST_SEED`, or a new one; prints it.
    ///
    /// # Errors
    /// If what the variable holds is no number.
    #[expect(clippy::print_stdout, reason = "shown when the test fails")]
    pub fn from_seed() -> Result<Self> {
        let seed = match std::env::var("INNKEEPER_TEST_SEED") {
            Ok(seed) => seed.parse().with_context(|| format!("INNKEEPER_TEST_SEED={seed}"))?,
            Err(_) => u64::from(std::process::id()),
        };
        println!("seed {seed}: INNKEEPER_TEST_SEED={seed} runs it again");
        Ok(Self(seed))
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)).checked_rem(bound).unwrap_or_default()
    }
}
