//! Times, and their quantiles.

use std::time::Duration;

/// Times of operations.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<Duration>);

impl Sample {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// Adds the times of another sample.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of times.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no times.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time that this part of the operations (0 to 1) took at most, in milliseconds; NaN of no
    /// times.
    pub fn quantile_ms(&self, part: f64) -> f64 {
        let mut times = self.0.clone();
        times.sort_unstable();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index of a list in memory"
        )]
        let index = (times.len().saturating_sub(1) as f64 * part).round() as usize;
        times.get(index).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

/// The median of some figures; NaN of none.
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_the_time_at_its_rank() {
        let mut sample = Sample::default();
        for ms in (0..=100).rev() {
            sample.add(Duration::from_millis(ms));
        }
        for (part, ms) in [(0.0, 0.0), (0.5, 50.0), (0.99, 99.0), (1.0, 100.0)] {
            assert!((sample.quantile_ms(part) - ms).abs() < 1e-9, "{part}");
        }
        assert!(Sample::default().quantile_ms(0.5).is_nan());
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
