//! How many Pods each `ReplicaSet` of a Deployment may have: arithmetic only.

use serde_json::Value;

use crate::types::members::{number, text};

/// The replicas of a `ReplicaSet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Set {
    /// Its `spec.replicas`.
    pub(crate) wanted: i64,
    /// Those of its Pods that are available.
    pub(crate) available: i64,
}

/// The bounds of a Deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) replicas: i64,
    pub(crate) surge: i64,
    pub(crate) unavailable: i64,
}

impl Bounds {
    /// Reads them from the spec of a Deployment.
    pub(crate) fn read(spec: &Value) -> Self {
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        if spec["strategy"]["type"] == "Recreate" {
            return Self { replicas, surge: 0, unavailable: 0 };
        }
        let rolling = &spec["strategy"]["rollingUpdate"];
        let surge = share(&rolling["maxSurge"], replicas, true);
        let mut unavailable = share(&rolling["maxUnavailable"], replicas, false);
        if surge == 0 && unavailable == 0 {
            unavailable = 1;
        }
        Self { replicas, surge, unavailable: unavailable.min(replicas) }
    }

    /// The desired replicas of the new set.
    pub(crate) fn new_set(&self, new: i64, all: i64) -> i64 {
        let room = self.replicas + self.surge - all;
        if room <= 0 {
            return new;
        }
        new + room.min(self.replicas - new)
    }

    /// The desired replicas of the old sets, oldest first, next to the new set.
    pub(crate) fn old_sets(&self, old: &[Set], new: &Set) -> Vec<i64> {
        let mut wanted: Vec<i64> = old.iter().map(|set| set.wanted).collect();
        let all: i64 = wanted.iter().sum::<i64>() + new.wanted;
        let least = self.replicas - self.unavailable;
        let mut room = all - least - (new.wanted - new.available);
        if room <= 0 {
            return wanted;
        }
        // Pods that are not available go first.
        for (set, wanted) in old.iter().zip(&mut wanted) {
            let idle = (set.wanted - set.available).clamp(0, room);
            *wanted -= idle;
            room -= idle;
        }
        let available: i64 = old.iter().map(|set| set.available).sum::<i64>() + new.available;
        let mut surplus = available - least;
        for wanted in &mut wanted {
            let less = (*wanted).min(surplus.max(0));
            *wanted -= less;
            surplus -= less;
        }
        wanted
    }

    /// The desired replicas of each set if the Deployment is scaled during a rollout: in proportion
    /// to their current replicas. The first set takes the rounding remainder.
    pub(crate) fn proportional(&self, sets: &[i64], was_at_most: &[i64]) -> Vec<i64> {
        let all: i64 = sets.iter().sum();
        let allowed = if self.replicas > 0 { self.replicas + self.surge } else { 0 };
        let change = allowed - all;
        let mut added = 0;
        let mut wanted: Vec<i64> = sets
            .iter()
            .zip(was_at_most)
            .map(|(&set, &most)| {
                if change == 0 || set == 0 {
                    return set;
                }
                let most = if most > 0 { most } else { all };
                let share = rounded(set * allowed, most) - set;
                let left = change - added;
                let share = if change > 0 { share.clamp(0, left) } else { share.clamp(left, 0) };
                added += share;
                set + share
            })
            .collect();
        if let Some(first) = wanted.first_mut() {
            *first = (*first + change - added).max(0);
        }
        wanted
    }
}

/// Divides and rounds half away from zero.
fn rounded(number: i64, by: i64) -> i64 {
    (2 * number + by).div_euclid(2 * by.max(1))
}

/// A number, or a percentage of `whole`.
fn share(value: &Value, whole: i64, up: bool) -> i64 {
    let Some(percent) = text(value).strip_suffix('%') else { return number(value) };
    let product = percent.parse::<i64>().unwrap_or(0).saturating_mul(whole);
    if up { product.saturating_add(99).div_euclid(100) } else { product.div_euclid(100) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(wanted: i64, available: i64) -> Set {
        Set { wanted, available }
    }

    #[test]
    fn max_surge_is_rounded_up_and_max_unavailable_is_rounded_down() {
        let spec = json!({"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}});
        assert_eq!(Bounds::read(&spec), Bounds { replicas: 3, surge: 1, unavailable: 0 });
        let none = json!({"replicas": 3, "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "10%"}}});
        assert_eq!(Bounds::read(&none), Bounds { replicas: 3, surge: 0, unavailable: 1 });
    }

    #[test]
    fn new_set_grows_into_the_surge_and_old_set_shrinks_when_it_is_available() {
        let bounds = Bounds { replicas: 3, surge: 1, unavailable: 0 };
        assert_eq!(bounds.new_set(0, 3), 1);
        assert_eq!(bounds.old_sets(&[set(3, 3)], &set(1, 0)), [3]);
        assert_eq!(bounds.old_sets(&[set(3, 3)], &set(1, 1)), [2]);
        assert_eq!(bounds.new_set(1, 3), 2);
        assert_eq!(bounds.new_set(3, 3), 3);
    }

    #[test]
    fn unavailable_pods_of_old_sets_are_removed_first() {
        let bounds = Bounds { replicas: 4, surge: 1, unavailable: 1 };
        assert_eq!(bounds.old_sets(&[set(2, 0), set(2, 2)], &set(1, 1)), [0, 2]);
    }

    #[test]
    fn scaling_during_a_rollout_is_shared_in_proportion() {
        let bounds = Bounds { replicas: 20, surge: 0, unavailable: 1 };
        assert_eq!(bounds.proportional(&[6, 4], &[10, 10]), [12, 8]);
        let bounds = Bounds { replicas: 5, surge: 0, unavailable: 1 };
        assert_eq!(bounds.proportional(&[6, 4], &[10, 10]), [3, 2]);
    }
}
