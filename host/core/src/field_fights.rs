//! Field fights: another manager and the host set the same field in turn.
//!
//! If the host reverts one field of an object more than [`REVERTS_MAX`] times in [`WINDOW`], it
//! stops applying the object for a while and reports the fight.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::ObjectRef;

/// Up to this number of reverts of one field in [`WINDOW`] are drift; more are a fight.
pub const REVERTS_MAX: usize = 5;

/// The time for which a revert counts. The host applies an object in a fight again when its oldest
/// counted revert is this old.
pub const WINDOW: Duration = Duration::from_mins(10);

/// The most fields of one object with a counter each. Reverts of further fields count for the whole
/// object, so that another manager can neither fill the memory nor evade the limit by a new field
/// each time.
const FIELDS_MAX: usize = 64;

/// The field that stands for the whole object.
const WHOLE: &str = ".";

/// A fight over a field of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFight {
    /// The field, as in `.spec.replicas`.
    pub field: String,
    /// The manager that set the field last, if the server reports it.
    pub other: String,
    /// When the host applies the object again.
    pub until: Timestamp,
}

/// The reverts of fields in the objects of one primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevertHistory {
    fields: BTreeMap<(ObjectRef, String), Field>,
}

/// The reverts of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Field {
    other: String,
    times: Vec<Timestamp>,
}

impl RevertHistory {
    /// Records that the host reverted fields of an object at `now`, which `other` had changed.
    pub fn record(
        &mut self,
        object_ref: &ObjectRef,
        fields: &[String],
        other: &str,
        now: Timestamp,
    ) {
        let mut known = self.of(object_ref).count();
        let mut has_more = false;
        for field in fields {
            let place = (object_ref.clone(), field.clone());
            if self.fields.contains_key(&place) {
                self.count(place, other, now);
            } else if known < FIELDS_MAX {
                known += 1;
                self.count(place, other, now);
            } else {
                has_more = true;
            }
        }
        if has_more {
            self.count((object_ref.clone(), WHOLE.to_owned()), other, now);
        }
    }

    /// Counts one revert of a field.
    fn count(&mut self, place: (ObjectRef, String), other: &str, now: Timestamp) {
        let field = self.fields.entry(place).or_default();
        other.clone_into(&mut field.other);
        field.times.retain(|time| within_window(*time, now));
        field.times.push(now);
    }

    /// The reverted fields of one object.
    fn of(&self, object_ref: &ObjectRef) -> impl Iterator<Item = (&String, &Field)> {
        let of_object = self.fields.range((object_ref.clone(), String::new())..);
        let of_object = of_object.take_while(move |((of, _), _)| of == object_ref);
        of_object.map(|((_, name), field)| (name, field))
    }

    /// The fight over an object, if there is one at `now`.
    pub fn field_fight(&self, object_ref: &ObjectRef, now: Timestamp) -> Option<FieldFight> {
        self.of(object_ref)
            .filter_map(|(name, field)| {
                let recent: Vec<Timestamp> =
                    field.times.iter().copied().filter(|time| within_window(*time, now)).collect();
                let oldest =
                    recent.len().checked_sub(REVERTS_MAX + 1).map(|index| recent[index])?;
                Some(FieldFight {
                    field: name.clone(),
                    other: field.other.clone(),
                    until: oldest.checked_add(WINDOW).unwrap_or(oldest),
                })
            })
            .max_by_key(|field_fight| field_fight.until)
    }

    /// Drops fields without a revert in the window, so that the history stays small.
    pub fn drop_expired(&mut self, now: Timestamp) {
        self.fields.retain(|_, field| field.times.iter().any(|time| within_window(*time, now)));
    }
}

fn within_window(time: Timestamp, now: Timestamp) -> bool {
    time.checked_add(WINDOW).is_ok_and(|end| end > now)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use innkeeper_contract::Kind;

    use super::*;
    use crate::ObjectKey;

    fn object_ref(name: &str) -> ObjectRef {
        ObjectRef::new(
            Arc::new(Kind::namespaced("apps/v1", "Deployment", "deployments")),
            ObjectKey::new("n", name),
        )
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn reverted(times: impl IntoIterator<Item = i64>) -> RevertHistory {
        let mut reverts = RevertHistory::default();
        for second in times {
            reverts.record(&object_ref("a"), &[".spec.replicas".into()], "autoscaler", at(second));
        }
        reverts
    }

    #[test]
    fn fight_begins_after_five_reverts() {
        assert_eq!(reverted(0..5).field_fight(&object_ref("a"), at(5)), None);
        let field_fight = reverted(0..6).field_fight(&object_ref("a"), at(6)).unwrap();
        assert_eq!(
            (field_fight.field.as_str(), field_fight.other.as_str()),
            (".spec.replicas", "autoscaler")
        );
        assert_eq!(field_fight.until, at(600));
    }

    #[test]
    fn fight_concerns_one_object_and_ends_with_its_window() {
        let reverts = reverted(0..6);
        assert_eq!(reverts.field_fight(&object_ref("b"), at(6)), None);
        assert!(reverts.field_fight(&object_ref("a"), at(599)).is_some());
        assert_eq!(reverts.field_fight(&object_ref("a"), at(600)), None);
    }

    #[test]
    fn slow_drift_is_no_fight() {
        assert_eq!(
            reverted((0..50).map(|n| n * 121)).field_fight(&object_ref("a"), at(49 * 121)),
            None
        );
    }

    #[test]
    fn expired_reverts_are_dropped() {
        let mut reverts = reverted(0..6);
        reverts.drop_expired(at(700));
        assert_eq!(reverts, RevertHistory::default());
    }

    #[test]
    fn fight_with_another_field_each_time_is_a_fight_over_the_object() {
        let mut reverts = RevertHistory::default();
        let mut reverted = 0;
        for second in 0..500 {
            let now = at(second);
            if reverts.field_fight(&object_ref("a"), now).is_some() {
                continue;
            }
            reverted += 1;
            reverts.record(&object_ref("a"), &[format!(".data.k{second}")], "other", now);
        }
        assert_eq!(reverted, FIELDS_MAX + REVERTS_MAX + 1);
        assert_eq!(reverts.field_fight(&object_ref("a"), at(100)).unwrap().field, WHOLE);
    }

    #[test]
    fn fields_of_one_object_that_are_counted_are_bounded() {
        let mut reverts = RevertHistory::default();
        let fields: Vec<String> = (0..50_000).map(|index| format!(".data.k{index}")).collect();
        for second in 0..5 {
            reverts.record(&object_ref("a"), &fields, "other", at(second));
        }
        assert_eq!(reverts.fields.len(), FIELDS_MAX + 1);
        assert_eq!(reverts.field_fight(&object_ref("a"), at(5)), None, "five are drift");
        reverts.record(&object_ref("a"), &fields, "other", at(5));
        assert!(reverts.field_fight(&object_ref("a"), at(6)).is_some());
    }
}
