//! One figure of a controller over all rounds.

use std::fmt;

/// The values of a figure, one of each round.
pub(crate) struct Figure {
    values: Vec<f64>,
    decimals: usize,
}

impl Figure {
    /// A figure that is shown with so many decimals.
    pub(crate) fn new(values: impl IntoIterator<Item = f64>, decimals: usize) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self { values, decimals }
    }

    /// The median; of an even number of values, the lower of both in the middle.
    pub(crate) fn median(&self) -> Option<f64> {
        self.values.get(self.values.len().checked_sub(1)? / 2).copied()
    }

    /// The lowest and the highest value.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        Some((*self.values.first()?, *self.values.last()?))
    }
}

/// The median, and the range in brackets if it is more than one value.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(median), Some((low, high))) = (self.median(), self.range()) else {
            return f.write_str("not measured");
        };
        let decimals = self.decimals;
        let shown = |value: f64| format!("{:.decimals$}", if value == 0.0 { 0.0 } else { value });
        f.write_str(&shown(median))?;
        if shown(low) == shown(high) {
            Ok(())
        } else {
            write!(f, " ({}–{})", shown(low), shown(high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_shows_its_median_and_its_range_if_there_is_one() {
        assert_eq!(Figure::new([3.0, 1.0, 2.04], 1).to_string(), "2.0 (1.0–3.0)");
        assert_eq!(Figure::new([2.01, 2.02], 1).to_string(), "2.0");
        assert_eq!(Figure::new([], 1).to_string(), "not measured");
    }
}
